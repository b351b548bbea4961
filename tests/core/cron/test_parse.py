"""The dialect, its refusals, and texts meant to hurt."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timeball.core.cron import Cron, parse
from timeball.errors import InvalidSchedule

BOMBS = [
    "0 0 1--100000000 * *",
    "0 0 1-100000000 * *",
    "0-99999999999999999999 * * * *",
    "*/0 * * * *",
    "*/99999999999999999999 * * * *",
    "x" * 10_000_000,
    "* " * 5_000_000,
    "@" * 10_000_000,
    ("0-59," * 2_000)[:-1] + " * * * *",
    "0 0 0 1 1 * " + ("1970-2999," * 90)[:-1],
    "9" * 900 + " * * * *",
    "٣ * * * *",
    "\uff13 * * * *",
    "1² * * * *",
    "0 0 30 2 *",
    "0 0 0 29 2 * 2023",
    "\x00 * * * *",
    "1\u2028 * * * *",
]
REFUSED = [
    # text, the field or thing at fault, the bad text, a part of what to write instead
    ("61 * * * *", "minute", "'61'", "0-59"),
    ("* 24 * * *", "hour", "'24'", "0-23"),
    ("60 * * * * *", "second", "'60'", "0-59"),
    ("0 0 0 * *", "day-of-month", "'0'", "1-31"),
    ("0 0 32 * *", "day-of-month", "'32'", "1-31"),
    ("0 0 * 13 *", "month", "'13'", "JAN-DEC"),
    ("0 0 * * 8", "day-of-week", "'8'", "SUN-SAT"),
    ("0 0 * * MONDAY", "day-of-week", "'MONDAY'", "SUN-SAT"),
    ("0 0 * MON *", "month", "'MON'", "JAN-DEC"),
    ("* 1,,2 * * *", "hour", "'1,,2'", "lists"),
    ("* , * * *", "hour", "','", "lists"),
    ("1- * * * *", "minute", "'1-'", "ranges"),
    ("-1 * * * *", "minute", "'-1'", "ranges"),
    ("5-2-3 * * * *", "minute", "'5-2-3'", "ranges"),
    ("*-5 * * * *", "minute", "'*-5'", "ranges"),
    ("*/0 * * * *", "minute", "'*/0'", "steps"),
    ("*/90 * * * *", "minute", "'*/90'", "1 to 60"),
    ("* */25 * * *", "hour", "'*/25'", "1 to 24"),
    ("? * * * *", "minute", "'?'", "0-59"),
    ("0 0 ?,1 * *", "day-of-month", "'?'", "1-31"),
    ("0 0 ?/2 * *", "day-of-month", "'?/2'", "1-31"),
    ("0 0 L5 * *", "day-of-month", "'L5'", "L-3"),
    ("0 0 L-31 * *", "day-of-month", "'L-31'", "L-3"),
    ("0 0 0W * *", "day-of-month", "'0W'", "15W"),
    ("0 0 1-5W * *", "day-of-month", "'1-5W'", "15W"),
    ("0 0 * * L", "day-of-week", "'L'", "5L"),
    ("0 0 * * L5", "day-of-week", "'L5'", "5L"),
    ("0 0 * * 5#0", "day-of-week", "'5#0'", "1 to 5"),
    ("0 0 * * 5#6", "day-of-week", "'5#6'", "1 to 5"),
    ("0 0 0 * * * 1969", "year", "'1969'", "1970-2999"),
    ("0 0 0 * * * 2028-2026", "year", "'2028-2026'", "backwards"),
    ("* * * *", "expression", "4 fields", "day-of-week"),
    ("* * * * * * * *", "expression", "8 fields", "year last"),
    ("", "expression", "0 fields", "minute hour"),
    ("@reboot", "expression", "@reboot", "@daily"),
    ("@fortnightly", "expression", "@fortnightly", "@weekly"),
    ("* * *\n* *", "expression", "line break", "one expression"),
    ("0 0 31 4,6,9,11 *", "day-of-month", "0 0 31 4,6,9,11 *", "L for its last day"),
    ("0 0 31W 2 *", "day-of-month", "0 0 31W 2 *", "never comes due"),
]
SAME = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("  00\t05 * *  * \n", "0 5 * * *"),
    ("5-5/15 * * * *", "5 * * * *"),
    ("59/15 * * * *", "59 * * * *"),
    ("*/1 * * * *", "* * * * *"),
    ("0 0 ? jan-mar mon", "0 0 * 1-3 1"),
    ("0 0 * * 7", "0 0 * * 0"),
    ("0 0 * * SUN-TUE", "0 0 * * 0-2"),
    ("0 0 * * 7-2", "0 0 * * 0-2"),
    ("0 0 l-3,lw * *", "0 0 L-3,LW * *"),
    ("0 0 * * FRI#3,7L", "0 0 * * 5#3,0L"),
]
VALUES = [
    ("50-10/10 * * * *", "minute", (0, 10, 50)),
    ("5/15 * * * *", "minute", (5, 20, 35, 50)),
    ("0 22-2 * * *", "hour", (0, 1, 2, 22, 23)),
    ("0 20-4/2 * * *", "hour", (0, 2, 4, 20, 22)),
    ("0 0 28-3 * *", "day", (1, 2, 3, 28, 29, 30, 31)),
    ("0 0 * NOV-FEB *", "month", (1, 2, 11, 12)),
    ("0 0 * * FRI-SUN", "weekday", (0, 5, 6)),
    ("0 0 * * 5-7", "weekday", (0, 5, 6)),
    ("0 0 * * 5-1", "weekday", (0, 1, 5, 6)),
    ("0 0 * * */2", "weekday", (0, 2, 4, 6)),
    ("0 0 * * 1-7/2", "weekday", (0, 1, 3, 5)),
    ("0 0 * * 0-7", "weekday", (0, 1, 2, 3, 4, 5, 6)),
    ("0 0 0 * * * 2026-2030/2", "year", (2026, 2028, 2030)),
]


@pytest.mark.parametrize("text", BOMBS, ids=lambda text: ascii(text[:24]))
def test_no_text_bomb_expands(text: str) -> None:
    spent = []
    for _ in range(3):  # the quickest counts: a busy machine is not the parser's doing
        begin = perf_counter()
        with pytest.raises(InvalidSchedule) as caught:
            parse(text)
        spent.append(perf_counter() - begin)
    assert min(spent) < 0.01
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "field", "bad", "advice"), REFUSED, ids=[ascii(case[0]) for case in REFUSED]
)
def test_a_refusal_names_the_field_the_text_and_the_way_out(
    text: str, field: str, bad: str, advice: str
) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)
    for part in (field, bad, advice):
        assert part in str(caught.value)


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_no_text_is_refused_as_such(text: object) -> None:
    with pytest.raises(InvalidSchedule, match=type(text).__name__):
        parse(text)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(("text", "plain"), SAME)
def test_spelling_makes_no_difference(text: str, plain: str) -> None:
    assert parse(text) == parse(plain)
    assert str(parse(text)) == plain


@pytest.mark.parametrize(("text", "field", "values"), VALUES)
def test_ranges_wrap_and_steps_count_within_the_field(
    text: str, field: str, values: tuple[int, ...]
) -> None:
    assert getattr(parse(text), field).values == values


def test_seconds_tell_two_expressions_apart_even_when_they_are_zero() -> None:
    assert parse("0 0 0 * * *") != parse("0 0 * * *")


VALUES_WRITTEN = [
    "*",
    "?",
    "0",
    "7",
    "5",
    "31",
    "59",
    "1-5",
    "22-2",
    "*/7",
    "*/2",
    "5/15",
    "0-59/10",
]
DAYS_WRITTEN = ["L", "L-3", "15W", "LW", "5#3", "FRIL", "MON-FRI", "NOV-FEB", "2026", "@daily", "/"]
WORDS = st.sampled_from([*VALUES_WRITTEN, *DAYS_WRITTEN])


def accepted(text: str) -> Cron | None:
    try:
        return parse(text)
    except InvalidSchedule:
        return None


@given(st.lists(st.lists(WORDS, min_size=1, max_size=3).map(",".join), min_size=5, max_size=7))
@example(["0", "0", "*", "*", "7/2"])
@example(["0", "0", "*", "*", "7-7"])
@example(["0", "0", "L", "2", "1#5"])
def test_the_canonical_text_means_the_same(fields: list[str]) -> None:
    cron = accepted(" ".join(fields))
    if cron is not None:
        assert parse(cron.canonical()) == cron
        assert parse(cron.canonical()).canonical() == cron.canonical()


@given(st.one_of(st.text(), st.text("*/-,#?LW0123456789 \t@", max_size=60)))
def test_any_text_is_understood_or_refused(text: str) -> None:
    cron = accepted(text)
    assert cron is None or parse(str(cron)) == cron
