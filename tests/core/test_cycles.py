"""Jobs that wait for each other are found wherever there are any, and nobody else is accused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import T0, held, job

from timeball.core.audit import audit
from timeball.core.cycles import WAY_SHOWN, Cycle, Waits
from timeball.core.dependencies import Rule
from timeball.core.history import EdgeRecord, JobHistory
from timeball.core.states import State

Graph = Mapping[int, set[int]]
GRAPHS = st.dictionaries(st.integers(1, 7), st.sets(st.integers(1, 7), max_size=3), max_size=7)


def edge(parent: int, decided_at: float | None = None) -> EdgeRecord:
    met = None if decided_at is None else True
    linked_at = None if decided_at is None else T0
    return EdgeRecord(parent, Rule.ALL_DONE, linked_at, decided_at, met, (), False, added=True)


def waiting(number: int, *edges: EdgeRecord, state: State = State.WAITING) -> JobHistory:
    return job(held(1, state), edges=edges)._replace(id=number)


def found(*histories: JobHistory) -> list[Cycle]:
    waits = Waits()
    for history in histories:
        waits.take(history)
    return list(waits.cycles())


def graph_of(graph: Graph) -> list[JobHistory]:
    return [waiting(child, *map(edge, sorted(graph[child]))) for child in sorted(graph)]


def reaches(graph: Graph, begin: int, end: int) -> bool:
    known, left = set[int](), [begin]
    while left:
        for parent in graph.get(left.pop(), set()) - known:
            known.add(parent)
            left.append(parent)
    return end in known


@given(GRAPHS)
def test_a_cycle_is_found_iff_somebody_waits_for_himself_by_way_of_others(graph: Graph) -> None:
    seen = found(*graph_of(graph))
    assert bool(seen) == any(reaches(graph, child, child) for child in graph)
    for cycle in seen:
        ways = [*cycle.jobs, cycle.jobs[0]] if cycle.length <= WAY_SHOWN else cycle.jobs
        assert all(parent in graph[child] for child, parent in pairwise(ways))


def test_an_edge_that_is_decided_and_a_job_that_waits_no_more_close_no_cycle() -> None:
    assert found(waiting(1, edge(2)), waiting(2, edge(1))) == [Cycle((1, 2), 2)]
    assert found(waiting(1, edge(2, decided_at=T0)), waiting(2, edge(1))) == []
    assert found(waiting(1, edge(2)), waiting(2, edge(1), state=State.PENDING)) == []


def test_a_long_way_is_told_by_its_beginning_and_goes_no_deeper_than_the_interpreter() -> None:
    last = 5_000
    ring = [waiting(child, edge(child % last + 1)) for child in range(1, last + 1)]
    (cycle,) = found(*ring)
    assert str(cycle) == (
        "waits for job 2, which waits for job 3, which waits for job 4, which waits for job 5, "
        "which waits for 4995 more, which waits for job 1: a cycle"
    )


def test_an_audit_names_a_cycle_of_edges_that_were_added() -> None:
    report = audit([waiting(1, edge(2)), waiting(2, edge(1))], quiesced=False)
    told = [str(each) for each in report.violations if each.invariant == "I15"]
    assert told == ["I15 job 1: waits for job 2, which waits for job 1: a cycle"]
