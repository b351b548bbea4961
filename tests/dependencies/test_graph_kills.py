"""Graphs whose workers are killed end exactly as it was predicted, in both engines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.dependencies.deaths import node as run_node
from tests.dependencies.graphs import Node, drawn, longest, predicted

from timeball import Client, Draft, Retry, Scheduler, draft
from timeball.core.audit import audit
from timeball.core.floors import Floor
from timeball.core.states import TERMINAL
from timeball.store.postgres import PostgresStore

NODES = int(os.environ.get("TIMEBALL_TEST_NODES", "1500"))
"""Of each graph; with 10,000 it takes minutes."""
DEATHS, KILLS = 12, 3
PATIENCE_S = 600.0


@pytest.mark.slow
def test_a_scheduler_whose_processes_die_brings_every_node_where_it_should_be(
    tmp_path: Path,
) -> None:
    nodes = drawn(Random(7), NODES)
    dying = {*Random(8).sample(range(NODES), DEATHS)}
    drafts: list[Draft] = []
    for n, each in enumerate(nodes):
        options: dict[str, Any] = {"mark": str(tmp_path / str(n))} if n in dying else {}
        after = [(drafts[parent], rule) for parent, rule in each.after.items()]
        options |= {"after": after} if after else {}
        drafts.append(draft(run_node, each.fails, ruled_out=each.ruled_out, **options))
    with Scheduler(workers=3, runner="processes", retry=Retry(0)) as s:
        handles = s.submit_all(drafts)
        s.wait()
        assert s.violations() == []
        report, records = s.report(), s.records()
    wanted = predicted(nodes)
    assert sum(a is not b.state for a, b in zip(wanted, handles, strict=True)) == 0
    lost = Counter(str(each.ending) for each in records)["lost"]
    assert lost == sum(handles[n].attempts[0].slot is not None for n in dying)

    # What the report says, worked out again from the records alone.
    spent = Counter[int]()
    for each in records:
        spent[int(each.job)] += each.ran_ns
    makespan = max(each.finished_ns for each in records) - min(each.started_ns for each in records)
    critical = longest(nodes, [spent[int(handle.id)] for handle in handles])
    work = -(-sum(spent.values()) // 3)
    assert report.makespan_ns == makespan
    assert report.bound.floors[Floor.CHAIN] == critical
    assert report.bound.floors[Floor.WORK] == work
    assert max(critical, work) <= report.bound.ns <= makespan
    assert report.efficiency == report.bound.ns / makespan


class Fleet:
    """Worker processes that are killed and replaced."""

    def __init__(self, store: PostgresStore, dsn: str) -> None:
        self._store, self._dsn = store, dsn
        self._members: list[tuple[subprocess.Popen[str], int]] = []

    def hire(self) -> None:
        argv = [sys.executable, "-m", "tests.dependencies.graph_worker", self._dsn]
        root = Path(__file__).parents[2]
        process = subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        self._members.append((process, int(process.stdout.readline())))

    def kill_one(self) -> None:
        """Kill the oldest without warning; its death is certain, as its supervisor would say."""
        process, number = self._members.pop(0)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        assert self._store.expire(number, beat=None, begun=None) is not None

    def close(self) -> None:
        while self._members:
            self.kill_one()


def graph(client: Client, nodes: list[Node]) -> list[Any]:
    drafts: list[Draft] = []
    for each in nodes:
        after = [(drafts[parent], rule) for parent, rule in each.after.items()]
        edges: dict[str, Any] = {"after": after, "ruled_out": each.ruled_out} if after else {}
        kind = "bad" if each.fails else "good"
        drafts.append(draft(kind, max_retries=0, max_crashes=1_000, **edges))
    return client.submit_all(drafts)


@pytest.mark.slow
def test_workers_that_are_killed_bring_every_node_where_it_should_be(
    store: PostgresStore, dsn: str
) -> None:
    nodes, client, fleet = drawn(Random(9), NODES), Client(store), Fleet(store, dsn)
    handles = graph(client, nodes)
    deadline = time.monotonic() + PATIENCE_S
    try:
        for _ in range(2):
            fleet.hire()
        for kill in range(1, KILLS + 2):
            upto = NODES * kill // (KILLS + 1)
            while sum(n for state, n in store.counts().items() if state in TERMINAL) < upto:
                assert time.monotonic() < deadline, store.counts()
                time.sleep(0.02)
            if kill <= KILLS:
                fleet.kill_one()
                fleet.hire()
    finally:
        fleet.close()
    wanted = predicted(nodes)
    states = [client.get(handle).state for handle in handles]
    assert sum(a is not b for a, b in zip(wanted, states, strict=True)) == 0
    report = audit(store.histories(), quiesced=True)
    assert report.clean, report.violations[:3]
