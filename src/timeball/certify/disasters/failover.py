"""X8: a standby takes the place of its primary, with and without the end; the old one returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.disasters.workload import answers
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.link import Link, Way, linked
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.certify.standby import Standby, following
from timeball.certify.verbs import KIND, claim_all, worker_of
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending
from timeball.store.postgres import PostgresStore

TAIL: Final = 100
"""Jobs that nobody but the old primary knows: more than the 32 numbers of a sequence that a
standby takes to be given."""

_EARLY: Final = 10
_RUN: Final = 4
_GRANTED: Final = 6
_ENDED: Final = 2
_HAND: Final = "hand"
_GATES: Final = ("first", "second")


class Site:
    """A client and a worker by hand, and a worker process; a link leads to the primary for each.

    Args:
        stage: Where.
        database: Its name.
        primary: The server that is written to.
    """

    def __init__(self, stage: Stage, database: str, primary: Standby) -> None:
        self.stage = stage
        self.primary = primary
        self.near: Link = stage.lend(linked(primary.dsn))
        self.far: Link = stage.lend(linked(primary.dsn))
        stage.move(self.near.dsn)
        stage.workers(dsn=self.far.dsn)
        self.hand = worker_of(stage.store, _HAND)
        self.held: set[UUID] = set()
        self._database = database
        self._specs: dict[UUID, JobSpec] = {}

    def standby(self) -> Standby:
        """Return a new standby of the primary."""
        lent = following(self.primary.folder, self.primary.dsn, self._database)
        return self.stage.lend(lent)

    def submit(self, count: int, kind: str, **fields: Any) -> list[UUID]:
        """Submit jobs as a client; return who they are."""
        specs = [JobSpec(uuid=uuid4(), kind=kind, **fields) for _ in range(count)]
        self.stage.submit(specs)
        self._specs.update((spec.uuid, spec) for spec in specs)
        return [spec.uuid for spec in specs]

    def send_again(self, lost: Iterable[UUID]) -> None:
        """Submit those of the jobs by hand again that were lost."""
        again = [self._specs[uuid] for uuid in sorted(lost) if self._specs[uuid].kind == KIND]
        self.stage.submit(again)
        self.stage.lost.difference_update(spec.uuid for spec in again)

    def run(self, count: int) -> None:
        """Have the worker process run some jobs to their end."""
        jobs = {*self.submit(count, NOTE)}
        self.stage.until(lambda: self.stage.store.ended(jobs) == jobs, "they have run")

    def hold(self, gate: str) -> None:
        """Have it run one that goes on until its gate is opened."""
        (job,) = self.submit(1, HOLD, args=f'{{"gate": "{gate}"}}')
        self.held.add(job)
        self.stage.until(lambda: self.stage.effects.began()[job], "it has begun")

    def grant(self, count: int) -> list[Turn]:
        """Grant turns to the worker by hand."""
        return self.stage.store.claim(self.hand, limit=count, request=uuid4(), floors={})

    def say(self, turns: Sequence[Turn], store: PostgresStore | None = None) -> dict[str, int]:
        """Say that turns have succeeded; return the answers."""
        told = [Settlement(*each[:4], Ending.SUCCEEDED, began_at=each.granted_at) for each in turns]
        answered = (store or self.stage.store).settle(self.hand, told)
        return dict(Counter(str(verdict) for verdict in answered))

    def fail_over(self, standby: Standby) -> None:
        """Have the primary end and the standby take its place; the worker process is cut off."""
        self.stage.reconnect()
        self.far.turn(Way.CUT)
        self.primary.end()
        standby.promote()
        self.primary = standby
        for link in (self.near, self.far):
            link.lead(standby.dsn)
        self.stage.until(lambda: answers(self.stage), "the new primary answers")

    def missing(self) -> set[UUID]:
        """Return the jobs that were accepted, by the client's account, and are not on record."""
        return self.stage.accepted.difference(each.uuid for each in self.stage.store.histories())

    def doubles(self) -> int:
        """Return how many uuids more than one job on record has."""
        times = Counter(each.uuid for each in self.stage.store.histories())
        return sum(count > 1 for count in times.values())


def asynchronous(site: Site) -> tuple[dict[str, Any], dict[str, int]]:
    """Lose the end of a primary; return what is seen, and how often faults were met."""
    stage = site.stage
    early = _work(site, _GATES[0])
    old, standby = site.primary, site.standby()
    standby.catch_up()
    standby.cut()
    replicated = set(stage.accepted)
    site.run(_RUN)
    site.submit(TAIL, KIND, queue=_HAND)
    before = claim_all(stage.store, site.hand)
    site.fail_over(standby)
    unreplicated = stage.accepted - replicated
    stage.lost |= site.missing()
    lost = set(stage.lost)
    site.submit(2 * TAIL, KIND, queue=_HAND)
    site.send_again(lost)
    now = claim_all(stage.store, site.hand)
    site.far.turn(Way.PASS)
    seen = {
        "lost": len(lost),
        "lost, though replicated": len(lost - unreplicated),
        "there, though not replicated": len(unreplicated - lost),
        "uuids of two jobs": site.doubles(),
        "what had begun ends": site.say(early),
        "what was lost says it ended": site.say(before),
        "the old primary hears it": _returned(site, old, before),
        "and it is said again": site.say(before),
        "ended by that": len(stage.store.ended({turn.uuid for turn in now})),
        "what is new ends": site.say(now),
    }
    given = {turn.job_id: turn.uuid for turn in before}
    again = sum(given.get(turn.job_id, turn.uuid) != turn.uuid for turn in now)
    return seen, {"jobs lost": len(lost), "numbers given again": again}


