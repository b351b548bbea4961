"""D: what is read is one snapshot, and no write rests on a reading that it does not check again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from threading import Event
from types import MappingProxyType
from typing import Final
from uuid import uuid4

from timeball.certify.founding import replicas
from timeball.certify.founding.family import Family
from timeball.certify.queries import query
from timeball.certify.scenario import Outcome, Scenario, Skipped
from timeball.certify.sessions import Blocked, Rows, Session
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND, claim_all, claim_of, expire_of, worker_of
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.records import Settlement
from timeball.core.standing import standing
from timeball.core.states import Ending, State
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore

_TABLES: Final = ("held", "entry", "ended")
"""What a count of all jobs is made of."""

_MOVED: Final = 200
_BATCH: Final = 20
_PAGE: Final = 1_000
_PATIENCE_S: Final = 30.0
_SCHEDULE: Final = "daily"
_WRONG: Final = "readings that miss a job or have one twice"
_SUMS: Final = "sums of all states under load"
_STANDBY: Final = "a standby that lags"


# While jobs move


def _succeeds(family: Family) -> Callable[[Session], object]:
    (job,) = family.running()
    params = family.ends(job)
    family.ended(job)
    return lambda session: session.verb("settle", **params)


def _is_retried(family: Family) -> Callable[[Session], object]:
    (job,) = family.running()
    params = family.ends(job, ending=Ending.RETRIED)
    family.ended(job)
    return lambda session: session.verb("settle", **params)


def _is_promoted(family: Family) -> Callable[[Session], object]:
    (job,) = family.running()
    family.end(job, ending=Ending.RETRIED)
    return lambda session: session.verb("promote", limit=1, after="")


def _is_given_back(family: Family) -> Callable[[Session], object]:
    other = worker_of(family.store)
    family.pending()
    claim_all(family.store, other)
    return lambda session: session.verb("expire", **expire_of(other))


MOVES: Final[Mapping[str, Callable[[Family], Callable[[Session], object]]]] = MappingProxyType(
    {
        "succeeds": _succeeds,
        "is retried": _is_retried,
        "is promoted": _is_promoted,
        "is given back": _is_given_back,
    }
)
"""Ways in which a job leaves one table for another; each prepares it and returns the move."""


def _held_up(family: Family, table: str, move: str) -> tuple[int, int]:
    """Have a job move while a count and a list of all jobs wait for one of their tables.

    Returns:
        How many of the two do not account for every job once; and how many had to wait.
    """
    moves = MOVES[move](family)
    everybody = len(family.stage.accepted)
    gate, counter, lister = family.session().begin(), family.session(), family.session()
    gate.run(query("gate").format(table=table))
    steps = [
        counter.verb_steps("counts", queue=None),
        lister.verb_steps("jobs", **asdict(JobFilter(limit=_PAGE))),
    ]
    moves(gate)
    gate.commit()
    counted, listed = counter.answer(), lister.answer()
    wrong = (sum(count for _, count in counted) != everybody) + (_listed(listed) != everybody)
    for session in (gate, counter, lister):
        session.close()
    return wrong, sum(isinstance(step, Blocked) for step in steps)


def _listed(rows: Rows) -> int:
    """Return how many jobs are in a list, or -1 where one is in it twice."""
    ids = [row[0] for row in rows]
    return len(ids) if len(ids) == len(set(ids)) else -1


def _under_load(stage: Stage) -> tuple[list[int], int]:
    """Count again and again while another client brings many jobs to their ends.

    Returns:
        The sums that were seen; and how many answers were neither the first nor the last one.
    """
    before, answers, seen = _counted(stage), set(), Event()
    with closing(PostgresStore(stage.dsn)) as store, ThreadPoolExecutor(1) as pool:
        moving = pool.submit(_bring_to_ends, store, seen)
        while not moving.done():
            answers.add(_counted(stage))
            if answers - {before}:
                seen.set()
        moving.result()
    after = _counted(stage)
    sums = {sum(count for _, count in answer) for answer in answers | {before, after}}
    return sorted(sums), len(answers - {before, after})


def _counted(stage: Stage) -> tuple[tuple[State, int], ...]:
    return tuple(sorted(stage.store.counts().items()))


def _bring_to_ends(store: PostgresStore, seen: Event) -> None:
    """Bring all to their ends; with the first of them it waits until somebody has `seen` that."""
    worker = worker_of(store)
    endings = (Ending.RETRIED, Ending.FAILED, Ending.SUCCEEDED)
    while turns := store.claim(worker, limit=_BATCH, request=uuid4(), floors={}):
        told = [
            Settlement(
                *(turn.lane, turn.seq, turn.job_id, turn.turn),
                ending=Ending.SUCCEEDED if turn.attempts else endings[turn.job_id % 3],
                began_at=turn.granted_at,
            )
            for turn in turns
        ]
        store.settle(worker, told)
        seen.wait(_PATIENCE_S)
        store.promote(_PAGE)
    store.retire(worker)


# Decide, then write


def _claimed_meanwhile(family: Family, *, commit: bool) -> object:
    """Somebody has read that a job is pending, and cancels it; it is being claimed."""
    (job,) = family.pending()
    one, two = family.session().begin(), family.session()
    request = uuid4()
    one.verb("claim", **claim_of(family.worker, request=request))
    family.steps(two, "cancel", uuid=job)
    one.commit() if commit else one.rollback()
    answer = two.answer()[0][0]
    if commit:
        family.start_all(request)
    return str(answer)


def _ended_meanwhile(family: Family) -> object:
    """Somebody has read that a job runs, and cancels it; it has succeeded."""
    (job,) = family.running()
    family.end(job)
    return str(family.store.cancel(job))


def _revived_meanwhile(family: Family) -> object:
    """Somebody has read that a job has failed, and deletes it; it was revived."""
    (job,) = family.running()
    family.end(job, ending=Ending.FAILED)
    one, two = family.session().begin(), family.session()
    one.verb("revive", uuids=[job])
    family.steps(two, "delete_jobs", uuids=[job])
    one.commit()
    return str(two.answer()[0][1])


def _beaten_meanwhile(family: Family) -> object:
    """A sweeper has read an old beat, and gives the worker up; it has beaten."""
    worker = worker_of(family.store)
    (pulse,) = [each for each in family.store.pulses() if each.worker == worker]
    one, two = family.session().begin(), family.session()
    one.verb("beat", workers=[worker])
    family.steps(two, "expire", **expire_of(worker, beat=pulse.beat))
    one.commit()
    answer = "given up" if two.answer() else "left alone"
    family.store.retire(worker)
    return answer


def _changed_meanwhile(family: Family) -> object:
    """Somebody has read a paused schedule, and resumes it as it was; it was declared anew."""
    store = family.store
    spec = schedule_spec(_SCHEDULE, KIND, cron="0 9 * * *", tz="UTC")
    store.declare(spec, standing(agenda_of(spec), store.now()))
    store.pause(_SCHEDULE)
    read = store.schedule(_SCHEDULE)
    changed = replace(spec, expression="0 10 * * *")
    store.declare(changed, standing(agenda_of(changed), store.now()))
    resumed = store.resume(read, standing(agenda_of(spec), store.now()))
    kept = store.schedule(_SCHEDULE).spec.expression
    store.remove(_SCHEDULE)
    return f"{'resumed' if resumed else 'refused'}, {kept}"


CHANGES: Final[Mapping[str, tuple[Callable[[Family], object], str]]] = MappingProxyType(
    {
        "a cancel meets a claim that is taken back": (
            partial(_claimed_meanwhile, commit=False),
            "cancelled",
        ),
        "a cancel meets a claim that stands": (
            partial(_claimed_meanwhile, commit=True),
            "requested",
        ),
        "a cancel meets a job that has ended": (_ended_meanwhile, "finished"),
        "a deletion meets a job that is revived": (_revived_meanwhile, "refused"),
        "a sweeper meets a worker that beats": (_beaten_meanwhile, "left alone"),
        "a resume meets a schedule that has changed": (
            _changed_meanwhile,
            "refused, 0 10 * * *",
        ),
    }
)
"""What was decided by a reading that is old by the time of the write, and the write's answer."""


