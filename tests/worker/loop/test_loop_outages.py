"""The store goes away at the worst moments: nothing is lost, nothing happens twice."""

from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import product
from uuid import uuid4

import pytest
from tests.worker.loop.workshop import PATIENCE_S, VERBS, Workshop

from timeball.core.states import State
from timeball.errors import SchemaMismatch, StoreUnavailable


def define(shop: Workshop) -> Counter[int]:
    """A kind for threads and one for the loop; returns how often each job ran."""
    effects: Counter[int] = Counter()

    @shop.job(name="thread")
    def thread(n: int) -> None:
        effects[n] += 1

    @shop.job(name="loop")
    async def loop(n: int) -> None:
        effects[n] += 1

    return effects


def submit(shop: Workshop, count: int) -> None:
    for n in range(count):
        shop.submit("thread" if n % 2 else "loop", f'{{"n":{n}}}')


@pytest.mark.parametrize(("verb", "moment"), list(product(VERBS, ["before", "after"])))
def test_a_verb_that_fails_is_sent_again(shop: Workshop, verb: str, moment: str) -> None:
    """Lost is the question, or only its answer: the worker cannot tell, and need not."""
    effects = define(shop)
    submit(shop, 20)
    shop.store.faults[verb] = [moment] * 2
    shop.run(slots=2)
    assert effects == Counter(range(20))
    report = shop.report()
    assert report.clean, report.violations
    assert report.stale == 0
    assert report.states == {State.SUCCEEDED: 20}


def test_an_answer_that_was_lost_costs_no_turn(shop: Workshop) -> None:
    define(shop)
    submit(shop, 5)
    shop.store.faults["claim"] = ["after"]
    shop.run()
    assert shop.report().turns == 5


def test_turns_of_a_claim_that_it_has_given_up_waiting_for_are_carried_out(shop: Workshop) -> None:
    """A backend may come to the lane after its client has gone, and grant to nobody's ears."""
    effects = define(shop)
    submit(shop, 3)

    def unheard(worker: int, **_asked: object) -> None:
        del shop.store.before["claim"]
        shop.store.inner.claim(worker, limit=2, request=uuid4(), floors={})

    shop.store.before["claim"] = unheard
    shop.run()
    assert effects == Counter(range(3))
    assert shop.report().turns == 3
    shop.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_done_twice_in_a_storm(shop: Workshop, seed: int) -> None:
    chance = random.Random(seed)
    effects = define(shop)
    submit(shop, 100)
    for verb in VERBS[:-1]:
        shop.store.faults[verb] = chance.choices(["", "before", "after"], [5, 2, 2], k=30)
    shop.run(slots=3)
    assert effects == Counter(range(100))
    report = shop.report()
    assert report.clean, report.violations
    assert report.stale == 0


def test_while_the_store_is_away_nothing_new_is_begun_and_results_are_kept(shop: Workshop) -> None:
    effects = define(shop)
    submit(shop, 3)
    shop.store.faults["settle"] = ["before"] * 4
    with shop.at_work():
        shop.store.until(lambda: shop.store.calls["settle"] == 3)
        assert effects == Counter(range(3))
        assert shop.count(State.RUNNING) == 3
        assert shop.store.calls["claim"] <= 2  # none since the first settle that failed
        shop.store.until(shop.all_ended)
    shop.assert_clean()


