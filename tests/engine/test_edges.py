"""Edges that are added to jobs of a scheduler while these wait."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from timeball import Retry, Scheduler, State
from timeball.core.dependencies import EdgesAnswer
from timeball.errors import UsageError


def give(n: int = 0) -> int:
    return n


def refuse() -> None:
    raise PermissionError


def test_a_job_that_waits_waits_for_more_whatever_state_they_are_in() -> None:
    first, second = Event(), Event()
    with Scheduler(workers=2, retry=Retry(0)) as s:
        ended = s.submit(give)
        child = s.submit(give, 7, after=[s.submit(first.wait)])
        later = s.submit(second.wait)
        ended.result()
        assert s.add_edges(child, [ended, later]) is EdgesAnswer.ADDED
        assert s.add_edges(child.id, [later.id]) is EdgesAnswer.ADDED  # once
        first.set()
        s.wait([1, 2])
        assert child.state is State.WAITING
        second.set()
        assert child.result() == 7
        assert s.add_edges(child, [later]) is EdgesAnswer.REFUSED
    assert s.violations() == []
    assert s.report().bound.ns <= s.report().makespan_ns


def test_a_parent_that_has_failed_before_rules_its_new_child_out_at_once() -> None:
    gate = Event()
    with Scheduler(workers=2, retry=Retry(0)) as s:
        failed = s.submit(refuse)
        s.wait([failed])
        children = [s.submit(give, after=[s.submit(gate.wait)]) for _ in range(2)]
        last = s.submit(give, after=[children[0]], rule="all_done")
        assert s.add_edges(children[0], [failed, (children[1], "all_done")]) is EdgesAnswer.ADDED
        assert s.add_edges(children[1], [(failed, "one_failed")]) is EdgesAnswer.ADDED
        assert children[0].state is State.SKIPPED
        gate.set()
    assert children[1].state is last.state is State.SUCCEEDED
    assert s.violations() == []


def test_a_cycle_is_refused_whole_and_its_way_is_named() -> None:
    gate = Event()
    with Scheduler(workers=1) as s:
        root = s.submit(gate.wait)
        a = s.submit(give, after=[root], id="a")
        b = s.submit(give, after=[a], id="b")
        c = s.submit(give, after=[b], id="c")
        other = s.submit(give)
        way = "job a would wait for job c, which waits for job b, which waits for job a: a cycle"
        with pytest.raises(UsageError, match=way):
            s.add_edges(a, [other, c])
        with pytest.raises(UsageError, match="a cycle"):
            s.add_edges(a, [a])
        with pytest.raises(UsageError, match="job a has the rule all_success there already"):
            s.add_edges(b, [a], rule="all_done")
        assert s.cancel(other) == "cancelled"
        gate.set()
    assert a.state is b.state is c.state is State.SUCCEEDED


def test_of_two_that_add_opposite_edges_at_once_one_is_refused() -> None:
    gate = Event()
    with Scheduler(workers=1) as s:
        root = s.submit(gate.wait)
        for _ in range(50):
            pair = [s.submit(give, after=[root]) for _ in range(2)]
            told: list[object] = []

            def add(child: int, pair: list = pair, told: list = told) -> None:
                try:
                    told.append(s.add_edges(pair[child], [pair[1 - child]]))
                except UsageError as error:
                    told.append("a cycle" in str(error))

            threads = [Thread(target=add, args=(n,)) for n in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(map(str, told)) == ["True", "added"]
        gate.set()
    assert s.counts()[State.SUCCEEDED] == 101
