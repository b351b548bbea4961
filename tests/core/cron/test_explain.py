"""Words, previews and warnings, each exactly as the user reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from tests.core.cron.oracle import plans, table

from timeball.core.cron import Terms, agenda, dst_preview, load_zone, parse, prose, warnings

AFTER = datetime(2026, 1, 1, tzinfo=UTC)
SAID = [
    ("30 2 * * *", "at 02:30 every day"),
    ("*/10 * * * 1-5", "every 10 minutes, Monday to Friday"),
    ("* * * * *", "every minute"),
    ("@hourly", "every hour"),
    ("30 * * * *", "at minute 30 of every hour"),
    ("*/40 * * * *", "at minutes 0 and 40 of every hour"),
    ("0-30 9 * * *", "at minutes 0 to 30 of the hour 9"),
    ("0 */2 * * *", "every 2 hours"),
    ("15 */2 * * *", "every 2 hours from 00:15 to 22:15"),
    ("30 9-17 * * *", "every hour from 09:30 to 17:30"),
    ("*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:50, Monday to Friday"),
    ("*/20 22-1 * * *", "every 20 minutes from 22:00 to 01:40"),
    ("* 9 * * *", "every minute from 09:00 to 09:59"),
    ("*/15 2,14 * * *", "every 15 minutes of the hours 2 and 14"),
    ("0 0,12 * * *", "at 00:00 and 12:00 every day"),
    ("0 9 * * 1,3,5", "at 09:00 on Monday, Wednesday and Friday"),
    ("0 9 * * 5-1", "at 09:00, Friday to Monday"),
    ("@weekly", "at 00:00 every Sunday"),
    ("0 0 * * 5#3", "at 00:00 on the third Friday of the month"),
    ("0 0 * 5 FRIL", "at 00:00 on the last Friday of May"),
    ("@monthly", "at 00:00 on the 1st of every month"),
    ("0 0 2,3,11,22 * *", "at 00:00 on the 2nd, the 3rd, the 11th and the 22nd of every month"),
    ("0 0 1-7 * *", "at 00:00 from the 1st to the 7th of every month"),
    ("0 0 */2 * *", "at 00:00 on every 2nd day of every month, from the 1st on"),
    ("0 0 L * *", "at 00:00 on the last day of every month"),
    ("0 0 L-3 * *", "at 00:00 on the 3rd day before the last day of every month"),
    ("0 0 LW * *", "at 00:00 on the last working day (Monday to Friday) of every month"),
    (
        "0 0 15W * *",
        "at 00:00 on the working day (Monday to Friday) nearest to the 15th of every month",
    ),
    ("@yearly", "at 00:00 on 1 January"),
    ("0 0 1 1,7 *", "at 00:00 on the 1st of January and July"),
    ("0 0 * NOV-FEB *", "at 00:00 every day from November to February"),
    ("0 0 13 * 5", "at 00:00 on the 13th of every month and also every Friday"),
    ("0 0 1 * 1-5", "at 00:00 on the 1st of every month and also on Monday to Friday"),
    ("0 0 */2 * 1", "at 00:00 on every 2nd day of every month, from the 1st on, if it is Monday"),
    (
        "0 0 1 * */2",
        "at 00:00 on the 1st of every month, if it is Sunday, Tuesday, Thursday or Saturday",
    ),
    ("0 0 1-31 * 1", "at 00:00 every day"),
    ("*/10 * * * * *", "every 10 seconds"),
    ("30 * * * * *", "at second 30 of every minute"),
    ("15 30 2 * * *", "at 02:30:15 every day"),
    ("*/10 */5 * * * *", "every 5 minutes, each time every 10 seconds of that minute"),
    ("0 0 0 1 1 * 2026,2028", "at 00:00 on 1 January in 2026 and 2028"),
    ("0 0 0 * * * 2026-2028", "at 00:00 every day from 2026 to 2028"),
]


@pytest.mark.parametrize(("text", "words"), SAID, ids=[case[0] for case in SAID])
def test_an_expression_is_said_in_plain_english(text: str, words: str) -> None:
    assert prose(parse(text)) == words


@given(plans())
def test_every_expression_can_be_said(plan: object) -> None:
    words = prose(parse(plan.text))
    assert words.startswith(("at ", "every "))
    assert "  " not in words


@pytest.mark.parametrize(
    ("text", "gap", "overlap", "spring", "autumn"),
    [
        (
            "30 2 * * *",
            None,
            None,
            "02:30 does not exist: runs at 03:00 instead",
            "nothing is due from 01:00 to 02:00: nothing changes",
        ),
        (
            "30 1,2 * * *",
            "skip",
            "first",
            "02:30 does not exist: skipped",
            "01:30 comes twice: runs once, the first time",
        ),
        (
            "0,30 1,2 * * *",
            "shift",
            "second",
            "02:00 and 02:30 do not exist: runs at 03:00 and 03:30 instead",
            "01:00 and 01:30 come twice: runs once, the second time",
        ),
        (
            "*/15 1,2 * * *",
            "prev_valid",
            "both",
            "02:00, 02:15, 02:30 … (4 times) do not exist: runs once at 01:59 instead",
            "01:00, 01:15, 01:30 … (4 times) come twice: runs both times",
        ),
        (
            "0 * * * *",
            None,
            None,
            "02:00 does not exist: skipped, so that the rhythm in real time goes on",
            "01:00 comes twice: runs both times, so that the rhythm in real time goes on",
        ),
        (
            "*/15 30 2 * * *",
            "prev_valid",
            None,
            "02:30, 02:30:15, 02:30:30 … (4 times) do not exist: runs once at 01:59:59 instead",
            "nothing is due from 01:00 to 02:00: nothing changes",
        ),
    ],
)
def test_the_preview_tells_what_the_next_transitions_do(
    text: str, gap: str | None, overlap: str | None, spring: str, autumn: str
) -> None:
    first, second = dst_preview(table(text, "America/New_York", gap, overlap), AFTER)
    assert (first.at, first.before, first.after) == (
        datetime(2026, 3, 8, 7, tzinfo=UTC),
        "2026-03-08 02:00",
        "2026-03-08 03:00",
    )
    assert (second.at, second.before, second.after) == (
        datetime(2026, 11, 1, 6, tzinfo=UTC),
        "2026-11-01 02:00",
        "2026-11-01 01:00",
    )
    assert (first.text, second.text) == (spring, autumn)


def test_a_zone_that_never_jumps_has_nothing_to_preview() -> None:
    assert dst_preview(table("30 2 * * *", "UTC"), AFTER) == []
    assert dst_preview(table("30 2 * * *", "Asia/Tokyo"), AFTER) == []


def test_the_preview_begins_after_the_transition_it_is_asked_at() -> None:
    timetable = table("30 2 * * *", "Europe/Paris")
    first, *others = dst_preview(timetable, AFTER, 6)
    assert len(others) == 5
    assert dst_preview(timetable, first.at, 5) == others
    assert dst_preview(timetable, first.at - timedelta(seconds=1), 1) == [first]


def test_the_missing_seconds_are_not_counted_for_ever() -> None:
    (first,) = dst_preview(table("* * 2 * * *", "Europe/Paris"), AFTER, 1)
    assert first.affected == 1000
    assert "(1000+ times)" in first.text


@pytest.mark.parametrize(
    ("text", "zone", "said"),
    [
        (
            "0 0 13 * 5",
            "UTC",
            "either is enough: first on Friday 2026-01-02, Friday 2026-01-09, Tuesday 2026-01-13",
        ),
        ("0 0 */2 * 1", "UTC", "both must fit: first on Monday 2026-01-05, Monday 2026-01-19"),
        ("*/7 * * * *", "UTC", "*/7 in the minute field does not divide 60: after 56"),
        ("0 */5 * * *", "UTC", "*/5 in the hour field does not divide 24: after 20"),
        ("0 0-23/5 * * *", "UTC", "after 20 it starts again, 4 later"),
        ("0 0 1 */5 *", "UTC", "after 11 it starts again, 2 later"),
        ("0 0 * * */2", "UTC", "after 6 it starts again, 1 later"),
        ("0 0 * 2 1#5", "UTC", "next comes due in more than 5 years, at 2044-02-29 00:00 UTC"),
        ("0 0 0 1 1 * 2020", "UTC", "never comes due again"),
        ("0 0 2 * * *", "UTC", "6 fields, so the first is seconds"),
        ("0 2 * * *", "Europe/Kiev", "Europe/Kiev is an old name; write Europe/Kyiv"),
    ],
)
def test_whoever_registers_a_surprise_is_told(text: str, zone: str, said: str) -> None:
    assert any(said in warning for warning in warnings(table(text, zone), AFTER))


@pytest.mark.parametrize(
    "text",
    ["30 2 * * *", "*/15 9-17 * * 1-5", "0 0 L * *", "0 0 29 2 *", "@hourly", "5/20 * * * *"],
)
def test_an_ordinary_schedule_has_nothing_to_be_told(text: str) -> None:
    assert warnings(table(text, "Europe/Paris"), AFTER) == []


def test_several_expressions_are_warned_of_as_one_schedule() -> None:
    terms = Terms(expression="0 0 1 * 1", any_of=("*/7 * * * *", "@every 5m"))
    said = warnings(agenda(terms, load_zone("US/Pacific"), name="tides"), AFTER)
    assert [text.split()[0] for text in said] == ["day-of-month", "the", "time"]
    gone = Terms(expression="@daily", end_at=AFTER - timedelta(days=1))
    assert warnings(agenda(gone, load_zone("UTC"), name="tides"), AFTER) == [
        "it never comes due again: its years, or its end, have passed"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@every 90m 5m", "every 1h30m of elapsed time, 5m after its multiples since 1970"),
        (
            "@calendar every 2 weeks on mon,thu at 09:00 from 2026-01-05",
            "every 2 weeks on mon, thu at 09:00 from 2026-01-05",
        ),
        (
            "@rrule 2026-01-05T09:00 FREQ=WEEKLY;BYDAY=MO",
            "by the recurrence FREQ=WEEKLY;BYDAY=MO, from 2026-01-05 09:00",
        ),
    ],
)
def test_a_rule_is_said_in_words_too(text: str, said: str) -> None:
    (rule,) = agenda(Terms(expression=text), load_zone("UTC"), name="tides").expressions
    assert prose(rule) == said


def test_what_a_name_picks_is_said_as_it_was_picked() -> None:
    cron = parse("H 9 * * *", name="tides")
    assert prose(cron) == f"at 09:{cron.minute.values[0]:02} every day"
    assert prose(parse("0 9 1 * MON", day_rule="and")) == (
        "at 09:00 on the 1st of every month, if it is Monday"
    )
