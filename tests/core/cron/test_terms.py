"""Terms as text: one text for equal terms, and no other text is taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.cron import (
    DayRule,
    Gap,
    OnExcluded,
    Overlap,
    Policy,
    Terms,
    agenda,
    load_zone,
    settled,
)
from timeball.errors import InvalidSchedule

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
zones = st.integers(-12, 12).map(lambda hours: timezone(timedelta(hours=hours)))
instants = st.none() | st.datetimes(datetime(1900, 1, 2), datetime(2999, 1, 1), timezones=zones)  # noqa: DTZ001 - bounds of a strategy have no zone
texts = st.lists(st.sampled_from(["0 9 * * 1", "@every 5m", "2026-12-25", "holidays:DE-BY"]))


@st.composite
def terms(draw: st.DrawFn) -> Terms:
    start, end = sorted([draw(instants), draw(instants)], key=lambda at: (at is None, at or NOON))
    return Terms(
        expression="0 9 * * *",
        any_of=tuple(draw(texts)[:32]),
        exclude=tuple(draw(texts)),
        on_excluded=draw(st.sampled_from(OnExcluded)),
        start_at=start,
        end_at=end,
        max_runs=draw(st.none() | st.integers(1, 2**53)),
        jitter_s=draw(st.integers(0, 86_400)),
        day_rule=draw(st.sampled_from(DayRule)),
    )


@pytest.mark.slow
@given(terms())
def test_reading_gives_what_was_written(given_terms: Terms) -> None:
    text = given_terms.to_json()
    back = Terms.from_json(text, expression="0 9 * * *")
    assert back == given_terms
    assert back.to_json() == text


def test_usual_terms_take_no_room() -> None:
    assert Terms(expression="@daily").to_json() == "{}"
    assert Terms.from_json("{}", expression="@daily") == Terms(expression="@daily")


def test_the_text_is_the_same_however_the_terms_were_given() -> None:
    one = Terms(expression="@daily", jitter_s=5, exclude=["2026-12-25"], start_at=NOON)  # type: ignore[arg-type]  # a list will do
    east = NOON.astimezone(timezone(timedelta(hours=3)))
    other = Terms(expression="@daily", start_at=east, exclude=("2026-12-25",), jitter_s=5)
    assert one == other
    assert one.to_json() == other.to_json()
    assert one.to_json() == (
        '{"exclude":["2026-12-25"],"jitter_s":5,"start_at":"2026-03-08T12:00:00+00:00"}'
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ("{'jitter_s': 1}", "no JSON object"),
        ('{"jitter_s": 1', "no JSON object"),
        ("[" * 30_000, "no JSON object"),
        ('{"any_of":' * 6_000, "no JSON object"),
        (" " * 70_000, "bytes"),
        ('{"expression": "@daily"}', "unknown; there are any_of"),
        ('{"Jitter_s": 1}', "unknown"),
        ('{"jitter_s": "1"}', "whole number"),
        ('{"jitter_s": 1.5}', "whole number"),
        ('{"jitter_s": true}', "whole number"),
        ('{"jitter_s": -1}', "whole number"),
        ('{"jitter_s": 86401}', "whole number"),
        ('{"jitter_s": null}', "whole number"),
        ('{"max_runs": 0}', "whole number"),
        ('{"max_runs": 1e400}', "no JSON object"),
        ('{"any_of": "0 9 * * *"}', "list of texts"),
        ('{"any_of": [["0 9 * * *"]]}', "plain ASCII"),
        ('{"any_of": [5]}', "plain ASCII"),
        ('{"exclude": {"a": 1}}', "list of texts"),
        ('{"exclude": ["٣"]}', "plain ASCII"),
        ('{"on_excluded": "drop"}', "skip, next, prev"),
        ('{"on_excluded": ["skip"]}', "skip, next, prev"),
        ('{"day_rule": 5}', "cron, and, or"),
        ('{"start_at": "tomorrow"}', "an instant such as"),
        ('{"start_at": 5}', "an instant such as"),
        ('{"start_at": "2026-03-08T12:00:00"}', "aware"),
        ('{"start_at": "2026-03-08T12:00:00Z", "end_at": "2026-03-08T11:00:00Z"}', "exchange"),
        ('{"end_at": "0001-01-01T00:00:00+14:00"}', "1900 to 2999"),
        ('{"end_at": "3000-01-01T00:00:00Z"}', "1900 to 2999"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_no_other_text_is_taken(text: str, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why) as caught:
        Terms.from_json(text, expression="@daily")
    assert len(str(caught.value)) < 400


def test_too_many_texts_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="at most 32"):
        Terms(expression="@daily", any_of=("@daily",) * 33)
    with pytest.raises(InvalidSchedule, match="at most 2000"):
        Terms(expression="@daily", exclude=("2026-12-25",) * 2_001)


def test_what_is_settled_is_plain_and_has_a_policy() -> None:
    terms, policy = settled(Terms(expression="@hourly", any_of=("0 0 * * SUN-TUE",)), name="tides")
    assert (terms.expression, terms.any_of) == ("0 * * * *", ("0 0 * * 0-2",))
    assert policy == Policy(Gap.NEXT_VALID, Overlap.FIRST)  # one of them is fixed
    terms, policy = settled(Terms(expression="@hourly", any_of=("@every 60m",)), name="tides")
    assert terms.any_of == ("@every 1h",)
    assert policy == Policy(Gap.SKIP, Overlap.BOTH)
    _, policy = settled(Terms(expression="@hourly"), overlap="first", name="tides")
    assert policy == Policy(Gap.SKIP, Overlap.FIRST)


@pytest.mark.parametrize(("wall", "rule"), [("0 9 * * *", {}), ("@hourly", {"overlap": "first"})])
def test_elapsed_time_and_times_of_the_wall_clock_are_two_schedules(
    wall: str, rule: dict[str, str]
) -> None:
    # New zone data may put 09:00 before or after an @every that was decided: no one cursor knows
    for expression, other in ((wall, "@every 7h"), ("@every 7h", wall)):
        mixed = Terms(expression=expression, any_of=("@every 5h", other))
        with pytest.raises(InvalidSchedule, match="schedule of its own"):
            settled(mixed, **rule, name="tides")  # type: ignore[arg-type]  # its text will do
    settled(Terms(expression="@every 7h", any_of=("@every 5h",)), **rule, name="tides")  # type: ignore[arg-type]  # its text will do


@pytest.mark.parametrize(
    ("rule", "days"),
    [("cron", "1 5 6 12 13 19 20 26 27"), ("and", "6 19"), ("or", "1 5 6 12 13 19 20 26 27")],
)
def test_the_rule_for_both_day_fields_is_the_callers(rule: str, days: str) -> None:
    given_terms = Terms(expression="0 0 1,6,19 * 0,6", day_rule=rule)  # type: ignore[arg-type]  # its text will do
    table = agenda(given_terms, load_zone("UTC"), name="tides")
    begin = datetime(2026, 11, 30, tzinfo=UTC)
    found = [at.day for at in table.between(begin, begin + timedelta(days=31))]
    assert found == [int(day) for day in days.split()]


def test_a_day_field_of_every_day_restricts_nothing_under_any_rule() -> None:
    begin = datetime(2026, 11, 30, tzinfo=UTC)
    for rule in DayRule:
        table = agenda(Terms(expression="0 0 * * 1", day_rule=rule), load_zone("UTC"), name="a")
        found = table.between(begin, begin + timedelta(days=14))
        assert [at.day for at in found] == [7, 14]
    starred = {
        rule: agenda(
            Terms(expression="0 0 */10 * 1", day_rule=rule), load_zone("UTC"), name="a"
        ).between(begin, begin + timedelta(days=31))
        for rule in DayRule
    }
    assert [at.day for at in starred[DayRule.CRON]] == [21]
    assert starred[DayRule.AND] == starred[DayRule.CRON]
    assert [at.day for at in starred[DayRule.OR]] == [1, 7, 11, 14, 21, 28, 31]
