"""Laws of the crontab reader: it reads anything, loses nothing, and does not take long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.importers.crontab import Crontab, UserInfo, read_crontab


def known_user(name: str) -> UserInfo | None:
    return UserInfo(name=name, home="/root") if name == "root" else None


def read(text: str, form: str = "user") -> Crontab:
    return read_crontab(text, source="t", form=form, default_tz="UTC", known_user=known_user)


def line_kinds() -> st.SearchStrategy[str]:
    word = st.text(max_size=12)
    schedule = st.sampled_from(["0 3 * * *", "@daily", "*/7 * * * *", "99 * * * *", "-@hourly"])
    setting = st.sampled_from(["A", "CRON_TZ", "SHELL", "MAILTO", "'B'", "C D"])
    zone = st.sampled_from(["Asia/Tokyo", "UTC", "Nowhere", ""])
    return st.one_of(
        word,
        st.builds("{} {}".format, schedule, word),
        st.builds("{} root {}".format, schedule, word),
        st.builds("{}={}".format, setting, st.one_of(word, zone)),
        st.builds("# {}".format, word),
        st.text(alphabet="\r\0\udcff =%\\\"'@#*-CRON_TZ09\t", max_size=20),
    )


@settings(max_examples=60)
@given(lines=st.lists(line_kinds(), max_size=12), form=st.sampled_from(["auto", "user", "system"]))
def test_any_text_is_read_and_no_line_gets_lost(lines: list[str], form: str) -> None:
    text = "\n".join(lines)
    table = read(text, form=form)
    told = [item.line for item in (*table.entries, *table.problems)]
    assert len(told) == len(set(told))
    for at, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        body = line.strip(" \t\r")
        setting = re.match(r"""["']?[A-Za-z_][\w.-]*["']?[ \t]*=""", body, re.ASCII)
        assert at in told or not body or body.startswith("#") or setting
    for problem in table.problems:
        assert problem.reason
        assert len(problem.text) <= 120
        assert (problem.text + problem.reason).isprintable()
    assert len({entry.name for entry in table.entries}) == len(table.entries)


def test_terminal_escapes_are_made_harmless() -> None:
    (problem,) = read("99 * * * * \x1b[2J\x1b]0;owned\x07 \u202e" + "x" * 200).problems
    assert problem.text.startswith(r"99 * * * * \x1b[2J\x1b]0;owned\x07 \u202e")
    assert problem.text.endswith("…")


@pytest.mark.slow
def test_ten_thousand_lines_are_read_in_a_moment() -> None:
    text = "".join(
        f"# number {n}\nA{n % 50}={n}\n{n % 60} {n % 24} * * * /srv/run {n}\n@daily x {n}\n"
        for n in range(2_500)
    )
    began = time.process_time()
    table = read(text)
    assert len(table.entries) == 5_000
    assert time.process_time() - began < 3.0  # usually a tenth of a second
