"""Workers under limits on what starts: they keep to the rate, and whoever waits delays nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from random import Random
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worker.loop.workshop import Workshop

from timeball.core.limits import Scope
from timeball.core.permits import TTL_S, Proof, Start, proofs
from timeball.core.rate import Rate
from timeball.core.records import Promoted, Turn
from timeball.core.states import Ending, State
from timeball.engine.runner import Runner
from timeball.store.limiting import RATE_SPENT, Ask, Granted, Grants, Spent
from timeball.store.memory import MemoryStore
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.begun import BegunTable
from timeball.worker.exclusive import Guard
from timeball.worker.permits import Batch, PermitDesk, StoreClock
from timeball.worker.tenure import Tenure

NAMES = {Scope.KEY: "k-*", Scope.KIND: "quick", Scope.QUEUE: "default"}


def proof(shop: Workshop, rate: Rate, kind: str = "quick") -> Proof:
    """All starts of a kind on record: the limit was set before the first one."""
    stamps = sorted(
        round(ending.began_at * 1e6)
        for history in shop.store.inner.histories()
        if history.kind == kind
        for ending in history.endings
        if ending.began_at is not None
    )
    (found,) = proofs([Start("x", rate, stamp) for stamp in stamps])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Rate(10, per_s=0.3), Rate(60, spread=True), Rate(40, burst=5)])
@pytest.mark.parametrize("scope", list(Scope))
def test_four_workers_that_stall_keep_to_a_rate(shop: Workshop, scope: Scope, rate: Rate) -> None:
    shop.job(name="quick")(lambda: None)
    shop.store.limit_starts(scope, NAMES[scope], rate)
    shop.store.limit(Scope.KEY, "k-*", 20)
    random = Random(7)

    def stall(*_: object, **__: object) -> None:
        if random.random() < 0.05:
            time.sleep(random.random() * 0.1)

    shop.store.before |= {"permits": stall, "claim": stall, "settle": stall}
    for _ in range(60):
        shop.submit("quick", key="k-1" if scope is Scope.KEY else None)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(shop.at_work(slots=4, poll_s=0.1))
        shop.store.until(shop.all_ended)
    found = proof(shop, rate)
    assert found.starts == 60
    assert found.early == ()
    shop.assert_clean()


def test_never_six_where_five_may_start(shop: Workshop) -> None:
    rate = Rate(5, per_s=3600)
    shop.job(name="quick")(lambda: None)
    shop.store.limit_starts(Scope.QUEUE, "default", rate)
    for _ in range(30):
        shop.submit("quick")
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(shop.at_work())
        shop.store.until(lambda: shop.count(State.SUCCEEDED) == 5)
        asked = shop.store.calls["permits"]
        shop.store.until(lambda: shop.store.calls["permits"] > asked + 9)
    assert shop.count(State.SUCCEEDED) == 5
    assert shop.count(State.PENDING) == 25


@pytest.mark.parametrize("scope", [Scope.KEY, Scope.KIND])
def test_a_tenant_that_waits_for_his_rate_delays_no_other(shop: Workshop, scope: Scope) -> None:
    shop.job(name="quick")(lambda: None)
    shop.job(name="free")(lambda: None)
    shop.store.limit_starts(scope, NAMES[scope], Rate(1, per_s=3600))
    a = [shop.submit("quick", key="k-a" if scope is Scope.KEY else None) for _ in range(300)]
    b = [shop.submit("free", key="b" if scope is Scope.KEY else None) for _ in range(10)]

    def ended(jobs: list[UUID]) -> int:
        return sum(shop.get(job).state is State.SUCCEEDED for job in jobs)

    with shop.at_work(poll_s=0.1):
        shop.store.until(lambda: ended(b) == 10)
        shop.store.until(lambda: ended(a) == 1)
    assert ended(a) == 1


def test_a_worker_without_rates_asks_for_no_permits(shop: Workshop) -> None:
    shop.job(name="quick")(lambda: None)
    for _ in range(20):
        shop.submit("quick")
    with shop.at_work():
        shop.store.until(shop.all_ended)
    assert shop.store.calls["permits"] == 0


@pytest.mark.slow
def test_a_turn_whose_permit_has_run_out_is_given_back_and_starts_later(shop: Workshop) -> None:
    """Its answer came too late: it had been on its way for longer than a permit is good."""
    shop.job(name="quick")(lambda: None)
    shop.store.limit_starts(Scope.KIND, "quick", Rate(5, per_s=0.1))
    shop.store.after["permits"] = lambda: time.sleep(TTL_S + 0.01)
    job = shop.submit("quick")
    with shop.at_work():
        shop.store.until(shop.all_ended)
    (history,) = shop.store.inner.histories()
    assert [(e.ending, e.reason, e.began_at is None) for e in history.endings] == [
        (Ending.RELEASED, RATE_SPENT, True),
        (Ending.SUCCEEDED, None, False),
    ]
    assert shop.get(job).attempts == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_store_that_is_away_while_permits_are_asked_for_loses_nothing(
    shop: Workshop, fault: str
) -> None:
    rate = Rate(3, per_s=0.05)
    shop.job(name="quick")(lambda: None)
    shop.store.limit_starts(Scope.QUEUE, "default", rate)
    shop.store.limit_starts(Scope.KIND, "quick", rate)
    shop.store.faults = {"permits": [fault, "", fault], "claim": [fault, fault]}
    for _ in range(6):
        shop.submit("quick")
    with shop.at_work():
        shop.store.until(shop.all_ended)
    assert proof(shop, rate).early == ()
    shop.assert_clean()


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_stop_gives_back_a_turn_that_waits_for_its_instant_and_its_permit(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, *, cancelled: bool
) -> None:
    """The instant is made to lie far ahead: no machine is so slow that it comes."""
    inner, told = shop.store.inner.permits, []

    def far_ahead(asks: Sequence[Ask], spent: Sequence[Spent]) -> Grants:
        told.extend(spent)
        at, granted, wait_s = inner(asks, spent)
        late = [Granted(tuple(p._replace(wait_s=600.0) for p in each.parts)) for each in granted]
        return Grants(at, late, wait_s)

    monkeypatch.setattr(shop.store.inner, "permits", far_ahead)
    shop.job(name="quick")(lambda: None)
    shop.store.limit_starts(Scope.KIND, "quick", Rate(5, per_s=1))
    job = shop.submit("quick")
    with shop.at_work(poll_s=0.02) as worker:
        shop.store.until(lambda: shop.store.calls["permits"] > 0)
        promoted = shop.store.calls["promote"]  # by the next one the turn lies in the kernel
        shop.store.until(lambda: shop.store.calls["promote"] > promoted)
        if cancelled:
            assert shop.store.cancel(job) == "requested"
        assert shop.get(job).state is State.RUNNING
        worker.stop()
        shop.store.until(lambda: bool(told))
    assert [(spent.name, spent.used) for spent in told] == [("kind:quick", 0)]
    found = shop.get(job)
    assert found.state is (State.CANCELLED if cancelled else State.PENDING)
    assert found.attempts == 0
    (history,) = shop.store.inner.histories()
    assert [each.began_at for each in history.endings] == [None] * len(history.endings)


def test_a_turn_that_is_put_off_keeps_no_permit(shop: Workshop) -> None:
    table = BegunTable.create(1)

    @shop.job(name="lone", exclusive=True)
    def lone() -> None:
        """Do nothing."""

    guard = Guard(table, 9.0)  # its worker has not registered: nothing exclusive may begin
    bench = Bench(lambda: 0.0, None, guard=guard, alone=cast("Runner", object()))
    turn = Turn(1, 1, 1, 1, UUID(int=1), "lone", "{}", 0, 0, 0, 0.0, 3, None, 1_000.0)
    permits = batch(1)
    attempt = TurnAttempt(
        *(turn, shop.registry["lone"], Tenure(1)), arrived_s=0.0, bench=bench, permits=[permits]
    )
    assert attempt.run().ending is Ending.SNOOZED
    (spent,) = permits.close(100.3) or ()  # at once, and not when it has run out
    assert spent.used == 0
    table.close()


# The desk by itself


def batch(count: int, *, sent_s: float = 100.0, ring: Callable[[], None] = lambda: None) -> Batch:
    return Batch([("queue:q", 7)], count, at=1e9, instant_s=(sent_s, sent_s + 0.2), ring=ring)


def test_a_start_is_told_to_lie_between_its_grant_and_the_end_of_its_permit() -> None:
    permits = batch(1)
    assert permits.began_at(100.2) == 1e9
    assert permits.began_at(100.0 + TTL_S) < 1e9 + TTL_S


def test_a_permit_is_used_once_and_in_time() -> None:
    rung: list[int] = []
    permits = batch(2, ring=lambda: rung.append(1))
    assert permits.use(100.3)
    assert permits.close(100.4) is None  # another one is open
    assert not permits.use(100.0 + TTL_S)
    (spent,) = permits.close(100.0 + TTL_S) or ()
    assert (spent.name, spent.number, spent.used) == ("queue:q", 7, 1)
    assert 300_000 <= spent.late_us <= 300_002
    assert not permits.use(100.35)  # what was told is told
    assert rung == [1]


def test_a_permit_of_a_later_instant_is_not_used_before() -> None:
    permits = batch(1)
    assert not permits.use(permits.begins_s - 1e-6)
    assert permits.use(permits.begins_s)


def test_a_permit_that_is_given_ahead_holds_from_its_instant_on() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    store = MemoryStore(lambda: at)
    store.limit_starts(Scope.QUEUE, "q", Rate(1, per_s=0.1))
    desk = PermitDesk(store, ["q"], lambda: None)
    desk.heed(Promoted(0, None, frozenset({"q"})))
    turns = [Turn(1, 1, n, 1, *[None] * 10, rates=["queue:q"]) for n in (1, 2)]  # type: ignore[arg-type]  # the rest does not matter
    batches = []
    for turn in turns:
        assert desk.stock(1) == {"q": 1}
        (found,) = desk.cover([turn])[turn[2:4]]
        found.use(found.begins_s)
        batches.append(found)
        desk.report()
    assert desk.stock(1) == {"q": 0}  # the third one is too far ahead
    first, second = (batch.began_at(batch.begins_s) for batch in batches)
    assert first == at.timestamp()
    assert 0.1 <= second - first < 0.11


@given(
    ahead_s=st.floats(-1e9, 1e9),
    apart=st.floats(-0.0009, 0.0009),
    asks=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1), st.floats(0, 1)), min_size=1),
)
def test_an_instant_of_the_store_lies_between_its_readings_however_answers_stall(
    ahead_s: float, apart: float, asks: list[tuple[float, float, float]]
) -> None:
    clock, now_s = StoreClock(), 0.0
    for rest_s, there_s, back_s in asks:
        sent_s = now_s + rest_s
        told_s, now_s = sent_s + there_s, sent_s + there_s + back_s
        clock.heed(ahead_s + told_s * (1 + apart), sent_s, now_s)
        earliest_s, latest_s = clock.readings_s(ahead_s + now_s * (1 + apart))
        assert earliest_s - 1e-3 <= now_s <= latest_s + 1e-3  # the guard of every grant
        assert latest_s - earliest_s <= there_s + back_s + 1e-3


def test_an_answer_that_stalls_tells_no_less_than_the_one_before() -> None:
    clock = StoreClock()
    clock.heed(1e9 + 10.001, 10.0, 10.002)
    clock.heed(1e9 + 10.1, 10.003, 10.2)
    earliest_s, latest_s = clock.readings_s(1e9 + 10.2)
    assert latest_s - earliest_s < 0.003


def test_a_clock_that_was_set_is_believed_at_once() -> None:
    for step_s in (-90.0, 3600.0):
        clock = StoreClock()
        clock.heed(1e9 + 10.001, 10.0, 10.002)
        clock.heed(1e9 + step_s + 10.101, 10.1, 10.102)
        earliest_s, latest_s = clock.readings_s(1e9 + step_s + 10.101)
        assert (earliest_s, latest_s) == pytest.approx((10.1, 10.102), abs=1e-6)


def test_what_a_claim_has_no_turns_for_is_given_back(shop: Workshop) -> None:
    store = MemoryStore(shop.store.inner.now)
    store.limit_starts(Scope.QUEUE, "q", Rate(5, per_s=3600))
    desk = PermitDesk(store, ["q", "other"], lambda: None)
    assert desk.stock(3) is None  # nobody has said that it is limited
    desk.heed(Promoted(0, None, frozenset({"q", "foreign"})))
    assert desk.stock(3) == {"q": 3}
    assert desk.stock(9) == {"q": 5}
    assert desk.stock(9) == {"q": 5}
    turn = Turn(1, 1, 1, 1, *[None] * 10, rates=["queue:q"])  # type: ignore[arg-type]  # the rest does not matter
    covered = desk.cover([turn])
    assert list(covered) == [(1, 1)]
    assert covered[1, 1][0].use(time.monotonic())
    desk.report()
    assert desk.stock(9) == {"q": 4}
