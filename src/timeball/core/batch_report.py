"""From what a store knows of a batch to the report that schedulers make of theirs.

Its slots are as many as were in use at once, since workers come and go. Its clocks are those of
several machines, held to the store's: what they disagree about is no proof of anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Final

from timeball.core.batches import Member, parents_first
from timeball.core.dependencies import ONE_OF
from timeball.core.limits import Scope, StartRate, fitting
from timeball.core.makespan import AttemptRecord, Cause, IdleSpan
from timeball.core.rate import Rate
from timeball.core.report import BatchRecord, BatchReport

EDGES_MAX: Final = 200_000
"""Edges that batches between jobs may stand for; beyond, some are left out: a floor stays one."""

_NS: Final = 1_000_000_000
_NO_PROOF: Final = 1 << 62


def batch_report(members: Sequence[Member], rates: Iterable[StartRate] = ()) -> BatchReport:
    """Return the report on the jobs of a batch: those attempts that have ended."""
    return BatchReport.of(record_of(members, rates))


def record_of(members: Sequence[Member], rates: Iterable[StartRate] = ()) -> BatchRecord[int]:
    """Return what is known of a batch in the form of a scheduler's own record.

    Args:
        members: Its jobs, and batches in it.
        rates: The limits on starts; those that did not hold from its first start on are left out.
    """
    jobs = [member for member in members if member.is_run]
    attempts = attempts_of(jobs)
    slots = 1 + max((each.slot for each in attempts), default=0)
    return BatchRecord(
        states={job.id: job.state for job in jobs},
        attempts=attempts,
        workers=slots,
        idle=_idle(jobs, attempts, slots),
        limits=list(_limits(jobs, rates)),
        parents=_waited_for(members, attempts),
        clock_ns=_NO_PROOF,
    )


def attempts_of(jobs: Iterable[Member]) -> list[AttemptRecord[int]]:
    """Return the attempts of jobs in the order of their starts, each in a slot that was free."""
    rows = [
        (_ns(said.began_at), job.id, number, said)
        for job in jobs
        for number, said in enumerate(job.attempts, 1)
    ]
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    used, found = 0, []
    for started_ns, job, number, said in sorted(rows, key=lambda row: row[:3]):
        while busy and busy[0][0] <= started_ns:
            heappush(free, heappop(busy)[1])
        slot, used = (heappop(free), used) if free else (used, used + 1)
        finished_ns = started_ns + _ns(said.ran_s)
        heappush(busy, (finished_ns, slot))
        found.append(
            AttemptRecord(
                job=job,
                attempt=number,
                slot=slot,
                queued_ns=min(started_ns, _ns(said.queued_at)),
                started_ns=started_ns,
                finished_ns=finished_ns,
                ending=said.ending,
                backoff_ns=_ns(said.delay_s) if number > 1 else 0,
            )
        )
    return found


def critical_path(members: Iterable[Member]) -> list[Member]:
    """Return the chain of jobs, each waiting for the one before, that takes longest by itself.

    A job takes as long as its attempts and the waits between them. Batches between jobs are not
    in it.
    """
    found = {member.id: member for member in members}
    length: dict[int, float] = {}
    before: dict[int, int] = {}
    for member in parents_first(found):
        parents = [edge.parent for edge in member.edges if edge.parent in length]
        last = max(parents, key=length.__getitem__, default=None)
        if last is not None:
            before[member.id] = last
        own = sum(each.ran_s for each in member.attempts)
        own += sum(each.delay_s for each in member.attempts[1:])
        length[member.id] = own + (0.0 if last is None else length[last])
    at = max(length, key=length.__getitem__, default=None)
    path: list[Member] = []
    while at is not None:
        path.append(found[at])
        at = before.get(at)
    return [each for each in reversed(path) if each.attempts]


def _ns(seconds: float) -> int:
    return round(seconds * _NS)


def _limits(
    jobs: Sequence[Member], rates: Iterable[StartRate]
) -> Iterator[tuple[Rate, Collection[int]]]:
    """Yield the limits on starts that held for the whole batch, with the jobs of each.

    Of a name of keys with * each key has a limit of its own.
    """
    begun = [job for job in jobs if job.attempts]
    first = min((each.queued_at for job in begun for each in job.attempts), default=0.0)
    held = {(each.scope, each.name): each for each in rates}
    names = [name for scope, name in held if scope is Scope.KEY]
    subject: defaultdict[tuple[Scope, str, str], list[int]] = defaultdict(list)
    for job in begun:
        subject[Scope.KIND, job.kind, ""].append(job.id)
        if job.queue is not None:
            subject[Scope.QUEUE, job.queue, ""].append(job.id)
        name = None if job.key is None else fitting(names, job.key)
        if name is not None:
            subject[Scope.KEY, name, str(job.key)].append(job.id)
    for (scope, name, _), some in subject.items():
        limit = held.get((scope, name))
        if limit is not None and limit.since <= first:
            yield limit.rate, some


def _waited_for(
    members: Sequence[Member], attempts: Iterable[AttemptRecord[int]]
) -> dict[int, list[int]]:
    """Return for each job the jobs whose ends it waited for, through whatever batches."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for each in attempts:
        first.setdefault(each.job, each.started_ns)
        last[each.job] = max(last.get(each.job, 0), each.finished_ns)
    found = {member.id: member for member in members}
    stands_for: dict[int, list[int]] = {}
    waited: dict[int, list[int]] = {}
    room = EDGES_MAX
    for member in parents_first(found):
        parents = (edge.parent for edge in member.edges if edge.rule not in ONE_OF)
        every = (job for parent in parents for job in stands_for.get(parent, ()))
        if not member.is_run:
            stands_for[member.id] = list(every)
            continue
        stands_for[member.id] = [member.id]
        # Looked at no further than kept: of two large batches, one after the other, it is n * n.
        some = list(islice(every, room if member.id in first else 0))
        room -= len(some)
        waited[member.id] = [job for job in some if job in last and last[job] <= first[member.id]]
    return waited


