"""What the engine has on record, in the words of the report and of the audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID, uuid5

from timeball.core.audit import Violation, audit
from timeball.core.concurrency import overshoots
from timeball.core.dependencies import ONE_OF, PARENT
from timeball.core.history import (
    EndingRecord,
    EntryRecord,
    GrantRecord,
    HeldRecord,
    JobHistory,
)
from timeball.core.makespan import AttemptRecord, IdleSpan, span_of
from timeball.core.rate import NS_PER_S, violations
from timeball.core.records import Delivery
from timeball.core.report import BatchRecord
from timeball.core.states import Ending, State
from timeball.engine.handles import NEVER_NS, Attempt, Work
from timeball.engine.idleness import Idleness
from timeball.engine.options import Options

_STARTED = frozenset({State.SCHEDULED, State.WAITING})


class Snapshot(NamedTuple):
    """Everything about some jobs, read at one instant under the lock."""

    now_ns: int
    works: list[Work]
    states: list[State]
    attempts: list[AttemptRecord[int | str]]
    histories: list[JobHistory]
    counts: dict[State, int]
    """By the counters of the agenda, to be held against the states."""

    idleness: Idleness


def attempt_records(
    works: Iterable[Work], idleness: Idleness, now_ns: int
) -> Iterator[AttemptRecord[int | str]]:
    """Yield a record of every attempt that has started, by job and in their order."""
    limited_ns = idleness.limited()
    for work in works:
        backoff_ns = number = 0
        for attempt in work.attempts:
            if attempt.slot is None:
                continue
            number += 1
            end = attempt.end
            yield AttemptRecord(
                job=work.id,
                attempt=number,
                slot=attempt.slot,
                queued_ns=min(attempt.ready_ns, attempt.started_ns),
                started_ns=attempt.started_ns,
                finished_ns=attempt.ended_ns if end else max(now_ns, attempt.started_ns),
                ending=end.ending if end else None,
                limiter_ns=limited_ns(attempt.ready_ns, attempt.started_ns),
                backoff_ns=backoff_ns,
                lock_ns=attempt.lock_ns,
                weight=work.form.weight,
            )
            backoff_ns = int(end.delay_s * NS_PER_S) if end else 0


def first_ready_ns(works: Iterable[Work]) -> int:
    """Return when the first of some jobs first lined up; nothing before concerns any of them."""
    return min((work.ready_ns for work in works), default=NEVER_NS)


def history_of(work: Work, number: int, namespace: UUID) -> JobHistory:
    """Return what happened to a job as a store would tell it.

    Args:
        work: The job.
        number: The number to call it by, since the audit knows numbers only.
        namespace: That of its uuid.
    """
    more, last = work.more, work.last
    entries = [_entry(attempt) for attempt in work.attempts if attempt.slot is not None]
    held = None
    if work.state is State.PENDING:
        entries.append(EntryRecord(work.at_turn, work.at_ready_ns / 1e9))
    elif work.state in _STARTED:
        due_ns = more.due_ns if more else 0
        held = HeldRecord(work.at_turn, work.state, due_ns / 1e9, None)
    # One that ended in the queue had been entered, unless it was held back.
    if last is not None and last.slot is None and last.turn not in {e.turn for e in entries}:
        entries += [EntryRecord(last.turn, last.ready_ns / 1e9)] if last.seq else []
    first_due = more.first_due_ns if more else 0
    return JobHistory(
        id=number,
        uuid=uuid5(namespace, str(work.id)),
        kind=work.form.name,
        max_retries=work.form.retry.max_retries,
        max_crashes=work.form.max_crashes,
        delivery=Delivery.AT_MOST_ONCE if work.form.once else Delivery.AT_LEAST_ONCE,
        created_at=0.0,
        run_at=first_due / 1e9 if first_due else None,
        entries=tuple(entries),
        grants=tuple(_grant(a, work) for a in work.attempts if a.slot is not None),
        endings=tuple(_ending(a) for a in work.attempts if a.end is not None),
        held=held,
        cancels_requested_at=(more.cancel_ns / 1e9,) if more and more.cancel_ns is not None else (),
    )


def _entry(attempt: Attempt) -> EntryRecord:
    return EntryRecord(attempt.turn, attempt.ready_ns / 1e9)


def _grant(attempt: Attempt, work: Work) -> GrantRecord:
    assert attempt.slot is not None
    return GrantRecord(
        attempt.turn, attempt.slot, work.form.priority, attempt.seq, attempt.granted_ns / 1e9
    )


def _ending(attempt: Attempt) -> EndingRecord:
    end = attempt.end
    assert end is not None
    begun = attempt.slot is not None
    ruled_out = not begun and end.ending is Ending.FAILED
    return EndingRecord(
        turn=attempt.turn,
        ending=end.ending,
        reason=PARENT if ruled_out else end.reason,
        worker=attempt.slot,
        began_at=attempt.started_ns / 1e9 if begun else None,
        ran_s=(attempt.ended_ns - attempt.started_ns) / 1e9 if begun else 0.0,
        at=attempt.ended_ns / 1e9,
        delay_s=end.delay_s,
    )


def idle_spans(
    attempts: Iterable[AttemptRecord[int | str]], idleness: Idleness, workers: int
) -> Iterator[IdleSpan]:
    """Yield why each slot was idle, whenever it was, between the first start and the last end."""
    known = list(attempts)
    span = span_of(known)
    busy: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in known:
        busy[record.slot].append((record.started_ns, record.finished_ns))
    for slot in range(workers):
        free_ns = span.from_ns
        for from_ns, to_ns in [*sorted(busy[slot]), (span.to_ns, span.to_ns)]:
            for cause, begin_ns, end_ns in idleness.cut(free_ns, from_ns):
                yield IdleSpan(slot, begin_ns, end_ns, cause)
            free_ns = max(free_ns, to_ns)


def batch_record(snapshot: Snapshot, options: Options) -> BatchRecord[int | str]:
    """Return what the report is made from."""
    ids = {work.id for work in snapshot.works}
    return BatchRecord(
        states={w.id: s for w, s in zip(snapshot.works, snapshot.states, strict=True)},
        attempts=snapshot.attempts,
        workers=options.workers,
        idle=list(idle_spans(snapshot.attempts, snapshot.idleness, options.workers)),
        limit=options.limit,
        parents={
            # Of those that say "one" it may have begun before all but one have ended.
            work.id: [
                parent.id
                for parent, rule in work.more.after.items()
                if parent.id in ids and rule not in ONE_OF
            ]
            for work in snapshot.works
            if work.more is not None and work.more.after
        },
    )


def violations_in(snapshot: Snapshot, options: Options) -> Iterator[Violation]:
    """Yield everything on record that breaks the contract."""
    states = snapshot.states
    settled = all(
        state.value in {"succeeded", "failed", "cancelled", "skipped"} for state in states
    )
    yield from audit(snapshot.histories, quiesced=settled).violations
    for state, count in snapshot.counts.items():
        if states.count(state) != count:
            text = f"{states.count(state)} jobs are {state}, and the counter says {count}"
            yield Violation("I1", "scheduler", text)
    if options.limit is not None:
        stamps = [at for a in snapshot.attempts for at in [a.started_ns] * a.weight]
        for early in violations(stamps, options.limit):
            text = f"start {early.index} came {early.allowed_ns - early.stamp_ns} ns early"
            yield Violation("I8", "scheduler", text)
    yield from _crowded(snapshot, options)
    yield from _over_budget(snapshot, options)


def _crowded(snapshot: Snapshot, options: Options) -> Iterator[Violation]:
    spans: defaultdict[str | None, list[tuple[int, int]]] = defaultdict(list)
    keys = {work.id: work.key for work in snapshot.works}
    for record in snapshot.attempts:
        span = (record.started_ns, record.finished_ns)
        spans[None].append(span)
        key = keys[record.job]
        if key is not None:
            spans[key].append(span)
    for key, limit in [(None, options.workers), *options.key_limits.items()]:
        for at in overshoots(spans[key], limit):
            whose = "scheduler" if key is None else f"key {key}"
            text = f"{at.running} attempts ran at once with a limit of {limit}"
            yield Violation("I9", whose, text)


def _over_budget(snapshot: Snapshot, options: Options) -> Iterator[Violation]:
    budget = options.budget()
    if budget is None or options.kept is not None:  # a share of what is remembered means nothing
        return
    begun: list[tuple[int, bool]] = []
    for work in snapshot.works:
        before = None
        for attempt in work.attempts:
            if attempt.slot is not None:
                begun.append((attempt.seq, before is Ending.RETRIED))
                before = attempt.end.ending if attempt.end else None
    retries = 0
    for starts, (_, is_retry) in enumerate(sorted(begun), start=1):
        retries += is_retry
        if is_retry and not budget.allows(retries, starts):
            text = f"{retries} of {starts} starts were retries, of which {options.retry_budget}"
            yield Violation("I7", "scheduler", f"{text} was allowed")
