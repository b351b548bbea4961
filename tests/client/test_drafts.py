"""Different jobs with edges among them are submitted as one, by both clients, all or none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from tests.client.jobs import add
from tests.store.world import end

import timeball as tb
from timeball.core.states import State
from timeball.errors import UniqueClash, UsageError
from timeball.store.memory import MemoryStore


@pytest.fixture
def client() -> Iterator[tb.Client]:
    with tb.Client(MemoryStore(lambda: datetime.now(UTC))) as client:
        yield client


def states(client: tb.Client, handles: list[tb.Handle]) -> list[State]:
    return [client.get(handle).state for handle in handles]


def test_edges_name_jobs_that_exist_and_earlier_ones_of_the_same_submission(
    client: tb.Client,
) -> None:
    there = client.submit(add, a=0)
    first = tb.draft(add, a=1, after=[there])
    second = tb.draft("somebody.elses", after=[(first, "all_done"), there.uuid], ruled_out="run")
    handles = client.submit_all([first, second])
    assert [handle.uuid for handle in handles] == [first.uuid, second.uuid]
    assert states(client, handles) == [State.WAITING, State.WAITING]
    client.cancel(there)
    assert states(client, handles) == [State.SKIPPED, State.PENDING]


def test_what_is_put_together_is_submitted_as_it_is(client: tb.Client) -> None:
    flow = tb.chain(tb.draft(add, a=1), tb.group(*(tb.draft(add, a=n) for n in range(3))), "load")
    handles = client.submit_all(flow)
    assert states(client, handles) == [State.PENDING, *[State.WAITING] * 4]
    client.cancel(handles[0])
    assert states(client, handles) == [State.CANCELLED, *[State.SKIPPED] * 4]


def carried_out(client: tb.Client) -> list[int]:
    """Carry all of them out, and return their numbers in the order in which they might start."""
    store, order = client.store, []
    worker = store.register("w", kinds=["client.add"], queues=["sums"], lease_s=30.0)
    while turns := store.claim(worker, limit=1_000, request=uuid4(), floors={}):
        order += [json.loads(turn.args)["a"] for turn in turns]
        store.settle(worker, [end(turn) for turn in turns])
    return order


def numbered(*numbers: int) -> list[tb.Draft]:
    return [tb.draft(add, a=number) for number in numbers]


def test_no_parents_one_member_and_empty_groups_in_a_nested_fan_in_hold_nobody_up(
    client: tb.Client,
) -> None:
    start, left, right, inner, end_, alone = numbered(0, 1, 2, 3, 4, 5)
    fan = tb.group(tb.chain(left, tb.group(), tb.chord([], inner)), tb.chain(tb.group(right)))
    client.submit_all(tb.chain(tb.group(), start, fan, tb.group(tb.group()), end_))
    client.submit_all([tb.draft(add, a=5, after=[]), alone])
    order = carried_out(client)
    assert sorted(order) == [0, 1, 2, 3, 4, 5, 5]
    places = {number: order.index(number) for number in range(6)}
    assert places[0] < places[1] < places[3] < places[4]
    assert places[0] < places[2] < places[4]
    assert set(client.counts().items()) >= {(State.SUCCEEDED, 7), (State.WAITING, 0)}


def test_all_are_there_or_none(client: tb.Client) -> None:
    client.submit(add, a=1, unique="u")
    good = tb.draft(add, a=1)
    for bad in (
        tb.draft(add, b=1),
        tb.draft(add, a=1, after=[tb.draft(add, a=2)]),
        tb.draft(add, 1),
        tb.draft(add, a=1, connection=object()),
        tb.draft(add, a=1, unique="u", on_clash="reject"),
    ):
        with pytest.raises((UsageError, UniqueClash)):
            client.submit_all([good, bad])
    assert sum(client.counts().values()) == 1


def test_the_same_drafts_again_add_nothing(client: tb.Client) -> None:
    flow = tb.chain(tb.draft(add, a=1), tb.draft(add, a=2))
    assert client.submit_all(flow) == client.submit_all(flow)
    assert sum(client.counts().values()) == 2


def test_nothing_is_a_submission_too(client: tb.Client) -> None:
    assert client.submit_all([]) == client.submit_all(tb.group()) == []


def test_the_async_client_does_the_same(client: tb.Client) -> None:
    async def submit() -> list[tb.Handle]:
        return await tb.AsyncClient(client).submit_all(tb.chain(tb.draft(add, a=1), "load"))

    assert states(client, asyncio.run(submit())) == [State.PENDING, State.WAITING]
