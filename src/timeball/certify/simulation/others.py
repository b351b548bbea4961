"""Everybody else in a simulation: clients, tickers, sweepers, promoters, operators, the clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, cast
from uuid import UUID

from timeball.certify.simulation.world import NOON, SECOND, Link, Steps, World
from timeball.core.dependencies import Edge
from timeball.core.records import (
    Decision,
    Delivery,
    Firing,
    JobSpec,
    OccurrenceDecision,
    ScheduleSpec,
    Standing,
)
from timeball.core.uniqueness import Unique
from timeball.errors import StoreUnavailable, UsageError
from timeball.store.base import Store
from timeball.worker.sweeper import Sweeper

EVERY: Final = timedelta(seconds=20)
SCHEDULE: Final = "often"
_KEYS: Final = ("red", "green")
_QUEUES: Final = ("default", "default", "mail")


def client(world: World, who: str) -> Steps:
    """Submit jobs of every sort, each until it is known to be there."""
    link = Link(world, who)
    mine: list[UUID] = []
    while True:
        specs = [_spec(world, mine) for _ in range(1 + world.dice.throw(3))]
        mine = [*mine, *(spec.uuid for spec in specs)][-8:]
        while True:
            try:
                link.submit(specs)
            except StoreUnavailable:
                yield SECOND
            except UsageError:  # a parent was deleted meanwhile, or was never added
                break
            else:
                break
        world.note(who, "submits", [str(spec.uuid)[-6:] for spec in specs])
        yield SECOND // 4 * (1 + world.dice.throw(6))


def _spec(world: World, mine: list[UUID]) -> JobSpec:
    die = world.dice.throw
    parents = {mine[die(len(mine))] for _ in range(2)} if mine and not die(4) else set()
    return JobSpec(
        uuid=world.name(),
        kind="a" if die(3) else "b",
        queue=_QUEUES[die(3)],
        priority=3 + die(3),
        max_retries=die(3),
        max_crashes=1 + die(3),
        delivery=Delivery.AT_LEAST_ONCE if die(6) else Delivery.AT_MOST_ONCE,
        delay_s=None if die(4) else die(40) / 10,
        key=None if die(4) else _KEYS[die(2)],
        unique=None if die(8) else Unique(key=_KEYS[die(2)]),
        expires_at=None if die(8) else world.now + timedelta(seconds=1 + die(20)),
        after=tuple(Edge(parent) for parent in sorted(parents)),
    )


def ticker(world: World, who: str) -> Steps:
    """Read the schedule, decide what is due, and write it a moment later."""
    link = Link(world, who)
    while True:
        try:
            yield from _tick(world, link)
        except StoreUnavailable:
            yield SECOND
        yield SECOND * (1 + world.dice.throw(4))


def _tick(world: World, link: Link) -> Steps:
    found = link.schedule(SCHEDULE)
    due: list[datetime] = []
    at = found.cursor + EVERY
    while at <= world.now and len(due) < 5:  # noqa: PLR2004 - a page
        due.append(at)
        at += EVERY
    yield SECOND * world.dice.throw(3)
    if due:
        decisions = [OccurrenceDecision(each, Decision.FIRED, None, "{}") for each in due]
        link.fire([Firing(found, decisions, Standing(due[-1], due[-1] + EVERY))])


def declare(world: World) -> None:
    """Add the schedule that the tickers fire."""
    spec = ScheduleSpec(
        name=SCHEDULE, kind="a", expression="@every 20s", tz="UTC", gap="next_valid",
        overlap="first", source="app",
    )  # fmt: skip
    world.store.declare(spec, Standing(NOON, NOON + EVERY))


def sweeper(world: World, who: str) -> Steps:
    """Give up who is silent: the product's own sweeper, on the virtual stopwatch."""
    store = cast("Store", Link(world, who))  # which passes on what is asked of it
    own = Sweeper(store, monotonic=lambda: world.at_us / SECOND)
    while True:
        try:
            if own.sweep():
                world.seen("a silent worker is given up")
        except StoreUnavailable:
            world.note(who, "cannot look", "")
        yield SECOND


def promoter(world: World, who: str) -> Steps:
    """Let line up what has fallen due, skip what is late, and link what was not linked."""
    link = Link(world, who)
    while True:
        try:
            link.promote(20)
            yield 0
            if link.lapse(10):
                world.seen("a deadline passes")
            yield 0
            link.link(10)
        except StoreUnavailable:
            world.note(who, "cannot look", "")
        yield SECOND // 4


def operator(world: World, who: str) -> Steps:
    """Cancel, revive and delete jobs, pause queues, and step the clock."""
    link = Link(world, who)
    while True:
        yield SECOND // 2 * (1 + world.dice.throw(4))
        try:
            _operate(world, link)
        except StoreUnavailable:
            world.note(who, "gives up", "")


def _operate(world: World, link: Link) -> None:
    uuids = list(world.oracle.ids)
    one = uuids[-1 - world.dice.throw(min(12, len(uuids)))] if uuids else None
    running = [job.spec.uuid for job in world.oracle.jobs.values() if job.owner]
    match world.dice.throw(9):
        case 0 | 1 if one:
            link.cancel(one)
        case 2 if running:
            link.cancel(running[world.dice.throw(len(running))])
        case 3 | 4 if one:
            link.revive([uuids[world.dice.throw(len(uuids))]])
        case 5 if one:
            link.delete([uuids[world.dice.throw(len(uuids))]])
        case 6:
            link.pause_queue("mail", "op")
            world.seen("a queue is paused")
        case 7:
            link.resume_queue("mail")
        case _:
            if world.chance(4):
                world.step_clock()