def expected_asynchronous() -> dict[str, Any]:
    """Return what `asynchronous` must tell."""
    lost, granted = TAIL + _RUN, TAIL + _EARLY - _GRANTED
    return {
        "lost": lost,
        "lost, though replicated": 0,
        "there, though not replicated": 0,
        "uuids of two jobs": 0,
        "what had begun ends": {"accepted": _GRANTED - _ENDED},
        "what was lost says it ended": {"stale": granted},
        "the old primary hears it": {"accepted": granted},
        "and it is said again": {"stale": granted},
        "ended by that": 0,
        "what is new ends": {"accepted": 3 * TAIL + _EARLY - _GRANTED},
    }


def synchronous(site: Site) -> tuple[dict[str, Any], int]:
    """Have a primary end whose commits were waited for; return what is seen, and what waited."""
    stage, standby = site.stage, site.standby()
    standby.be_waited_for()
    waited = kept_waiting(site, standby)
    early = _work(site, _GATES[1])
    standby.cut()  # with no time to catch up
    site.fail_over(standby)
    site.far.turn(Way.PASS)
    return {
        "lost": len(site.missing() - stage.lost),
        "what had begun ends": site.say(early),
        "what is left ends": site.say(claim_all(stage.store, site.hand)),
    }, waited


def kept_waiting(site: Site, standby: Standby) -> int:
    """Submit while a standby receives nothing; return how many commits waited for it meanwhile."""
    stage, spec = site.stage, JobSpec(uuid=uuid4(), kind=NOTE)
    with closing(PostgresStore(site.primary.dsn)) as store, ThreadPoolExecutor(1) as pool:
        with standby.stands_still():
            answer = pool.submit(store.submit, [spec])
            stage.until(
                lambda: answer.done() or standby.held_commits(), "it is answered, or it waits"
            )
            waited = 0 if answer.done() else standby.held_commits()
        answer.result()
    stage.accepted.add(spec.uuid)
    return waited


def expected_synchronous() -> dict[str, Any]:
    """Return what `synchronous` must tell."""
    return {
        "lost": 0,
        "what had begun ends": {"accepted": _GRANTED - _ENDED},
        "what is left ends": {"accepted": _EARLY - _GRANTED},
    }


def run(stage: Stage) -> Outcome:
    """Fail over twice: to a standby that lacks the end, and to one that was waited for."""
    own = stage.terms.own_server
    if own is None:
        raise Skipped("standbys are made of certify's own server only: leave --dsn out")
    ((database,),) = stage.ask("database")
    primary = stage.lend(following(own, stage.dsn, database))
    primary.catch_up()
    primary.promote()  # so that it is not the server of all other scenarios that ends
    site = Site(stage, database, primary)
    lossy, met = asynchronous(site)
    lossless, waited = synchronous(site)
    for gate in _GATES:
        (stage.folder / gate).touch()
    stage.drain()
    stage.store.retire(site.hand)
    held = [job for job, times in stage.effects.began().items() if job in site.held and times == 1]
    return Outcome(
        expected={
            "asynchronous": expected_asynchronous(),
            "synchronous": expected_synchronous(),
            "long jobs that ran once": len(_GATES),
        },
        observed={
            "asynchronous": lossy,
            "synchronous": lossless,
            "long jobs that ran once": len(held),
        },
        witness={**met, "commits that waited for the standby": waited},
    )


def _work(site: Site, gate: str) -> list[Turn]:
    """Have jobs in each state there is; return the turns by hand that have not ended."""
    site.run(_RUN)
    site.hold(gate)
    site.submit(_EARLY, KIND, queue=_HAND)
    granted = site.grant(_GRANTED)
    site.say(granted[:_ENDED])
    return granted[_ENDED:]


def _returned(site: Site, old: Standby, before: Sequence[Turn]) -> dict[str, int]:
    """Have an old primary come back, which knows nothing of the new one, and be told what ended."""
    old.come_back()
    with closing(PostgresStore(old.dsn)) as store:
        told = site.say(before, store)
    old.end()
    return told


X8: Final = Scenario(
    id="X8",
    title="a standby takes over, without the end and with it; the old primary returns",
    run=run,
    invariants=("I3", "I4", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
