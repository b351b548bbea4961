"""Each occurrence of a schedule is decided once, and the audit says where it was not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from timeball.core.audit import audit_schedules
from timeball.core.history import OccurrenceRecord, ScheduleRecord
from timeball.core.records import SKIP_REASONS, Decision

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
HOURLY = ScheduleRecord(1, "hourly", MIDNIGHT, MIDNIGHT + timedelta(hours=3))


def hour(number: int) -> datetime:
    return MIDNIGHT + timedelta(hours=number)


def every_hour(schedule: ScheduleRecord) -> Iterator[datetime]:
    """For ever, and from the instant of activation itself."""
    return (schedule.activated_at + timedelta(hours=n) for n in count())


def fired(number: int, job_id: int | None, late_s: float = 1.0) -> OccurrenceRecord:
    decided_at = hour(number) + timedelta(seconds=late_s)
    return OccurrenceRecord(1, hour(number), Decision.FIRED, None, job_id, decided_at)


def skipped(number: int, reason: str | None = "paused") -> OccurrenceRecord:
    return OccurrenceRecord(1, hour(number), Decision.SKIPPED, reason, None, hour(number + 9))


def found(*rows: OccurrenceRecord) -> list[tuple[str, str]]:
    return [(v.invariant, v.text) for v in audit_schedules([(HOURLY, rows)], every_hour)]


def test_one_decision_for_each_occurrence_up_to_the_cursor_is_clean() -> None:
    assert found(fired(1, 11), skipped(2), fired(3, 13, late_s=0)) == []


def test_what_was_decided_under_an_earlier_expression_is_left_alone() -> None:
    assert found(fired(-5, 9), fired(0, 10), fired(1, 11), skipped(2), fired(3, 13)) == []


REST = [skipped(2), skipped(3)]


@pytest.mark.parametrize(
    ("rows", "invariant", "text"),
    [
        (REST, "I17", "01:00:00+00:00 was never decided; the cursor is 2026-03-01T03:00"),
        ([fired(1, 11), fired(1, 12), *REST], "I16", "was fired 2 times, as jobs [11, 12]"),
        ([fired(1, 11), skipped(2), fired(3, 11)], "I16", "of schedule hourly at 2026-03-01T01"),
        ([fired(1, 11), skipped(1), *REST], "I17", "2 times: fired (11), skipped (paused)"),
        ([fired(1, None), *REST], "I17", "was fired without a job"),
        ([skipped(1, reason=None), *REST], "I17", "was skipped with job None, reason None"),
        ([skipped(1)._replace(job_id=5), *REST], "I17", "with job 5, reason 'paused'"),
        ([skipped(1), *REST, fired(4, 14)], "I17", "was decided; the cursor is 2026-03-01T03:00"),
        ([fired(1, 11, late_s=-2), *REST], "I18", "was fired 2.0 s early"),
    ],
)
def test_a_corrupt_record_is_named_by_its_invariant_and_no_other(
    rows: list[OccurrenceRecord], invariant: str, text: str
) -> None:
    ((name, said),) = found(*rows)
    assert name == invariant
    assert text in said


def test_a_decision_between_two_occurrences_is_found() -> None:
    half_past = fired(2, 12)._replace(nominal_at=hour(1) + timedelta(minutes=30))
    ((name, said),) = found(fired(1, 11), half_past, skipped(2), fired(3, 13))
    assert (name, said) == ("I17", "2026-03-01T01:30:00+00:00 was decided, but is no occurrence")


def test_a_job_of_two_schedules_is_found() -> None:
    other = ScheduleRecord(2, "other", MIDNIGHT, hour(1))
    pairs = [(other, [fired(1, 11)]), (HOURLY, [fired(1, 11), skipped(2), skipped(3)])]
    (violation,) = audit_schedules(pairs, every_hour)
    assert (violation.invariant, violation.subject) == ("I16", "schedule hourly")


@pytest.mark.parametrize("reason", sorted(SKIP_REASONS))
def test_a_skip_says_why_in_a_known_word(reason: str) -> None:
    assert found(fired(1, 11), skipped(2, reason), fired(3, 13)) == []


def test_a_skip_for_no_known_reason_is_found() -> None:
    ((invariant, text),) = found(fired(1, 11), skipped(2, "lazy"), fired(3, 13))
    assert invariant == "I17"
    assert "'lazy'" in text


def test_a_backfill_may_fire_what_lies_behind_and_ahead_of_the_cursor() -> None:
    late = [fired(n, 10 + n)._replace(reason="backfill") for n in (-7, 2, 5)]
    assert found(fired(1, 11), fired(3, 13), *late) == []


def test_only_a_backfill_fires_with_a_reason() -> None:
    odd = fired(2, 12)._replace(reason="overlap")
    ((invariant, text),) = found(fired(1, 11), odd, fired(3, 13))
    assert invariant == "I17"
    assert "fired, reason 'overlap'" in text


def test_what_new_zone_data_left_behind_the_activation_is_not_held_against_them() -> None:
    moved = HOURLY._replace(activated_at=hour(2), cursor=hour(1))
    rows = [fired(1, 11), fired(2, 12)]
    assert list(audit_schedules([(moved, rows)], every_hour)) == []
