"""A standby is promoted that lacks the end: exactly that is missing, and nothing of it acts on."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.store.postgres.pair import Pair, do
from tests.store.postgres.processes import ask, eventually
from tests.store.postgres.sessions import claim_all, submit, worker_of

from timeball.action.registry import Registry
from timeball.core.audit import audit
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.errors import StoreUnavailable, WorkerExpired
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.binaries import Binaries
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker

pytestmark = pytest.mark.slow

TAIL = 100
"""More than the 32 numbers of a sequence that a standby knows to be taken."""


@pytest.fixture
def pair(migrated: Path, tmp_path: Path, found: Binaries) -> Iterator[Pair]:
    shutil.copytree(migrated, tmp_path / "main")
    pair = Pair(tmp_path / "main", tmp_path / "spare", found)
    yield pair
    pair.close()


@pytest.fixture
def store(pair: Pair) -> Iterator[PostgresStore]:
    store = PostgresStore(pair.dsn)
    yield store
    store.close()


def again(store: PostgresStore) -> None:
    """Return once the store has found the new primary: the first calls meet old connections."""

    def answers() -> bool:
        try:
            store.pulses()
        except StoreUnavailable:
            return False
        return True

    eventually(answers)


def claim(store: PostgresStore, worker: int, limit: int = 1_000) -> list[Turn]:
    return store.claim(worker, limit=limit, request=uuid4(), floors={})


def succeeded(turns: list[Turn]) -> list[Settlement]:
    return [Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns]


def lose_the_end(pair: Pair, store: PostgresStore, worker: int) -> list[Turn]:
    """Cut the standby off, then do much in the primary that dies with it; return what it grants."""
    pair.catch_up()
    pair.cut()
    submit(store, TAIL)
    for _ in range(TAIL):
        worker_of(store)
    granted = claim_all(store, worker)
    assert len(granted) >= TAIL
    pair.fail_over()
    again(store)
    return granted


def test_exactly_what_was_not_replicated_is_missing(pair: Pair, store: PostgresStore) -> None:
    submit(store, 10)
    worker = worker_of(store)
    early = claim(store, worker, 6)
    store.settle(worker, succeeded(early[:2]))
    replicated = list(store.histories())
    lose_the_end(pair, store, worker)
    assert list(store.histories()) == replicated
    # and all of it goes on: what had begun is told, the rest is granted
    assert store.settle(worker, succeeded(early[2:])) == ["accepted"] * 4
    assert {turn.job_id for turn in claim(store, worker)} == set(range(7, 11))
    assert not audit(store.histories(), quiesced=False).violations


@pytest.mark.parametrize("moves_in", [True, False])
def test_no_ending_from_before_ends_a_job_that_has_its_number_now(
    pair: Pair, store: PostgresStore, *, moves_in: bool
) -> None:
    """The same worker is granted the same numbers again: only the lease's own tells them apart."""
    worker = worker_of(store)
    before = lose_the_end(pair, store, worker)
    if not moves_in:  # the defect that this is about
        do(
            pair.standby,
            "CREATE OR REPLACE FUNCTION timeball.at_home() RETURNS boolean LANGUAGE sql STABLE"
            " AS 'SELECT true'",
        )
    submit(store, 2 * TAIL)
    now = claim_all(store, worker)
    assert {turn.job_id for turn in before} & {turn.job_id for turn in now}
    verdicts = Counter(store.settle(worker, succeeded(before)))
    ended = store.counts().get(State.SUCCEEDED, 0)
    if moves_in:
        assert (verdicts, ended) == ({"stale": TAIL}, 0)
        assert store.settle(worker, succeeded(now)) == ["accepted"] * len(now)
    else:
        assert ended > 0


def test_a_worker_that_was_lost_shares_its_number_with_nobody(
    pair: Pair, store: PostgresStore
) -> None:
    pair.catch_up()
    pair.cut()
    lost = {worker_of(store) for _ in range(TAIL)}
    pair.fail_over()
    again(store)
    assert not lost & {worker_of(store) for _ in range(TAIL)}
    with pytest.raises(WorkerExpired):
        claim(store, max(lost))
    assert store.beat(lost) == set()


def test_a_client_makes_the_lane_again_that_was_lost(pair: Pair, store: PostgresStore) -> None:
    pair.catch_up()
    pair.cut()
    submit(store, queue="new")
    pair.fail_over()
    again(store)
    (spec,) = submit(store, queue="new")
    assert store.get(spec.uuid).state is State.PENDING


def test_with_synchronous_replication_nothing_is_missing(pair: Pair, store: PostgresStore) -> None:
    pair.synchronous()
    submit(store, 20)
    worker = worker_of(store)
    turns = claim(store, worker, 10)
    store.settle(worker, succeeded(turns[:5]))
    accepted = list(store.histories())
    pair.cut()  # with no time to catch up
    pair.fail_over()
    again(store)
    assert list(store.histories()) == accepted
    assert store.settle(worker, succeeded(turns[5:])) == ["accepted"] * 5
    assert len(claim(store, worker)) == 10


class Gated:
    """A worker in a thread, whose jobs count what runs; those from number 5 on wait for a gate."""

    def __init__(self, dsn: str) -> None:
        self.ran: Counter[int] = Counter()
        self.gate = threading.Event()
        self._store = PostgresStore(dsn)
        registry = Registry()
        registry.job(name="a")(self.run)
        config = WorkerConfig(name="w", slots=4, poll_s=0.05)
        self._worker = Worker(self._store, registry, config, draw=lambda: 0.0)
        self._thread = threading.Thread(target=self._worker.work)
        self._thread.start()

    def run(self, n: int) -> None:
        self.ran[n] += 1
        if n >= 5:
            assert self.gate.wait(60.0)

    def end(self) -> None:
        self.gate.set()
        self._worker.stop()
        self._thread.join(60.0)
        self._store.close()


@pytest.fixture
def gated(pair: Pair) -> Iterator[Gated]:
    gated = Gated(pair.dsn)
    yield gated
    gated.end()


def add(store: PostgresStore, *numbers: int) -> None:
    store.submit([JobSpec(uuid=uuid4(), kind="a", args=f'{{"n":{n}}}') for n in numbers])


def test_a_worker_goes_on_and_starts_nothing_that_has_ended(
    pair: Pair, store: PostgresStore, gated: Gated
) -> None:
    """It runs turns of a lease that is there and of one that is lost."""
    add(store, *range(6))  # 0 to 4 end, 5 holds on
    eventually(lambda: store.counts() == {State.SUCCEEDED: 5, State.RUNNING: 1})
    pair.catch_up()
    pair.cut()
    add(store, 6, 7)  # lost, with the lease by which they run
    eventually(lambda: gated.ran[6] == gated.ran[7] == 1)
    pair.fail_over()
    again(store)
    add(store, 8, 9)
    eventually(lambda: gated.ran[8] == 1)
    gated.gate.set()
    eventually(lambda: store.counts() == {State.SUCCEEDED: 8})
    gated.end()
    assert gated.ran == Counter(range(10))
    report = audit(store.histories(), quiesced=True)
    assert not report.violations
    assert report.stale == 0
    assert ask(pair.standby, "SELECT count(*) FROM timeball.worker WHERE ended_at IS NULL") == 0
