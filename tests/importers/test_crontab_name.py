"""A job's name follows the job, not its place in the file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.importers.crontab import UserInfo, read_crontab
from timeball.importers.crontab_name import name_of, telling_word

JOBS = st.lists(
    st.sampled_from(["@daily a", "@daily b", "@hourly a", "0 3 * * * ./c.sh", "@daily a%x"]),
    max_size=8,
)
COMMENTS = st.lists(st.sampled_from(["", "# moved", "A=1", "99 * * * * wrong"]), max_size=8)


def names(text: str, *, source: str = "nightly.cron", tz: str = "UTC", user: str = "") -> list[str]:
    def known(name: str) -> UserInfo:
        return UserInfo(name=name, home="/")

    form = "system" if user else "user"
    table = read_crontab(text, source=source, form=form, default_tz=tz, known_user=known)
    return [entry.name for entry in table.entries]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("/usr/bin/backup --all", "backup"),
        ("./load.sh", "load"),
        ("cd /srv && ./Load_All.sh -v", "load-all"),
        ("source $ROOT/.env && cd $ROOT/x && ./nightly.sh &>> /var/log/x.log", "nightly"),
        (". ./env; ./nightly", "nightly"),
        ("/usr/bin/flock -n /tmp/x.lock /bin/bash -lc 'cd \"$D\" && ./main go >> l 2>&1'", "main"),
        ("flock -w 10 /tmp/x.lock /srv/refresh.sh", "refresh"),
        ("test -x /etc/init.d/tidy && /usr/sbin/tidy start", "tidy"),
        ("[ -f /x ] || touch /x", "touch"),
        ("A=1 nice -n 10 timeout 5m python3 -m shop.report", "shop-report"),
        ("bash /srv/shop/check.sh >> /log 2>&1", "check"),
        ("docker exec db pg_dump | gzip > /x", "docker"),
        ("cd /srv", "cd"),
        ("$HOME/run", "run"),
        ("(sleep 1; x)", "sleep"),
        ("1 2 3", "1-2-3"),
        ("日本語", "job"),
        ("", "job"),
        ("a" * 100, "a" * 32),
    ],
)
def test_the_telling_word_is_what_does_the_work(command: str, word: str) -> None:
    assert telling_word(command) == word


@pytest.mark.parametrize(
    ("source", "stem"),
    [
        ("/etc/crontab", "crontab"),
        ("/etc/cron.d/Shop Backup", "shop-backup"),
        ("a/02_nightly.cron", "02-nightly"),
        ("-", "crontab"),
        ("", "crontab"),
    ],
)
def test_a_name_begins_with_its_file(source: str, stem: str) -> None:
    assert name_of(source, "x", ("x",)).startswith(f"{stem}:x-")


def test_names_do_not_change_between_releases() -> None:
    # A schedule's history hangs on its name: a new way to compute it would fire everything anew.
    assert names("0 3 * * * ./c.sh") == ["nightly:c-37ff5b"]


@settings(max_examples=50)
@given(jobs=JOBS, others=COMMENTS, data=st.data())
def test_names_survive_when_lines_are_moved_and_others_change(
    jobs: list[str], others: list[str], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations([*jobs, *others]))
    assert sorted(names("\n".join(shuffled))) == sorted(names("\n".join(jobs)))


@settings(max_examples=50)
@given(jobs=JOBS)
def test_names_are_unique_and_twins_are_counted(jobs: list[str]) -> None:
    found = names("\n".join(jobs))
    assert len(set(found)) == len(jobs)
    twins = jobs.count("@daily a")
    base = names("@daily a")[0]
    assert [name for name in found if name.startswith(base)] == [base, f"{base}-2", f"{base}-3"][
        :twins
    ] + [f"{base}-{n}" for n in range(4, twins + 1)]


def test_another_job_has_another_name() -> None:
    variants = [
        names("@daily a"),
        names("@hourly a"),
        names("@daily a x"),
        names("@daily a%x"),
        names("@daily a", tz="Asia/Tokyo"),
        names("@daily root a", user="root"),
        names("@daily shop a", user="shop"),
    ]
    assert len({name for (name,) in variants}) == len(variants)


def test_how_a_line_is_laid_out_does_not_change_its_name() -> None:
    assert names("0 3 * * * a") == names("\t0\t3 *  * *   a\r\n")
