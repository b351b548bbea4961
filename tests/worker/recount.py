"""Every counter of a worker, computed again from the record that the audit reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from timeball.core.history import EndingRecord, JobHistory, OccurrenceRecord, ScheduleRecord
from timeball.core.records import Decision
from timeball.core.states import FINAL_STATE, Ending
from timeball.observe import families
from timeball.observe.board import Key
from timeball.observe.families import Family

_BY_EXPIRY = {"worker died", "quarantined", "lost"}
_COUNTERS = {
    Ending.RETRIED: families.RETRIES,
    Ending.SNOOZED: families.SNOOZES,
    Ending.AWAITED: families.AWAITS,
    Ending.RELEASED: families.RELEASES,
    Ending.LOST: families.CRASHES,
}

Counts = Counter[tuple[str, ...]]


def told(samples: Mapping[Key, Sequence[int]]) -> Counts:
    """What a worker says it has counted; error types, of which the record is silent, summed up."""
    found: Counts = Counter()
    for (name, labels), numbers in samples.items():
        family = next(each for each in families.FAMILIES if each.name == name)
        pairs = zip(family.labels, labels, strict=True)
        key = (name, *(value for label, value in pairs if label != "error_type"))
        if family is families.RUN:
            for place, count in enumerate(numbers[1 : family.cells]):
                found[*key, str(place)] += count
        elif family is families.QUEUE_WAIT:
            found[key] += sum(numbers[1 : family.cells])
        elif family is families.CLAIM_BATCH or family in _COUNTED:
            found[key] += numbers[0]
    return +found


def recounted(histories: Iterable[JobHistory]) -> Counts:
    """What the record says that all workers must have counted."""
    found: Counts = Counter()
    for job in histories:
        found[families.CLAIM_BATCH.name,] += len(job.grants)
        found[families.STALE.name, job.kind] += len(job.stale)
        for row in job.endings:
            if row.worker is not None:
                found.update(_counted(job.kind, row))
    return +found


def _counted(kind: str, row: EndingRecord) -> Iterable[tuple[str, ...]]:
    if _is_by_expiry(row):
        outcome = "failed" if row.ending is Ending.FAILED else row.ending.value
        yield families.TURNS_EXPIRED.name, outcome
        if row.ending is not Ending.RELEASED:  # those it was in the middle of
            yield (families.STARTS.name,)
        return
    if row.reason == "quarantined":  # its worker called it lost, as those before
        yield families.CRASHES.name, kind
    elif row.ending in FINAL_STATE:
        yield families.FINISHED.name, kind, row.ending
    else:
        yield _COUNTERS[row.ending].name, kind
    if row.began_at is not None:
        yield (families.STARTS.name,)
        yield families.QUEUE_WAIT.name, kind
        bucket = bisect_left([ns / 1e9 for ns in families.RUN.bounds], row.ran_s)
        yield families.RUN.name, kind, str(bucket)


def _is_by_expiry(row: EndingRecord) -> bool:
    """Whether somebody else wrote it, who knows when the attempt began and not how long it ran."""
    return row.reason in _BY_EXPIRY and not row.ran_s


def decided(histories: Iterable[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]) -> Counts:
    """What the record says that all tickers must have counted."""
    found: Counts = Counter()
    for schedule, rows in histories:
        for row in rows:
            decision = Decision.SKIPPED if row.job_id is None else Decision.FIRED
            found[families.CRON_DECISIONS.name, schedule.name, decision] += 1
    return found


def seconds(
    histories: Iterable[JobHistory], samples: Mapping[Key, Sequence[int]], family: Family
) -> tuple[float, float]:
    """The sum of a histogram by the record, and by the worker."""
    recorded = 0.0
    for job in histories:
        ready = {row.turn: row.at for row in job.entries}
        if job.run_at is None:
            ready[1] = job.created_at
        for row in job.endings:
            if row.began_at is not None and not _is_by_expiry(row):
                waited_s = row.began_at - ready[row.turn]
                recorded += row.ran_s if family is families.RUN else waited_s
    counted = sum(numbers[0] for (name, _), numbers in samples.items() if name == family.name)
    return recorded, counted / 1e9


_COUNTED = {
    families.STARTS,
    families.FINISHED,
    families.STALE,
    families.TURNS_EXPIRED,
    *_COUNTERS.values(),
}
