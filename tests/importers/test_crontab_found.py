"""A crontab as neutral records: what is a lock, a folder, a log and a comment in it."""

from __future__ import annotations

import pytest

from timeball.importers.crontab_found import crontab_findings, lock_of, plain
from timeball.importers.found import CommandCall, Findings, Options, Origin


def findings(text: str) -> Findings:
    return crontab_findings(text, source="some.cron")


def test_a_line_is_found_with_its_place_zone_comment_and_settings() -> None:
    text = "PATH=/opt\nCRON_TZ=Asia/Seoul\n# every night\n# at two\n30 2 * * * ./a\n"
    (found,) = findings(text).found
    assert (found.line, found.expression, found.tz) == (5, "30 2 * * *", "Asia/Seoul")
    assert found.comment == "every night\nat two"
    assert found.runs == CommandCall(shell_text="./a", env={"PATH": "/opt"})
    assert found.options == Options(max_retries=0)
    assert findings(text).origin is Origin.CRONTAB


def test_without_cron_tz_the_zone_is_left_to_its_default() -> None:
    first, second = findings("0 1 * * * a\nCRON_TZ=UTC\n0 1 * * * b\nCRON_TZ=\n").found
    assert (first.tz, first.defaulted) == (None, {"CRON_TZ"})
    assert (second.tz, second.defaulted) == ("UTC", frozenset())


def test_users_need_not_exist_here_and_bring_no_home() -> None:
    text = "0 1 * * * root a\n0 2 * * * nobody-of-that-name HOME=/x b\n"
    found = crontab_findings(text, source="/etc/cron.d/x").found
    assert [each.runs.user for each in found if isinstance(each.runs, CommandCall)] == [
        *("root", "nobody-of-that-name")
    ]
    assert all("HOME" not in each.runs.env for each in found if isinstance(each.runs, CommandCall))


def test_a_lock_that_gives_up_makes_a_run_skip_and_one_that_waits_does_not() -> None:
    first, second = findings("0 1 * * * flock -n /tmp/x a\n0 2 * * * flock /tmp/x b\n").found
    assert (first.options.overlap_runs, first.guard, first.key) == (
        "skip",
        "flock /tmp/x",
        "/tmp/x",
    )
    assert (second.options.overlap_runs, second.key) == (None, "/tmp/x")


@pytest.mark.parametrize(
    ("command", "lock"),
    [
        ("/usr/bin/flock -n /tmp/a.lock -c x", ("/tmp/a.lock", True)),
        ("flock --nonblock '/tmp/a' x", ("/tmp/a", True)),
        ("flock -w 10 /tmp/a x", ("/tmp/a", False)),
        ("flock -E 0 -n /tmp/a x", ("/tmp/a", True)),
        ("cd /srv && flock -n /tmp/a x", None),
        ("unflock -n /tmp/a x", None),
    ],
)
def test_a_lock_is_read_off_the_command(command: str, lock: tuple[str, bool] | None) -> None:
    assert lock_of(command) == lock


@pytest.mark.parametrize(
    ("command", "rest", "cwd", "log"),
    [
        ("cd /srv/app && ./a", "./a", "/srv/app", None),
        ("cd /srv/app && ./a >> log/a.log 2>&1", "./a", "/srv/app", "log/a.log"),
        ("./a &>> /var/log/a", "./a", None, "/var/log/a"),
        ("./a > /var/log/a.log 2>&1", "./a", None, "/var/log/a.log"),
        ("./a > /dev/null 2>&1", "./a > /dev/null 2>&1", None, None),
        ("pg_dump db > /backup/db.sql", "pg_dump db > /backup/db.sql", None, None),
        ("pg_dump db > /backup/db.sql 2>&1", "pg_dump db > /backup/db.sql 2>&1", None, None),
        ("cat x >> /data/all.csv", "cat x >> /data/all.csv", None, None),
        ("cd /srv && a || b", "cd /srv && a || b", None, None),
        ("cd /srv && a; b", "cd /srv && a; b", None, None),
        ("cd $ROOT && a", "cd $ROOT && a", None, None),
        ("sh -c 'a >> b.log 2>&1'", "sh -c 'a >> b.log 2>&1'", None, None),
    ],
)
def test_a_folder_and_a_log_are_taken_out_only_where_nothing_else_changes(
    command: str, rest: str, cwd: str | None, log: str | None
) -> None:
    assert plain(command) == (rest, cwd, log)


def test_what_cannot_be_used_needs_a_person_with_its_line() -> None:
    read = findings("0 1 * * * a\n@reboot b\n61 * * * * c --password hunter2\n")
    assert [each.line for each in read.found] == [1]
    assert [each.line for each in read.needs] == [2, 3]
    assert "hunter2" not in str(read.needs)


def test_the_text_shown_holds_no_secret_but_the_command_does() -> None:
    (found,) = findings("# token=abc\n0 1 * * * curl -H 'X-Api-Key: abc' https://u:pw@h/\n").found
    assert "abc" not in found.text + found.comment
    assert "pw" not in found.text
    assert "abc" in str(found.runs)
