"""schedules.toml: what is written is read again, and what is wrong is told with its line."""

from __future__ import annotations

import string
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.client.specs import SCHEDULE_OPTIONS
from timeball.importers.found import (
    CommandCall,
    Findings,
    Found,
    KindCall,
    Needs,
    Options,
    Origin,
)
from timeball.importers.toml_file import toml_findings
from timeball.importers.toml_places import toml_lines
from timeball.importers.toml_text import toml_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
WHOLE = st.integers(0, 2**40)
SECONDS = st.floats(0, 1e9, allow_nan=False)
INSTANT = st.datetimes(
    datetime.fromisoformat("1970-01-02"),
    datetime.fromisoformat("2900-01-01"),
    timezones=st.sampled_from(
        [UTC, timezone(timedelta(hours=-3, minutes=-30)), timezone(timedelta(seconds=1052))]
    ),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
RUNS = (
    st.builds(KindCall, kind=TEXT, args=st.dictionaries(TEXT, JSON, max_size=3))
    | st.builds(
        CommandCall,
        argv=st.just(()),
        shell_text=TEXT,
        shell=TEXT,
        cwd=st.none() | TEXT,
        env=st.dictionaries(TEXT, TEXT, max_size=3),
        user=st.none() | TEXT,
        stdin=TEXT,
    )
    | st.builds(CommandCall, argv=st.lists(TEXT, min_size=1, max_size=3).map(tuple))
)
OPTIONS = st.builds(
    Options,
    **{name: st.none() | TEXT for name in ("queue", "catchup", "overlap_runs", "gap", "dst")},
    **{name: st.none() | WHOLE for name in ("priority", "max_retries", "max_runs", "jitter_s")},
    **{name: st.none() | SECONDS for name in ("timeout_s", "catchup_window_s", "grace_s")},
    **{name: st.none() | INSTANT for name in ("start_at", "end_at")},
    any_of=st.none() | st.lists(TEXT, max_size=2).map(tuple),
    paused=st.none() | st.booleans(),
)
FOUND = st.builds(
    Found,
    name=NAME,
    expression=st.sampled_from(["30 2 * * *", "@every 90m", "*/5 * * * 1-5", "0 0 L * *"]),
    tz=st.none() | TEXT,
    runs=RUNS,
    options=OPTIONS,
    line=st.integers(0, 99),
    text=TEXT,
    comment=TEXT,
    notes=st.lists(TEXT, max_size=2).map(tuple),
    needs=st.lists(st.builds(Needs, line=WHOLE, name=TEXT, text=TEXT), max_size=2).map(tuple),
)


def findings(*found: Found, **more: object) -> Findings:
    return Findings(origin=Origin.CELERY, source="/srv/beat.py", found=found, **more)  # type: ignore[arg-type]  # a test's own


@settings(max_examples=20)
@given(st.lists(FOUND, max_size=4, unique_by=lambda each: each.name))
def test_what_is_written_is_read_again(found: list[Found]) -> None:
    read = toml_findings(toml_text(findings(*found)), source="x")
    assert read.needs == ()
    assert list(read.found) == found


@settings(max_examples=10)
@given(st.lists(FOUND, max_size=3, unique_by=lambda each: each.name))
def test_the_same_schedules_give_the_same_text(found: list[Found]) -> None:
    assert toml_text(findings(*found)) == toml_text(findings(*[replace(each) for each in found]))


@settings(max_examples=10)
@given(st.lists(FOUND, min_size=1, max_size=3, unique_by=lambda each: each.name))
def test_each_schedule_stands_on_the_line_that_is_told(found: list[Found]) -> None:
    text = toml_text(findings(*found))
    for each in toml_findings(text, source="x").found:
        assert text.split("\n")[each.line - 1].startswith("[schedules.")


@given(st.text(alphabet=string.printable, max_size=200))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    read = toml_findings(text, source="x")
    assert all(each.line >= 1 for each in read.needs)


def test_every_option_of_a_schedule_can_be_written() -> None:
    assert {each.name for each in fields(Options)} - {"paused"} == SCHEDULE_OPTIONS - {
        *("args", "source")
    }


def test_what_needs_a_person_is_a_comment_with_file_and_line() -> None:
    remark = Needs(line=7, name="nightly", text="decide\nthis")
    found = Found(
        name="nightly", expression="@daily", runs=KindCall(kind="a.b"), line=7, needs=(remark,)
    )
    text = toml_text(findings(found, needs=(Needs(line=3, name="", text="a limit"),)))
    assert "# needs you, beat.py:3: a limit\n" in text
    assert "# needs you, beat.py:7: nightly: decide\\nthis\n[schedules.nightly]\n" in text


def test_what_does_not_hold_is_written_down_and_not_read() -> None:
    found = Found(name="a", expression="@daily", runs=KindCall(kind="a.b"), line=7, holds=False)
    text = toml_text(findings(found), default_tz="UTC")
    assert '# [schedules.a]\n# cron = "@daily"\n# tz = "UTC"\n# kind = "a.b"\n' in text
    assert toml_findings(text, source="x").found == ()


def test_the_default_zone_is_written_where_none_is_named() -> None:
    one = Found(name="a", expression="@daily", runs=KindCall(kind="a.b"))
    other = replace(one, name="b", tz="Asia/Seoul")
    text = toml_text(findings(one, other), default_tz="Europe/Paris")
    assert [each.tz for each in toml_findings(text, source="x").found] == [
        *("Europe/Paris", "Asia/Seoul")
    ]


FAULTY = """\
schedule = 1
[schedules.a]
cron = "61 * * * *"
kind = "x"
overlap_run = "skip"
[schedules."b c"]
cron = "@daily"
command = ["x", 1]
timeout_s = "5"
[schedules.c]
tz = "UTC"
[schedules.d]
cron = "@daily"
kind = "x"
command = "y"
[schedules.e]
cron = "@daily"
kind = "x"
user = "root"
args.token = nothing
"""


def test_a_key_outside_of_every_schedule_is_told_where_to_go() -> None:
    (needs,) = toml_findings('tz = "Europe/Paris"', source="x").needs
    assert needs.text == "tz is not known: write it below [schedules.NAME]"


def test_all_problems_are_told_at_once_with_their_lines() -> None:
    text = FAULTY.replace("nothing", '"hunter2"')
    told = {(each.line, each.name): each.text for each in toml_findings(text, source="x").needs}
    assert told[1, ""] == "schedule is not known: did you mean schedules?"
    assert told[3, "a"].startswith("minute field: '61' is out of range")
    assert told[5, "a"] == "overlap_run is not known: did you mean overlap_runs?"
    assert told[8, "b c"].endswith(
        "write a text for the shell, or a list of the program and its arguments"
    )
    assert told[9, "b c"] == "timeout_s is '5': write a number of seconds"
    assert told[12, "d"] == "it runs two things: write one of kind, command and jobs"
    assert told[19, "e"] == "user does not go with kind"
    assert (10, "c") in told
    assert toml_findings(text, source="x").found == ()


def test_what_is_no_toml_is_told_with_its_line() -> None:
    (told,) = toml_findings(FAULTY, source="x").needs
    assert told.line == 20
    assert told.text.startswith("it is not TOML: ")


@pytest.mark.parametrize("text", ["x = " + "[" * 50_000, "#" * (1 << 21)])
def test_a_bomb_is_a_problem_in_words(text: str) -> None:
    (told,) = toml_findings(text, source="x").needs
    assert "it is" in told.text


def test_a_secret_is_not_repeated_in_a_problem() -> None:
    text = '[schedules.a]\ncron = "@daily"\ncommand = 5\nstdin = 1\nenv = "PASSWORD=hunter2"\n'
    assert "hunter2" not in str(toml_findings(text, source="x").needs)


def test_lines_are_found_in_spite_of_quotes_brackets_and_comments() -> None:
    text = '''\
a = """
[not.a.table]
"""
b = [ # [
  "]", '[x]',
]
[t."x.y"] # "
c.d = { e = "]" }
"=" = 1
[[list]]
'''
    assert toml_lines(text) == {
        ("a",): 1,
        ("b",): 4,
        ("t", "x.y"): 7,
        ("t", "x.y", "c"): 8,
        ("t", "x.y", "c", "d"): 8,
        ("t", "x.y", "="): 9,
        ("list",): 10,
    }
