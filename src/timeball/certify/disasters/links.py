"""X7: every way to the database is stopped, and they are mended in another order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import seen
from timeball.certify.effects import BEGAN, ENDED
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.link import Link, Way, linked
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec, Pulse
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

_LEASE_S: Final = 2.0
_SLOTS: Final = 2
_SENT: Final = 20
_GATE: Final = "go"
_CLIENT: Final = "client"
_WORKERS: Final = ("first worker", "second worker")
_HELD: Final = len(_WORKERS) * _SLOTS


class Net:
    """A client and two workers, each with a way of its own to the database.

    Args:
        stage: Where.
        links: The ways, by whose they are.
        store: The client's.
    """

    def __init__(self, stage: Stage, links: dict[str, Link], store: PostgresStore) -> None:
        self.stage = stage
        self.links = links
        self.store = store
        self.unanswered = 0
        """How often the client has sent in vain."""

        self.mended = 0
        """How many workers are heard again."""

        self._specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_SENT)]

    def begin(self) -> None:
        """Have jobs run on both workers."""
        for name in _WORKERS:
            self.stage.workers(slots=_SLOTS, lease_s=_LEASE_S, dsn=self.links[name].dsn)
        args = f'{{"gate": "{_GATE}"}}'
        self.stage.submit([JobSpec(uuid=uuid4(), kind=HOLD, args=args) for _ in range(_HELD)])
        self.stage.until(lambda: self.noted(BEGAN) == _HELD, "all have begun")
        self.stage.until(lambda: len(self.stage.ask("listeners")) == len(_WORKERS), "all listen")

    def stop(self, name: str) -> None:
        """Stop a way: a worker's is cut or stands still, as the seed throws; a client's is cut."""
        still = self.stage.dice.throw(2) and name != _CLIENT
        self.links[name].turn(Way.HOLD if still else Way.CUT)

    def mend(self, name: str) -> None:
        """Mend a way, and return when whoever uses it is heard again."""
        if name == _CLIENT:
            self.links[name].turn(Way.PASS)
            self.stage.until(self.send, "the client is answered")
            return
        if self.mended:  # the other worker is there to see that this one is not
            self.stage.until(lambda: len(self.stage.store.pulses()) == 1, "it is given up")
        before = set(self.stage.store.pulses())
        self.links[name].turn(Way.PASS)
        self.mended += 1
        self.stage.until(lambda: self._heard(before) == self.mended, f"the {name} is heard")

    def send(self) -> bool:
        """Submit as a client that sends the same again; return whether it was answered."""
        try:
            with self.stage.history.calling("submit", jobs=_SENT):
                self.store.submit(self._specs)
        except StoreUnavailable:
            self.unanswered += 1
            return False
        self.stage.accepted.update(spec.uuid for spec in self._specs)
        return True

    def noted(self, what: str) -> int:
        """Return how often the jobs have noted something."""
        return sum(each.what == what for each in self.stage.effects.read())

    def _heard(self, before: set[Pulse]) -> int:
        """Return how many workers have given a sign of life since."""
        return len({pulse.worker for pulse in {*self.stage.store.pulses()} - before})


def run(stage: Stage) -> Outcome:
    """Stop all ways in one order, have the jobs end, and mend the ways in another order."""
    if stage.terms.own_server is None:
        raise Skipped("ways are made to certify's own server only: leave --dsn out")
    with ExitStack() as exits:
        links = {name: exits.enter_context(linked(stage.dsn)) for name in (_CLIENT, *_WORKERS)}
        store = exits.enter_context(closing(PostgresStore(links[_CLIENT].dsn)))
        net = Net(stage, links, store)
        net.begin()
        stopped, mended = _orders(stage, links)
        for name in stopped:
            net.stop(name)
        off_s, answered = _ended(net)
        for name in mended:
            net.mend(name)
        stage.drain()
        listening = len(_WORKERS)
        stage.until(lambda: len(stage.ask("listeners")) == listening, "all listen again")
        for fleet in stage.fleets:
            fleet.stop()
    refused = sum(len(each.stale) for each in stage.store.histories())
    jobs = _HELD + _SENT
    return Outcome(
        expected={
            "jobs": jobs,
            "succeeded": jobs,
            "attempts of each": {"1": jobs - _SLOTS, "2": _SLOTS},
            "answered without a way": False,
            "refused": _SLOTS,
        },
        observed={**seen(stage), "answered without a way": answered, "refused": refused},
        witness={
            "ways stopped": len(stopped),
            "unanswered": net.unanswered,
            "leases without a way": int(off_s / _LEASE_S),
            "mended in another order": sum(a != b for a, b in zip(stopped, mended, strict=True)),
        },
        measured={"stopped": stopped, "mended": mended},
    )


def _orders(stage: Stage, links: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return two orders, which are not the same."""
    first = second = stage.dice.shuffled(links)
    while second == first:
        second = stage.dice.shuffled(links)
    return first, second


def _ended(net: Net) -> tuple[float, bool]:
    """Have the jobs end while nobody is told, and a lease pass.

    Returns:
        For how many seconds there was no way; and whether the client was answered.
    """
    since_s = time.monotonic()
    (net.stage.folder / _GATE).touch()
    net.stage.until(lambda: net.noted(ENDED) == _HELD, "all have ended")
    answered = net.send()
    net.stage.until(lambda: time.monotonic() > since_s + _LEASE_S, "a lease passes")
    return time.monotonic() - since_s, answered


X7: Final = Scenario(
    id="X7",
    title="all ways to the database are stopped, and mended in another order",
    run=run,
    invariants=("I3", "I4", "I5", "I6"),
    profiles=THOROUGH,
)
