"""Exactly one decision per occurrence, whatever was missed and however it is cut up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.cron import Due, Occurrence, Policy, Terms, agenda, load_zone
from timeball.core.misfire import (
    BOUND,
    OCCURRENCE_ARG,
    Catchup,
    MisfireRule,
    Plan,
    backfill,
    drop,
    plan,
)
from timeball.core.records import Decision, OccurrenceDecision, Schedule, ScheduleSpec
from timeball.errors import InvalidPayload, UsageError

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def tell(at: datetime) -> Occurrence:
    return Occurrence(at=at, local=at.isoformat(), fold=0, shifted=False)


MINUTES = [NOON + MINUTE * n for n in range(1, 3_000)]


@dataclass
class Row:
    """An agenda whose occurrences are written down."""

    instants: Iterable[datetime]
    reasons: dict[datetime, str] = field(default_factory=dict)
    jitter: timedelta = timedelta(0)
    describe: Callable[[datetime], Occurrence] = tell

    def occurrences(self, after: datetime) -> Iterator[Due]:
        for at in self.instants:
            if at > after:
                yield Due(at, at + self.jitter, self.reasons.get(at))

    def runs(self, after: datetime) -> Iterator[Due]:
        return (due for due in self.occurrences(after) if due.reason is None)


def schedule(catchup: str = "last", *, cursor: datetime = NOON, args: str = "{}") -> Schedule:
    spec = ScheduleSpec(
        name="tides",
        kind="tide",
        expression="* * * * *",
        tz="UTC",
        gap="skip",
        overlap="both",
        args=args,
        catchup=catchup,
    )
    return Schedule(1, spec, 1, cursor, cursor, "active", None)


@dataclass(frozen=True)
class Every:
    """Instants at equal distances, without end."""

    step: timedelta
    after: datetime = NOON

    def __iter__(self) -> Iterator[datetime]:
        return (self.after + self.step * n for n in count(1))


def decide(
    catchup: str, now: datetime, *, step: timedelta = MINUTE, bound: int = BOUND, **rule: Any
) -> Plan:
    return plan(
        schedule(catchup),
        Row(Every(step)),
        now,
        rule=MisfireRule(**rule),
        bound=bound,
    )


def fired(decisions: list[OccurrenceDecision]) -> list[datetime]:
    return [row.nominal_at for row in decisions if row.decision is Decision.FIRED]


def reasons(decisions: list[OccurrenceDecision]) -> list[str | None]:
    return [row.reason for row in decisions]


def told(decision: OccurrenceDecision) -> dict[str, Any]:
    return json.loads(decision.args)[OCCURRENCE_ARG]  # type: ignore[no-any-return]  # JSON


# On time


def test_an_occurrence_on_time_runs_whatever_the_policy() -> None:
    for catchup in Catchup:
        made = decide(catchup, NOON + MINUTE)
        assert fired(made.decisions) == [NOON + MINUTE]
        assert (made.cursor, made.next_at) == (NOON + MINUTE, NOON + 2 * MINUTE)
        assert not told(made.decisions[0])["catchup"]


def test_an_occurrence_runs_at_its_instant_and_not_a_moment_before() -> None:
    just_before = NOON + MINUTE - timedelta(microseconds=1)
    made = decide("last", just_before)
    assert made == ([], NOON, NOON + MINUTE, NOON + MINUTE)


def test_a_schedule_that_has_ended_has_no_next_one() -> None:
    made = plan(schedule(), Row([NOON + MINUTE]), NOON + MINUTE)
    assert (fired(made.decisions), made.next_at) == ([NOON + MINUTE], None)


def test_nothing_beyond_the_next_one_is_computed_when_one_is_due() -> None:
    asked = iter(Every(MINUTE))
    plan(schedule(), Row(asked), NOON + MINUTE)
    assert next(asked) == NOON + 3 * MINUTE


# Missed


def test_last_runs_the_latest_one_for_all() -> None:
    made = decide("last", NOON + 5 * MINUTE)
    assert reasons(made.decisions) == ["superseded"] * 4 + [None]
    assert told(made.decisions[-1])["missed_count"] == 4
    assert told(made.decisions[-1])["catchup"]


def test_none_runs_what_is_within_the_grace_and_no_more() -> None:
    made = decide("none", NOON + 3 * MINUTE, grace=MINUTE)
    assert reasons(made.decisions) == ["missed", None, None]
    later = decide("none", NOON + 3 * MINUTE + timedelta(microseconds=1), grace=MINUTE)
    assert reasons(later.decisions) == ["missed", "missed", None]


def test_all_runs_the_latest_up_to_the_limit() -> None:
    made = decide("all", NOON + 6 * MINUTE, limit=2)
    assert reasons(made.decisions) == ["limit"] * 4 + [None] * 2
    assert [told(row)["missed_count"] for row in made.decisions[4:]] == [4, 0]


@pytest.mark.parametrize("catchup", ["last", "all"])
def test_what_is_older_than_the_window_never_runs(catchup: str) -> None:
    window = timedelta(hours=1)
    made = decide(catchup, NOON + 2 * window, step=window, window=window)
    assert "window" not in reasons(made.decisions)
    late = decide(catchup, NOON + 2 * window + SECOND, step=window, window=window)
    assert reasons(late.decisions) == ["window", None]


def test_a_single_one_older_than_the_window_is_skipped_too() -> None:
    made = plan(schedule(), Row([NOON + SECOND]), NOON + timedelta(days=2))
    assert reasons(made.decisions) == ["window"]


# Bounded


@pytest.mark.parametrize("catchup", list(Catchup))
def test_a_cursor_ten_years_old_takes_bounded_work(catchup: str) -> None:
    pulled = 0

    def seconds() -> Iterator[datetime]:
        nonlocal pulled
        for pulled, at in enumerate(Every(SECOND), 1):  # noqa: B007 - counted from outside
            yield at

    made = plan(schedule(catchup), Row(seconds()), NOON + timedelta(days=3653))
    assert len(made.decisions) == BOUND
    assert pulled <= 2 * BOUND + 1
    assert made.cursor == NOON + BOUND * SECOND
    assert made.next_at == made.cursor + SECOND
    assert fired(made.decisions) == []


def test_the_last_one_of_a_full_call_is_not_taken_for_the_last_missed() -> None:
    made = decide("last", NOON + 11 * MINUTE, bound=10)
    assert fired(made.decisions) == []
    exactly = decide("last", NOON + 10 * MINUTE, bound=10)
    assert fired(exactly.decisions) == [NOON + 10 * MINUTE]


# Laws

steps = st.integers(1, 7200).map(lambda s: timedelta(seconds=s))
rules = st.builds(
    MisfireRule,
    window=st.integers(0, 100_000).map(lambda s: timedelta(seconds=s)),
    limit=st.integers(0, 12),
    grace=st.integers(0, 10_000).map(lambda s: timedelta(seconds=s)),
)


@given(st.sampled_from(Catchup), steps, rules, st.integers(0, 60), st.data())
def test_each_occurrence_is_decided_once_however_the_work_is_cut_up(
    catchup: Catchup, step: timedelta, rule: MisfireRule, missed: int, data: st.DataObject
) -> None:
    now = NOON + step * missed + data.draw(st.timedeltas(timedelta(0), step - SECOND))
    at = schedule(catchup)
    made: list[OccurrenceDecision] = []
    for _ in range(missed + 1):
        bound = data.draw(st.integers(1, 20))
        part = plan(at, Row(Every(step, at.cursor)), now, rule=rule, bound=bound)
        assert len(part.decisions) <= bound
        made += part.decisions
        at = at._replace(cursor=part.cursor)
        assert part.next_at == part.cursor + step
        if part.next_at > now:
            break
    nominal = [row.nominal_at for row in made]
    assert nominal == list(takewhile(lambda when: when <= now, Every(step)))
    assert all((row.decision is Decision.FIRED) == (row.reason is None) for row in made)
    assert fired(made) == wanted(catchup, nominal, now, rule)


def wanted(
    catchup: Catchup, nominal: list[datetime], now: datetime, rule: MisfireRule
) -> list[datetime]:
    """What the policy says in one sentence, of the whole list."""
    recent = [at for at in nominal if now - at <= rule.window]
    match catchup:
        case Catchup.LAST:
            return recent[-1:]
        case Catchup.NONE:
            return [at for at in nominal if now - at <= rule.grace]
        case Catchup.ALL:
            return recent[-rule.limit :] if rule.limit else []


# Occurrences that do not run, jitter, ends, pauses


def test_an_excluded_occurrence_is_decided_and_supersedes_nobody() -> None:
    minutes = MINUTES[:4]
    row = Row(minutes, {minutes[1]: "gap", minutes[3]: "excluded"})
    made = plan(schedule(), row, NOON + 4 * MINUTE)
    assert reasons(made.decisions) == ["superseded", "gap", None, "excluded"]
    assert told(made.decisions[2])["missed_count"] == 1
    alone = plan(schedule(cursor=minutes[2]), row, NOON + 4 * MINUTE)
    assert reasons(alone.decisions) == ["excluded"]
    assert alone.cursor == minutes[3]


def test_the_last_one_that_may_run_is_found_behind_any_number_that_may_not() -> None:
    # Two days of excluded seconds lie between what falls due first and what supersedes it
    terms = Terms(expression="* * * * * *", exclude=("2026-03-09/2026-03-10",))
    table = agenda(terms, load_zone("UTC"), name="tides")
    midnight = datetime(2026, 3, 9, tzinfo=UTC)
    rule = MisfireRule(window=timedelta(days=9))
    before = schedule(cursor=midnight - 5 * SECOND)
    for now, last in ((midnight + timedelta(days=2), "superseded"), (midnight + SECOND, None)):
        made = plan(before, table, now, rule=rule, bound=6)
        assert reasons(made.decisions) == ["superseded"] * 3 + [last] + ["excluded"] * 2


def test_jitter_moves_when_and_not_which() -> None:
    row = Row(MINUTES, jitter=timedelta(seconds=20))
    early = plan(schedule(), row, NOON + MINUTE + timedelta(seconds=19))
    assert early == ([], NOON, NOON + MINUTE, NOON + MINUTE + timedelta(seconds=20))
    made = plan(schedule(), row, NOON + MINUTE + timedelta(seconds=20))
    assert fired(made.decisions) == [NOON + MINUTE]
    assert not told(made.decisions[0])["catchup"]
    assert made.next_at == NOON + 2 * MINUTE


def test_a_paused_schedule_drops_what_falls_due_and_keeps_its_reasons() -> None:
    row = Row(MINUTES, {NOON + 2 * MINUTE: "excluded"})
    made = drop(schedule("all"), row, NOON + 3 * MINUTE)
    assert reasons(made.decisions) == ["paused", "excluded", "paused"]
    assert fired(made.decisions) == []
    assert (made.cursor, made.next_at) == (NOON + 3 * MINUTE, NOON + 4 * MINUTE)
    part = drop(schedule("all"), row, NOON + 3 * MINUTE, bound=2)
    assert (len(part.decisions), part.cursor, part.next_at) == (2, NOON + 2 * MINUTE, made.cursor)


def test_a_backfill_runs_all_that_it_is_given() -> None:
    made = backfill(schedule("none"), Row([]), [NOON, NOON + MINUTE])
    assert fired(made) == [NOON, NOON + MINUTE]
    assert all(told(row)["catchup"] for row in made)


def test_an_agenda_is_planned_with_its_exclusions_its_jitter_and_its_ends() -> None:
    terms = Terms(
        expression="0 12 * * *",
        exclude=("2026-03-10",),
        jitter_s=600,
        start_at=NOON,
        end_at=NOON + timedelta(days=3),
    )
    table = agenda(terms, load_zone("UTC"), Policy("skip", "both"), name="tides")
    made = plan(
        schedule("all"), table, NOON + timedelta(days=30), rule=MisfireRule(window=timedelta.max)
    )
    assert reasons(made.decisions) == [None, "excluded", None]
    assert (made.next_at, made.due_at) == (None, None)
    # The clock of the plan is the store's, and the first one falls due by its jitter
    first = table.next_due(NOON)
    assert first is not None
    assert plan(schedule(), table, first.due_at - SECOND).decisions == []
    assert fired(plan(schedule(), table, first.due_at).decisions) == [first.at]


# What the job is told


def test_a_job_is_told_which_occurrence_it_is() -> None:
    made = plan(
        schedule(args='{"port": "Brest"}'),
        Row(
            Every(MINUTE),
            describe=lambda at: Occurrence(
                at=at, local="2026-03-08T03:00:00-04:00", fold=1, shifted=True
            ),
        ),
        NOON + MINUTE,
    )
    assert json.loads(made.decisions[0].args) == {
        "port": "Brest",
        "__occurrence__": {
            "schedule": "tides",
            "nominal_at": "2026-03-08T12:01:00+00:00",
            "nominal_local": "2026-03-08T03:00:00-04:00",
            "fold": 1,
            "shifted": True,
            "catchup": False,
            "missed_count": 0,
        },
    }


def test_an_unknown_catchup_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="last, none, all"):
        decide("some", NOON + MINUTE)


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(InvalidPayload, match="not an object"):
        plan(schedule(args="[1]"), Row(Every(MINUTE)), NOON + MINUTE)
