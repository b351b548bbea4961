"""Jobs that come after others, as a caller writes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.client.jobs import add
from tests.store.world import end

import timeball as tb
from timeball.action.edges import parents_of
from timeball.action.job_specs import job_spec
from timeball.core.dependencies import Edge, Rule, RuledOut
from timeball.core.states import Ending
from timeball.errors import UsageError
from timeball.store.memory import MemoryStore

A, B = UUID(int=1), UUID(int=2)


@pytest.fixture
def client() -> Iterator[tb.Client]:
    with tb.Client(MemoryStore(lambda: datetime.now(UTC))) as client:
        yield client


def run(client: tb.Client, ending: Ending = Ending.SUCCEEDED, **how: Any) -> None:
    """Carry out all that may start now, but not what that sets free."""
    store = client.store
    worker = store.register("w", kinds=["client.add"], queues=["sums"], lease_s=30.0)
    turns = store.claim(worker, limit=1_000, request=uuid4(), floors={})
    store.settle(worker, [end(turn, ending, **how) for turn in turns])


def test_parents_are_handles_uuids_or_texts_each_with_its_rule_or_the_common_one(
    client: tb.Client,
) -> None:
    parent = client.submit(add, a=1)
    spec = job_spec(add, {"a": 1, "after": [parent, str(A), (B, "one_failed")], "rule": "all_done"})
    assert spec.after == (
        Edge(parent.uuid, Rule.ALL_DONE),
        Edge(A, Rule.ALL_DONE),
        Edge(B, Rule.ONE_FAILED),
    )
    assert spec.ruled_out is RuledOut.SKIP


def test_a_parent_twice_is_one_and_no_parents_are_none() -> None:
    assert parents_of({"after": (A, A, B)})[0] == (Edge(A), Edge(B))
    assert parents_of({"after": []}) == ((), RuledOut.SKIP)
    assert parents_of({}) == ((), RuledOut.SKIP)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"after": A}, "write a list"),
        ({"after": "job"}, "write a list"),
        ({"after": ["job"]}, "write handles, uuids, or pairs"),
        ({"after": [None]}, "write handles, uuids, or pairs"),
        ({"after": [A], "rule": "any"}, "rule is 'any': write one of 'all_success'"),
        ({"after": [(A, "any")]}, "the rule in after is 'any'"),
        ({"after": [A], "ruled_out": "stop"}, "write one of 'skip', 'fail', 'run'"),
        ({"after": [A, (A, "all_done")]}, "two rules"),
        ({"after": [UUID(int=n) for n in range(10_001)]}, "10,000 at most"),
        ({"rule": "all_done"}, "pass after=… too"),
        ({"ruled_out": "run"}, "pass after=… too"),
    ],
)
def test_a_mistake_is_told_before_any_store(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text.replace("…", r"\[…\]")):
        job_spec(add, {"a": 1, **options})


def test_a_child_runs_once_its_parents_allow_it(client: tb.Client) -> None:
    parents = client.submit_many(add, [{"a": n} for n in range(3)])
    child = client.submit(add, a=9, after=parents)
    others = client.submit_many(add, [{"a": 1}, {"a": 2}], after=[(child, "one_failed")])
    assert child.job().state is tb.State.WAITING
    run(client)
    assert child.job().state is tb.State.PENDING
    run(client, Ending.FAILED)
    assert [other.job().state for other in others] == [tb.State.PENDING] * 2


def test_a_child_that_is_ruled_out_does_as_it_was_told(client: tb.Client) -> None:
    parent = client.submit(add, a=1)
    skipped = client.submit(add, a=2, after=[parent])
    failed = client.submit(add, a=2, after=[parent], ruled_out="fail")
    runs = client.submit(add, a=2, after=[parent], ruled_out="run")
    run(client, Ending.FAILED)
    states = [job.job().state for job in (skipped, failed, runs)]
    assert states == [tb.State.SKIPPED, tb.State.FAILED, tb.State.PENDING]


def test_an_unknown_parent_is_refused(client: tb.Client) -> None:
    with pytest.raises(UsageError, match="submit parents first"):
        client.submit(add, a=1, after=[uuid4()])
    assert client.jobs() == []
