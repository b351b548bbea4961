"""Batches and their jobs, as the tests of stores write them."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.store.world import World, end

from timeball.core.batches import BATCH, batch_args
from timeball.core.dependencies import Edge, Rule
from timeball.core.records import JobSpec
from timeball.core.states import Ending


def job(*after: UUID, rule: Rule = Rule.ALL_SUCCESS, kind: str = "a") -> JobSpec:
    return JobSpec(uuid=uuid4(), kind=kind, after=tuple(Edge(each, rule) for each in after))


def batch(*members: JobSpec | UUID, is_open: bool = False, after: tuple[Edge, ...] = ()) -> JobSpec:
    uuids = [each.uuid if isinstance(each, JobSpec) else each for each in members]
    edges = (*(Edge(uuid, Rule.MEMBER) for uuid in uuids), *after)
    args = batch_args("b", is_open=is_open)
    return JobSpec(uuid=uuid4(), kind=BATCH, args=args, after=edges)


def submit(world: World, *specs: JobSpec) -> list[UUID]:
    return [added.uuid for added in world.store.submit(specs)]


def finish(world: World, *endings: Ending) -> None:
    """End the jobs that are pending, in their order."""
    worker = world.worker()
    turns = world.claim(worker, len(endings))
    for turn, ending in zip(turns, endings, strict=True):
        world.settle(worker, end(turn, ending))


GOOD, BAD, OFF = Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED
