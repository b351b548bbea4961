"""Texts meant to hurt: each is refused at once, in little memory, in few words."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.cron import Terms, agenda, dateutil_rule, load_zone, read
from timeball.errors import InvalidSchedule

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
BYTES_MAX = 50 * 2**20
LINES_MAX = (
    60_000  # of Python: what takes a few milliseconds on a machine that has nothing else to do
)
BOMBS = {
    "a range of a hundred million": "0 0 1--100000000 * *",
    "a range of a hundred million days": "0 0 1-100000000 * *",
    "a long number": "9" * 900 + " * * * *",
    "a step of nothing": "*/0 * * * *",
    "a huge step": "*/99999999999999999999 * * * *",
    "ten megabytes": "x" * 10_000_000,
    "ten megabytes of fields": "* " * 5_000_000,
    "ten megabytes of list": "0" + ",0" * 5_000_000 + " * * * *",
    "ten megabytes of a nickname": "@" * 10_000_000,
    "ten megabytes of blanks": " " * 10_000_000,
    "a list of ranges": ",".join(["0-59"] * 60) + " * * * *",
    "a list in a list": "0 0 1,(2,(3,(4))) * *",
    "deep brackets": "H" + "(" * 400 + "1-2" + ")" * 400 + " * * * *",
    "many H": ",".join(["H/0"] * 80) + " * * * *",
    "a day that no month has": "0 0 30 2 *",
    "a day that no year has": "0 0 0 29 2 * " + ",".join(str(y) for y in range(1973, 2100, 4)),
    "weekdays that no month has": "0 0 0 31 2,4,6,9,11 ? " + ",".join(map(str, range(1970, 2020))),
    "digits of other scripts": "٣ * * * *",
    "wide digits": "\uff13 * * * *",
    "small digits": "1² * * * *",
    "a null": "\x00 * * * *",
    "another line": "* * * * *\n* * * * *",
    "a line of another kind": "* * * *\u2028*",
    "a lone surrogate": "\ud800 * * * *",
    "L5": "0 0 L5 * *",
    "#0": "0 0 * * 5#0",
    "#6": "0 0 * * 5#6",
    "an empty item": "1,,2 * * * *",
    "an interval of ages": "@every " + "9" * 500 + "w",
    "an interval of many parts": "@every " + "1h" * 400,
    "a calendar of many times": "@calendar every day at " + ",".join(["00:00"] * 150),
    "a calendar of many days": "@calendar every week on " + ",".join(["mon"] * 200) + ",x at 9:00",
    "a rule of no day": "@rrule 2026-01-05T09:00 FREQ=DAILY;INTERVAL=0",
    "a rule of every second": "@rrule 2026-01-05T09:00 FREQ=SECONDLY",
    "a rule of many times": "@rrule 2026-01-05T09:00 FREQ=DAILY;BYSECOND="
    + ",".join(map(str, range(60))),
}
ZONES = {
    "an abbreviation": "EST",
    "another one": "CEST",
    "a path": "../../etc/passwd",
    "an absolute path": "/etc/localtime",
    "a path within": "Europe/../Europe/Paris",
    "a long name": "Europe/" * 1_000_000,
    "an offset": "UTC+2",
    "nothing": "",
    "blanks": "   ",
    "a null": "Europe/Paris\x00",
    "other letters": "Europe/P\u0430ris",
    "no place": "posixrules",
}


class _TooMuchError(Exception):
    """More lines of Python ran than a refusal takes."""


def counted(call: Callable[[], Any]) -> None:
    """Call with a bound on the lines of Python that run: no clock, so no busy machine, decides."""
    lines = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        if lines > LINES_MAX:
            raise _TooMuchError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidSchedule) as caught:
        counted(call)
    return str(caught.value)


@pytest.mark.parametrize("what", BOMBS)
def test_no_text_takes_much_work_to_refuse(what: str) -> None:
    assert len(refused(lambda: read(BOMBS[what], name="tides"))) < 500


@pytest.mark.parametrize("what", BOMBS)
def test_no_text_takes_much_memory_to_refuse(what: str) -> None:
    text = BOMBS[what]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidSchedule):
            read(text, name="tides")
        assert tracemalloc.get_traced_memory()[1] < BYTES_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", ZONES)
def test_what_is_no_zone_is_refused_with_what_to_write(what: str) -> None:
    said = refused(lambda: load_zone(ZONES[what]))
    assert len(said) < 400
    assert "write" in said or "did you mean" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=YEARLY;BYDAY=MO;BYSETPOS=366",
        "FREQ=WEEKLY;INTERVAL=1000;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYYEARDAY=1;BYMONTH=7",
    ],
)
def test_a_recurrence_that_fits_no_day_is_given_up(rule: str) -> None:
    with pytest.raises(InvalidSchedule, match="never comes due"):
        read(f"@rrule 2026-01-05T09:00 {rule}")


def test_a_dateutil_whose_search_has_no_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dateutil_rule.counted()
    monkeypatch.delattr(dateutil_rule._Bounded, "_byeaster")
    monkeypatch.setattr(dateutil_rule, "counted", dateutil_rule.counted.__wrapped__)
    with pytest.raises(InvalidSchedule, match="this version of python-dateutil cannot be used"):
        read("@rrule 2026-01-05T09:00 FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30")


WORDS = st.sampled_from(
    [
        *("@every", "@calendar", "@rrule", "every", "2", "weeks", "days", "on", "mon,thu", "at"),
        *("09:00", "from", "2026-01-05", "90m", "5m", "2026-01-05T09:00", "FREQ=WEEKLY;BYDAY=MO"),
        *("FREQ=MONTHLY;BYDAY=5FR", "H", "H(1-5)", "H/7", "*", "L", "LW", "5#2", "*/7", "1-5", "?"),
    ]
)


@given(st.lists(WORDS, max_size=9).map(" ".join))
def test_any_words_are_understood_and_told_again_or_refused(text: str) -> None:
    try:
        found = read(text, name="tides")
    except InvalidSchedule:
        return
    assert read(found.canonical(), name="tides") == found


@given(
    st.text(max_size=40) | st.integers() | st.none(),
    st.lists(st.text("0123456789-/:* @holidysDEBY,", max_size=24), max_size=3),
    st.sampled_from(["skip", "next", "prev"]),
    st.integers(-1, 90_000),
)
def test_any_terms_mean_something_or_are_refused(
    expression: Any, exclude: list[str], on_excluded: Any, jitter_s: int
) -> None:
    try:
        terms = Terms(
            expression=expression,
            exclude=tuple(exclude),
            on_excluded=on_excluded,
            jitter_s=jitter_s,
        )
        found = agenda(terms, load_zone("UTC"), name="tides").next(NEW_YEAR)
    except InvalidSchedule:
        return
    assert found is None or found > NEW_YEAR