def test_a_stop_while_the_store_is_away_ends_in_time_and_says_so(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeball.worker.loop._INTERRUPT_S", 0.01)
    effects = define(shop)
    submit(shop, 1)
    shop.store.faults["settle"] = ["before"] * 1_000
    worker = shop.build(drain_s=0.05)
    shop.store.before["settle"] = lambda *_: worker.stop()
    with pytest.raises(StoreUnavailable, match="left to the lease"):
        worker.work()
    assert effects == Counter([0])
    assert shop.count(State.RUNNING) == 1
    assert len(shop.store.inner.pulses()) == 1  # for the sweeper


def test_a_stop_in_an_outage_waits_for_the_store_within_its_time(shop: Workshop) -> None:
    effects = define(shop)
    submit(shop, 1)
    shop.store.faults["settle"] = ["before"] * 3
    with shop.at_work(drain_s=PATIENCE_S) as worker:
        shop.store.until(lambda: shop.store.calls["settle"] == 1)
        worker.stop()
    assert effects == Counter([0])
    shop.assert_clean()


def test_turns_of_a_claim_whose_answer_was_lost_are_given_back_at_a_stop(shop: Workshop) -> None:
    effects = define(shop)
    submit(shop, 4)
    shop.store.faults["claim"] = ["after", "after"]
    worker = shop.build()
    # The stop comes between the claim and its repetition.
    shop.store.before["claim"] = lambda *_, **__: worker.stop()
    with shop.at_work(worker):
        shop.store.until(lambda: shop.store.calls["claim"] == 3)
    assert effects == Counter()
    assert shop.count(State.PENDING) == 4
    assert shop.store.inner.pulses() == []


# Given up for dead


def test_a_zombie_changes_nothing(shop: Workshop) -> None:
    gate, runs = threading.Event(), []

    @shop.job(name="job")
    def job() -> str:
        runs.append(threading.get_ident())
        if len(runs) == 1:
            gate.wait(PATIENCE_S)
            return "zombie"
        return "second"

    uuid = shop.submit("job")
    with shop.at_work() as zombie:
        shop.store.until(lambda: len(runs) == 1)
        shop.store.expire(shop.ids[0], beat=None, begun={(1, 1)})
        with shop.at_work():
            shop.store.until(shop.all_ended)
        assert shop.get(uuid).result == "second"
        gate.set()
        shop.store.until(lambda: zombie.stale == 1)
        assert len(runs) == 2
    job_now = shop.get(uuid)
    assert (job_now.state, job_now.result, job_now.crashes) == (State.SUCCEEDED, "second", 1)
    assert shop.report().stale == 1
    shop.assert_clean()


def test_a_worker_that_was_given_up_registers_anew_and_works_on(shop: Workshop) -> None:
    effects = define(shop)
    with shop.at_work():
        shop.store.until(lambda: shop.store.calls["claim"] > 0)
        shop.store.expire(shop.ids[0], beat=None, begun=None)
        submit(shop, 10)
        shop.store.until(shop.all_ended)
    assert len(shop.ids) == 2
    assert effects == Counter(range(10))
    shop.assert_clean()


def test_what_had_not_begun_when_it_was_given_up_is_forgotten(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is somebody else's: here the same worker's, under its new number."""
    monkeypatch.setattr("timeball.worker.pace.Pace.lacking", lambda *_: 5)
    gate, effects = threading.Event(), define(shop)
    shop.job(name="long")(lambda: gate.wait(PATIENCE_S) and None)
    shop.submit("long")
    submit(shop, 4)
    with shop.at_work(slots=1):
        shop.store.until(lambda: shop.count(State.RUNNING) == 5)
        shop.store.expire(shop.ids[0], beat=None, begun={(1, 1)})
        shop.store.until(lambda: len(shop.ids) == 2)
        gate.set()
        shop.store.until(shop.all_ended)
    assert effects == Counter(range(4))
    assert shop.report().stale == 1  # what ran
    shop.assert_clean()


@pytest.mark.parametrize("verb", ["claim", "promote"])
def test_a_worker_that_the_schema_fits_no_more_ends_what_has_begun_and_no_more(
    shop: Workshop, verb: str
) -> None:
    begun, go = threading.Event(), threading.Event()

    @shop.job(name="long")
    def long() -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    def other_schema(*_args: object, **_options: object) -> None:
        if begun.is_set():
            go.set()
            raise SchemaMismatch("no such function")

    first = shop.submit("long")
    shop.store.before[verb] = other_schema
    with pytest.raises(SchemaMismatch):
        shop.build(slots=2).work()
    assert shop.get(first).state is State.SUCCEEDED
    assert shop.store.inner.pulses() == []
    assert shop.report().clean


def test_a_worker_that_can_tell_no_end_any_more_says_that_it_is_outdated(shop: Workshop) -> None:
    """And not that the store is away: then another one like it would follow, and another."""
    first = shop.job(name="short")(lambda: None) and shop.submit("short")

    def other_schema(*_args: object, **_options: object) -> None:
        raise SchemaMismatch("no such function")

    shop.store.before["settle"] = other_schema
    with pytest.raises(SchemaMismatch):
        shop.build(slots=2, drain_s=0.1).work()
    assert shop.get(first).state is State.RUNNING