def _idle(
    jobs: Iterable[Member], attempts: Sequence[AttemptRecord[int]], slots: int
) -> list[IdleSpan]:
    """Return why slots stood idle: the first cause that applies, from instant to instant."""
    causes = _causes(jobs, attempts)
    busy: list[list[AttemptRecord[int]]] = [[] for _ in range(slots)]
    for each in attempts:
        busy[each.slot].append(each)
    spans = []
    for slot, own in enumerate(busy):
        gaps = zip(
            [causes[0][0] if causes else 0, *(each.finished_ns for each in own)],
            [*(each.started_ns for each in own), causes[-1][1] if causes else 0],
            strict=True,
        )
        at = 0
        for from_ns, to_ns in gaps:
            while at < len(causes) and causes[at][1] <= from_ns:
                at += 1
            here = at
            while here < len(causes) and causes[here][0] < to_ns:
                begin, end, cause = causes[here]
                spans.append(IdleSpan(slot, max(begin, from_ns), min(end, to_ns), cause))
                here += 1
    return spans


def _causes(
    jobs: Iterable[Member], attempts: Sequence[AttemptRecord[int]]
) -> list[tuple[int, int, Cause]]:
    """Return from when to when which cause is the first to apply, in order and without gaps."""
    if not attempts:
        return []
    begin = attempts[0].started_ns
    waits: list[tuple[int, int, Cause]] = []
    comes_after = {job.id for job in jobs if job.edges}
    done: dict[int, int] = {}
    for each in attempts:
        waits.append((each.queued_ns, each.started_ns, Cause.DISPATCH))
        if each.attempt > 1:
            waits.append((done[each.job], each.queued_ns, Cause.RETRY))
        elif each.job in comes_after:
            waits.append((begin, each.queued_ns, Cause.DEPENDENCY))
        else:
            waits.append((begin, each.queued_ns, Cause.SCHEDULE))
        done[each.job] = each.finished_ns
    return _merged(waits, begin, max(each.finished_ns for each in attempts))


_ORDER: Final = (Cause.DISPATCH, Cause.RETRY, Cause.DEPENDENCY, Cause.SCHEDULE)


def _merged(
    waits: Iterable[tuple[int, int, Cause]], begin: int, end: int
) -> list[tuple[int, int, Cause]]:
    steps: list[tuple[int, int, Cause]] = []
    for from_ns, to_ns, cause in waits:
        if from_ns < to_ns:
            steps += [(from_ns, 1, cause), (to_ns, -1, cause)]
    open_: Mapping[Cause, int] = dict.fromkeys(_ORDER, 0)
    counts = dict(open_)
    found: list[tuple[int, int, Cause]] = []
    at = begin
    for instant, change, cause in [*sorted(steps), (end, 0, Cause.DISPATCH)]:
        if at < (upto := min(instant, end)):
            why = next((each for each in _ORDER if counts[each]), Cause.QUEUE)
            if found and found[-1][2] is why:
                found[-1] = (found[-1][0], upto, why)
            else:
                found.append((at, upto, why))
            at = upto
        counts[cause] += change
    return found
