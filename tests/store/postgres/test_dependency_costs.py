"""What edges cost grows as their number does: rows that statements have touched, not time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.store.postgres.plans import Explained, Plan
from tests.store.postgres.sessions import claim_all, settle_of, submit, worker_of
from tests.store.postgres.test_plans import analyze, settlement

from timeball.core.dependencies import Edge
from timeball.core.records import JobSpec, Turn
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.encoding import encode_edges, encode_specs

FEW, MANY = 100, 1_000
pytestmark = pytest.mark.slow
Statement = tuple[str, dict[str, Any]]


def touched(plans: list[Plan]) -> int:
    """All rows that the nodes of some plans gave or threw away: what grows faster shows in it."""
    lost = (
        "Rows Removed by Filter",
        "Rows Removed by Join Filter",
        "Rows Removed by Index Recheck",
    )
    return sum(
        round(
            node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(each, 0) for each in lost))
        )
        for plan in plans
        for node in plan.nodes()
    )


def job(*parents: Turn | JobSpec) -> JobSpec:
    return JobSpec(uuid=uuid4(), kind="a", after=tuple(Edge(each.uuid) for each in parents))


def running(ledger: PostgresStore, count: int) -> tuple[int, list[Turn]]:
    """A worker, and jobs that it runs; what an earlier case has left is taken away."""
    worker = worker_of(ledger)
    claim_all(ledger, worker)
    submit(ledger, count)
    return worker, claim_all(ledger, worker)


def released(ledger: PostgresStore, children: int, event: str = "succeeded") -> Statement:
    worker, (turn,) = running(ledger, 1)
    ledger.submit([job(turn) for _ in range(children)])
    return "settle", settle_of(worker, turn, event)


def skipped(ledger: PostgresStore, children: int) -> Statement:
    return released(ledger, children, "failed")


def a_chain_skipped(ledger: PostgresStore, depth: int) -> Statement:
    worker, (turn,) = running(ledger, 1)
    specs = [job(turn)]
    while len(specs) < depth:
        specs.append(job(specs[-1]))
    ledger.submit(specs)
    return "settle", settle_of(worker, turn, "failed")


def parents_ended(ledger: PostgresStore, parents: int) -> Statement:
    worker, turns = running(ledger, parents)
    ledger.submit([job(*turns)])
    return "settle", settlement(worker, turns, "succeeded")


def submitted(ledger: PostgresStore, parents: int) -> Statement:
    _, turns = running(ledger, parents)
    return "submit", {"jobs": encode_specs([job(*turns)])}


def submitted_together(ledger: PostgresStore, children: int) -> Statement:
    worker_of(ledger)
    submit(ledger, 1)
    first = job()
    return "submit", {"jobs": encode_specs([first, *(job(first) for _ in range(children))])}


def spawned(ledger: PostgresStore, children: int) -> Statement:
    worker, (turn,) = running(ledger, 1)
    lane, seq, job_id, number = turn[:4]
    facts = {"worker": worker, "lane": lane, "seq": seq, "job_id": job_id, "turn": number}
    facts |= {"began": turn.granted_at, "ran_s": 0.0, "result": None}
    return "spawn", {**facts, "jobs": encode_specs([job() for _ in range(children)])}


def edges_added(ledger: PostgresStore, parents: int) -> Statement:
    _, turns = running(ledger, 1 + parents)
    child = job(turns[0])
    ledger.submit([child])
    edges = encode_edges([Edge(turn.uuid) for turn in turns])
    return "add_edges", {"job": child.uuid, "after": edges}


def an_edge_added_to_a_long_way(ledger: PostgresStore, depth: int) -> Statement:
    _, (turn,) = running(ledger, 1)
    specs = [job(turn)]
    while len(specs) < depth:
        specs.append(job(specs[-1]))
    ledger.submit([*specs, last := job(turn)])
    return "add_edges", {"job": last.uuid, "after": encode_edges([Edge(specs[-1].uuid)])}


@pytest.mark.parametrize(
    "case",
    [
        *(released, skipped, a_chain_skipped, parents_ended, submitted, submitted_together),
        *(spawned, edges_added, an_edge_added_to_a_long_way),
    ],
    ids=lambda each: each.__name__,
)
def test_ten_times_as_many_edges_cost_ten_times_as_much(
    ledger: PostgresStore, dsn: str, case: Callable[[PostgresStore, int], Statement]
) -> None:
    analyze(dsn)
    explained, costs = Explained(dsn), []
    for count in (FEW, MANY):
        _, plans = explained.run(*case(ledger, count))
        costs.append(touched(plans))
    explained.close()
    assert costs[0] >= FEW
    assert costs[1] <= 1.3 * (MANY // FEW) * costs[0]


def test_the_end_of_one_parent_costs_the_same_however_many_its_child_has(
    ledger: PostgresStore, dsn: str
) -> None:
    analyze(dsn)
    explained, costs = Explained(dsn), []
    for count in (FEW, MANY):
        worker, (turn,) = running(ledger, 1)
        ledger.submit([job(turn, *submit(ledger, count - 1))])
        _, plans = explained.run("settle", settle_of(worker, turn))
        costs.append(touched(plans))
    explained.close()
    assert costs[1] <= 1.3 * costs[0]