def run(stage: Stage) -> Outcome:
    """Hold up readings while jobs move, count under load, then write what was decided before."""
    family = Family(stage)
    pairs = stage.dice.shuffled((table, move) for table in _TABLES for move in MOVES)
    found = [_held_up(family, table, move) for table, move in pairs]
    told = {name: play(family) for name, (play, _) in stage.dice.shuffled(CHANGES.items())}
    wanted: dict[str, object] = {name: said for name, (_, said) in CHANGES.items()}
    left_out = {}
    try:
        told[_STANDBY] = replicas.lagging(family)
        wanted[_STANDBY] = dict(replicas.EXPECTED)
    except Skipped as skipped:
        left_out[_STANDBY] = str(skipped)
    family.pending(_MOVED)
    everybody = len(stage.accepted)
    sums, answers = _under_load(stage)
    family.finish()
    stage.drain()
    return Outcome(
        expected={_WRONG: 0, _SUMS: [everybody], **wanted},
        observed={_WRONG: sum(wrong for wrong, _ in found), _SUMS: sums, **told},
        witness={
            "readings held up": min(waited for _, waited in found),
            "answers in the middle of the load": answers,
            "writes that had to wait": family.blocked,
        },
        left_out=left_out,
        measured={"readings": 2 * len(found), "answers in the middle of the load": answers},
    )


D: Final = Scenario(
    id="D",
    title="counts and lists while jobs move; writes that were decided by an old reading",
    run=run,
    invariants=("I1", "I19", "I24"),
    founding="sc_D",
    deadline_s=30.0,
)
