"""A crontab's text becomes declarations and problems; nothing else ever comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from timeball.errors import InvalidSchedule
from timeball.importers import crontab
from timeball.importers.crontab import Crontab, CrontabEntry, UserInfo, read_crontab

DATA = Path(__file__).parents[1] / "data" / "crontabs"
KNOWN = {"root": "/root", "app": "/srv/app", "shop": "/srv/shop", "mail": "/var/mail"}


def known_user(name: str) -> UserInfo | None:
    return UserInfo(name=name, home=KNOWN[name]) if name in KNOWN else None


def read(text: str, **options: object) -> Crontab:
    given_options = {"source": "table", "default_tz": "UTC", "known_user": known_user, **options}
    return read_crontab(text, **given_options)


def read_file(name: str) -> Crontab:
    path = DATA / name
    return read(path.read_text(), source=str(path))


def only(text: str, **options: object) -> CrontabEntry:
    table = read(text, **options)
    assert table.problems == ()
    (entry,) = table.entries
    return entry


def reason(text: str, **options: object) -> str:
    table = read(text, **options)
    (problem,) = table.problems
    return problem.reason


# Whole files


def test_a_users_crontab_is_read_whole() -> None:
    table = read_file("library.cron")
    assert (table.form, table.problems) == ("user", ())
    assert [(e.line, e.expression, e.tz, e.user) for e in table.entries] == [
        (7, "5 4 * * *", "UTC", None),
        (8, "10 4 * * *", "UTC", None),
    ]
    first = table.entries[0]
    assert first.shell == "/bin/bash"
    assert first.env["SHELF"] == "/srv/library"
    assert first.command.endswith("./remind-all.sh &>> /var/log/library/loans.log")
    assert [e.name.rpartition("-")[0] for e in table.entries] == [
        "library:remind-all",
        "library:reckon",
    ]


def test_a_system_crontab_names_its_users() -> None:
    table = read_file("cron.d-snapshots.cron")
    assert (table.form, table.problems) == ("system", ())
    assert [(e.user, e.env["HOME"], e.env["LOGNAME"]) for e in table.entries] == [
        ("root", "/root", "root"),
        ("root", "/root", "root"),
        ("shop", "/srv/shop", "shop"),
    ]
    assert "$(date +%F)" in table.entries[0].command
    assert table.entries[0].stdin == b""
    assert table.entries[0].notes == ()


def test_a_zone_holds_for_the_lines_below_it() -> None:
    table = read_file("three_zones.cron")
    assert (table.form, table.problems) == ("user", ())
    assert [(e.line, e.tz) for e in table.entries] == [
        (5, "Asia/Tokyo"),
        (9, "Etc/UTC"),
        (12, "America/Chicago"),
        (13, "America/Chicago"),
    ]


def test_all_bad_lines_are_named_at_once_and_the_good_ones_are_there() -> None:
    table = read_file("edges.cron")
    assert table.form == "system"
    assert [problem.line for problem in table.problems] == [11, 14]
    assert [problem.text.split()[0] for problem in table.problems] == ["@reboot", "0"]
    assert [e.line for e in table.entries] == [6, 7, 8, 9, 10, 12, 13, 15]
    assert [e.expression for e in table.entries[:2]] == ["20 6 * * *", "00 */4 10-20/2 Jun 1-5"]
    assert table.entries[0].command == "test -x /usr/sbin/tidy && /usr/sbin/tidy start >/dev/null"
    assert {e.tz for e in table.entries} == {"America/Denver"}


# Lines


@pytest.mark.parametrize("text", ["", "\n\n", " \t\n", "# 0 3 * * * x", "  \t# x", "\ufeff", "A=b"])
def test_blanks_comments_and_settings_are_no_jobs(text: str) -> None:
    table = read(text)
    assert (table.entries, table.problems) == ((), ())


@pytest.mark.parametrize(
    ("line", "expression", "command"),
    [
        ("0 3 * * * x", "0 3 * * *", "x"),
        (" \t 0\t3  *\t\t* * \t x", "0 3 * * *", "x"),
        ("\ufeff0 3 * * * x", "0 3 * * *", "x"),
        ("0 3 * * * x  # y", "0 3 * * *", "x  # y"),
        ("0 3 * * * A=1 x", "0 3 * * *", "A=1 x"),
        ("0 3 * * * x \f y\u2028z", "0 3 * * *", "x \f y\u2028z"),
        ("@daily x y", "@daily", "x y"),
        ("@hourly\tx", "@hourly", "x"),
        ("0 0 * jan,Feb mon-FRI x", "0 0 * jan,Feb mon-FRI", "x"),
    ],
)
def test_a_job_line_is_a_schedule_and_the_rest(line: str, expression: str, command: str) -> None:
    for end in ("", "\n"):
        entry = only(line + end)
        assert (entry.expression, entry.command) == (expression, command)


@pytest.mark.parametrize(
    "name", ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"]
)
def test_every_nickname_of_cron_is_known(name: str) -> None:
    assert only(f"@{name} x").expression == f"@{name}"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0 3 * * *", "no command"),
        ("0 3 * * *   ", "no command"),
        ("*/10 * * * * * x", "sixth field"),
        ("@daily", "no command"),
        ("0 3 * * * %input", "no command"),
        ("0 3 * *", "4 of the five fields"),
        ("nonsense", "1 of the five fields"),
        ("- ", "0 of the five fields"),
        ("0 3 FOO=bar * * x", "NAME=value"),
        ("export FOO=bar", "NAME=value"),
        ("FOO BAR = 1", "NAME=value"),
        ('FOO="a" b', "quotes"),
        ("FOO='a", "quotes"),
        ("0 3 * * * a\0b", "NUL"),
        ("0 3 * * * a\udcffb", "UTF-8"),
        ("FOO=\udcff", "UTF-8"),
        ("0 3 * * * a\rb", "carriage return"),
        ("# a\r0 3 * * * b", "carriage return"),
        ("0" + ",0" * 600 + " 3 * * * x", "longer than 1000 characters"),
        ("0 3 * * * " + "x" * 140_000, "longer than 131071 bytes"),
        ("A=" + "é" * 70_000, "longer than 131071 bytes"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(line: str, says: str) -> None:
    assert says in reason(f"1 1 * * * before\n{line}\n2 2 * * * after")
    assert [e.line for e in read(f"1 1 * * * before\n{line}\n2 2 * * * after").entries] == [1, 3]


@pytest.mark.parametrize(
    "line", ["99 3 * * * x", "@reboot x", "@sometimes x", "0 0 30 feb * x", "0 3 * * \u00a0x y"]
)
def test_a_schedule_that_cannot_be_is_a_problem(line: str) -> None:
    assert len(reason(line)) > 10


def test_windows_line_ends_are_accepted_and_noted() -> None:
    entry = only("SHELL=/bin/bash\r\n0 3 * * * x\r\n")
    assert (entry.command, entry.shell) == ("x", "/bin/bash")
    assert "carriage return" in " ".join(entry.notes)


def test_cronies_minus_is_noted() -> None:
    entry = only("-*/5 * * * * x")
    assert entry.expression == "*/5 * * * *"
    assert "no effect" in " ".join(entry.notes)
    assert only("-@daily x").expression == "@daily"


# Settings


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("  A =  b c \t", "b c"),
        ('A="b "', "b "),
        ("A = 'b\"c'  ", 'b"c'),
        ("'A'='b'", "b"),
        ('"A" = b', "b"),
        ("A=", ""),
        ('A=""', ""),
        ("A=b # c", "b # c"),
        ("A=b 'c'", "b 'c'"),
        ("A=$HOME/x", "$HOME/x"),
        ("A=a%b", "a%b"),
        ("A=b=c", "b=c"),
    ],
)
def test_a_setting_is_taken_as_written(line: str, value: str) -> None:
    assert only(f"{line}\n@daily x").env["A"] == value


def test_a_setting_holds_from_its_line_on() -> None:
    table = read("@daily a\nA=1\n@daily b\n@daily c\nA=2\n@daily d")
    assert [entry.env.get("A") for entry in table.entries] == [None, "1", "1", "2"]


def test_the_environment_of_cron_is_given_where_nothing_is_set() -> None:
    entry = only("@daily x")
    assert dict(entry.env) == {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    owned = only("@daily x", owner=UserInfo(name="eve", home="/home/eve"))
    assert owned.user is None
    assert owned.env["HOME"] == "/home/eve"
    assert owned.env["LOGNAME"] == owned.env["USER"] == "eve"


def test_home_can_be_set_and_the_name_of_the_account_cannot() -> None:
    text = "HOME=/tmp\nLOGNAME=root\nUSER=root\n@daily app x"
    entry = only(text, form="system")
    assert (entry.env["HOME"], entry.env["LOGNAME"], entry.env["USER"]) == ("/tmp", "app", "app")
    assert "cannot be set" in " ".join(entry.notes)
    assert "LOGNAME" not in only("LOGNAME=root\n@daily x").env


def test_an_empty_shell_is_the_default_one() -> None:
    assert only("SHELL=\n@daily x").shell == "/bin/sh"


def test_no_more_settings_than_a_crontab_can_need() -> None:
    text = "\n".join(f"A{n}=1" for n in range(257)) + "\nA0=2\n@daily x"
    table = read(text)
    assert [problem.line for problem in table.problems] == [257]
    assert table.entries[0].env["A0"] == "2"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("MAILTO=ops@example.org", "MAILTO=ops@…: output is kept with the job"),
        ("MAILTO=a@x.org,b@y.org", "MAILTO=a@…,b@…: "),
        ("TZ=Asia/Tokyo", "CRON_TZ"),
        ("PATH=$HOME/bin:/bin", "expands no variables"),
    ],
)
def test_what_works_otherwise_than_one_may_think_is_noted(setting: str, says: str) -> None:
    (note,) = only(f"{setting}\n@daily x").notes
    assert says in note


@pytest.mark.parametrize("setting", ["MAILTO=", 'MAILTO=""', "TZ=UTC", "PATH=/bin", "A=$B"])
def test_what_works_as_written_is_not_noted(setting: str) -> None:
    assert only(f"{setting}\n@daily x").notes == ()


@pytest.mark.parametrize(
    "line", ["TOKEN='s3cret", "export TOKEN=s3cret", "MY TOKEN=s3cret", "TOKEN=s3cret\0"]
)
def test_a_settings_value_is_never_repeated(line: str) -> None:
    table = read(f"{line}\nTOKEN=s3cret\n@daily x\n99 * * * * y")
    said = [problem.text + problem.reason for problem in table.problems]
    said += [note for entry in table.entries for note in entry.notes]
    assert said
    assert "s3cret" not in " ".join(said)


# Zones


def test_tz_moves_no_schedule() -> None:
    entry = only("TZ=Asia/Tokyo\n@daily x")
    assert (entry.tz, entry.env["TZ"]) == ("UTC", "Asia/Tokyo")


def test_an_empty_zone_returns_to_the_default() -> None:
    table = read("CRON_TZ=Asia/Tokyo\n@daily a\nCRON_TZ=\n@daily b", default_tz="Europe/Paris")
    assert [entry.tz for entry in table.entries] == ["Asia/Tokyo", "Europe/Paris"]


def test_a_default_that_is_no_zone_is_refused() -> None:
    with pytest.raises(InvalidSchedule):
        read("", default_tz="Mars/Olympus")


@pytest.mark.parametrize(
    "line",
    [
        "CRON_TZ=Mars/Olympus",
        "CRON_TZ=Asia/Tokyo # our office",
        'CRON_TZ="Asia/Tokyo',
        "CRON_TZ=Asia/Tokyo\0",
        "CRON_TZ Asia/Tokyo",
        "CRON TZ=Asia/Tokyo",
        "export CRON_TZ=Asia/Tokyo",
        "cron_tz=Asia/Tokyo",
        "\u00a0CRON_TZ=Asia/Tokyo",
        "A=1\rCRON_TZ=Asia/Tokyo",
        "# office\rCRON_TZ=Asia/Tokyo",
        "@daily x\rCRON_TZ=Asia/Tokyo",
        "CRON_TZ=../../etc/passwd",
    ],
)
def test_no_job_runs_in_a_zone_that_was_not_meant(line: str) -> None:
    table = read(f"@daily a\n{line}\n@daily b\n@daily c\nCRON_TZ=Asia/Seoul\n@daily d")
    assert [problem.line for problem in table.problems] == [2, 3, 4]
    assert all("line 2" in problem.reason for problem in table.problems[1:])
    assert [(entry.line, entry.tz) for entry in table.entries] == [(1, "UTC"), (6, "Asia/Seoul")]


def test_a_command_that_speaks_of_zones_spoils_none() -> None:
    table = read("99 * * * * CRON_TZ=x y\n@daily a")
    assert [problem.line for problem in table.problems] == [1]
    assert [entry.line for entry in table.entries] == [2]


# The form


@pytest.mark.parametrize(
    ("text", "source", "form"),
    [
        ("@daily mail x", "table", "user"),
        ("@daily root x", "table", "system"),
        ("@daily root", "table", "user"),
        ("@daily root x\n@daily /bin/y z", "table", "user"),
        ("@daily root x\n0 3 * * * mail z", "table", "system"),
        ("@daily root x\nnonsense\nSHELL=/bin/sh", "table", "system"),
        ("@daily mail x", "/etc/crontab", "system"),
        ("@daily mail x", "/etc/cron.d/post", "system"),
        ("SHELL=/bin/sh\n# /etc/crontab: all jobs\n@daily mail x", "table", "system"),
        ("# mine\n# /etc/crontab\n@daily mail x", "table", "user"),
        ("", "table", "user"),
    ],
)
def test_the_form_is_told_by_root_or_by_the_place(text: str, source: str, form: str) -> None:
    assert read(text, source=source).form == form


def test_a_stated_form_is_not_guessed() -> None:
    assert only("@daily root x", form="user").command == "root x"
    assert only("@daily mail x", form="system").user == "mail"


def test_an_unknown_user_is_named_and_a_missing_command_too() -> None:
    table = read("@daily zoe x\n@daily zoe y\n@daily mail\n@daily mail x", form="system")
    assert [problem.line for problem in table.problems] == [1, 2, 3]
    assert "no user zoe" in table.problems[0].reason
    assert "after the user mail" in table.problems[2].reason


def test_each_user_is_looked_up_once() -> None:
    asked: list[str] = []

    def slow_directory(name: str) -> UserInfo | None:
        asked.append(name)
        return known_user(name)

    read("@daily mail x\n@daily zoe y\n" * 20, form="system", known_user=slow_directory)
    assert asked == ["mail", "zoe"]


def test_nobody_is_looked_up_for_a_users_crontab() -> None:
    def never(name: str) -> UserInfo | None:
        raise AssertionError(name)

    assert read("@daily mail x", form="user", known_user=never).problems == ()


def test_settings_are_shared_by_the_lines_under_them() -> None:
    table = read("A=1\n" + "@daily x\n" * 3)
    assert len({id(entry.env) for entry in table.entries}) == 1


def test_an_environment_cannot_be_changed() -> None:
    entry = only("@daily x")
    with pytest.raises(TypeError):
        entry.env["A"] = "1"


def test_a_file_of_very_many_jobs_is_read_to_a_bound_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crontab, "MAX_JOBS", 3)
    assert read("@daily x\n" * 3 + "\n# the end\n").problems == ()
    table = read("@daily x\n@daily y\n61 * * * * z\n@daily secret\n@daily v\n")
    assert [entry.command for entry in table.entries] == ["x", "y"]
    assert [problem.line for problem in table.problems] == [3, 4]
    assert table.problems[1].reason.endswith("from here on nothing was read: split it")
