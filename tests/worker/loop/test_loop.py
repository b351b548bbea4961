"""The loop on the memory store: every job ends once, bad ones alone."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worker.loop.workshop import PATIENCE_S, Workshop

from timeball.action.context import Cancel, Context, Snooze
from timeball.action.registry import Registry
from timeball.core.records import Settlement
from timeball.core.retry import Retry
from timeball.core.states import Ending, State
from timeball.store.base import NO_WORKER
from timeball.worker.begun import BegunTable


def define_good(shop: Workshop) -> Counter[int]:
    """Two good kinds, one for threads and one for the loop; returns their effects."""
    effects: Counter[int] = Counter()

    @shop.job(name="thread")
    def thread(n: int) -> int:
        effects[n] += 1
        return n

    @shop.job(name="loop")
    async def loop(n: int) -> int:
        await asyncio.sleep(0)
        effects[n] += 1
        return n

    return effects


@pytest.mark.parametrize("slots", [1, 4])
def test_every_job_ends_once_in_threads_and_on_the_loop(shop: Workshop, slots: int) -> None:
    effects = define_good(shop)
    for n in range(200):
        shop.submit("thread" if n % 3 else "loop", f'{{"n":{n}}}')
    shop.run(slots=slots)
    assert effects == Counter(range(200))
    assert {(job.state, job.result) for job in shop.page()} == {
        (State.SUCCEEDED, n) for n in range(200)
    }
    shop.assert_clean()


# The poison list


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def raise_(error: BaseException) -> Any:
    raise error


POISON: dict[str, Any] = {
    "raises NUL": lambda: raise_(ValueError("a\0b")),
    "raises a lone surrogate": lambda: raise_(ValueError("\ud800")),
    "raises without a text": lambda: raise_(Unspeakable()),
    "raises a megabyte": lambda: raise_(ValueError("x" * 1_000_000)),
    "exits": lambda: raise_(SystemExit(1)),
    "interrupts": lambda: raise_(KeyboardInterrupt()),
    "returns NUL": lambda: "a\0b",
    "returns a lone surrogate": lambda: ["\ud800"],
    "returns NaN": lambda: {"a": float("nan")},
    "returns bytes": lambda: b"\0",
    "returns an object": object,
    "returns too much": lambda: "x" * 1_000_000,
    "returns a coroutine": lambda: asyncio.sleep(0),
    "changed its signature": lambda user: user,
}


@pytest.mark.parametrize("poison", [*POISON, "has arguments that cannot be decoded"])
@pytest.mark.parametrize("on_loop", [False, True])
def test_a_bad_job_fails_alone_and_says_why(shop: Workshop, poison: str, *, on_loop: bool) -> None:
    effects = define_good(shop)
    call = POISON.get(poison, lambda: None)

    async def coroutine(*args: Any, **named: Any) -> Any:
        return call(*args, **named)

    if "signature" in poison:

        async def coroutine(user: int) -> int:
            return user

    shop.job(name="bad", retry=Retry(0))(coroutine if on_loop else call)
    args = "{" if "decoded" in poison else "{}"
    for n in range(6):
        shop.submit("loop" if on_loop else "thread", f'{{"n":{n}}}')
        if n == 2:
            shop.submit("bad", args)
    shop.run(slots=2)
    report = shop.report()
    assert (report.states[State.SUCCEEDED], report.states[State.FAILED]) == (6, 1)
    assert effects == Counter(range(6))
    shop.assert_clean()
    end = only_ending(shop, "bad")
    assert end.error_type
    assert end.error
    assert "\0" not in end.error
    end.error.encode()


def test_of_ten_jobs_whose_first_cannot_be_read_nine_run(shop: Workshop) -> None:
    effects = define_good(shop)
    shop.submit("thread", "{")
    for n in range(9):
        shop.submit("thread", f'{{"n":{n}}}')
    with shop.at_work(slots=10):
        shop.store.until(shop.all_ended)
    report = shop.report()
    assert (report.states, report.turns) == ({State.SUCCEEDED: 9, State.FAILED: 1}, 10)
    assert effects == Counter(range(9))
    shop.assert_clean()


def only_ending(shop: Workshop, kind: str) -> Settlement:
    """How the one turn of the one job of a kind ended."""
    (row,) = [row for row in shop.store.inner._rows.values() if row.spec.kind == kind]
    (ended,) = row.endings.values()
    return ended.how


@pytest.mark.slow
def test_a_result_of_ten_megabytes_fails_alone(shop: Workshop) -> None:
    effects = define_good(shop)
    shop.job(name="bad", retry=Retry(0))(lambda: "x" * 10_000_000)
    for n in range(4):
        shop.submit("thread", f'{{"n":{n}}}')
        if n == 1:
            shop.submit("bad")
    shop.run()
    assert effects == Counter(range(4))
    assert len(only_ending(shop, "bad").error or "") < 1_000
    shop.assert_clean()


# What follows an attempt


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(failing=st.integers(0, 4), budget=st.integers(0, 3), on_loop=st.booleans())
def test_fail_k_then_succeed_succeeds_iff_k_is_within_the_budget(
    failing: int, budget: int, *, on_loop: bool
) -> None:
    shop, seen = Workshop(), []

    def call(ctx: Context) -> int:
        seen.append(ctx.attempt)
        if ctx.attempt <= failing:
            raise OSError
        return ctx.attempt

    async def coroutine(ctx: Context) -> int:
        return call(ctx)

    shop.job(name="flaky", retry=Retry(budget, base_s=0.0))(coroutine if on_loop else call)
    uuid = shop.submit("flaky")
    shop.run()
    job = shop.get(uuid)
    assert job.state is (State.SUCCEEDED if failing <= budget else State.FAILED)
    assert job.failures == min(failing, budget + 1)
    assert seen == list(range(1, min(failing, budget) + 2))
    shop.assert_clean()


def test_a_snooze_costs_no_retry(shop: Workshop) -> None:
    @shop.job(name="sleepy", retry=Retry(0))
    def sleepy(ctx: Context) -> Snooze | str:
        return Snooze(0.001) if ctx.attempt < 4 else "awake"

    uuid = shop.submit("sleepy")
    shop.run()
    job = shop.get(uuid)
    assert (job.state, job.result, job.turn, job.failures) == (State.SUCCEEDED, "awake", 4, 0)
    shop.assert_clean()


def test_a_job_may_end_itself(shop: Workshop) -> None:
    shop.job(name="modest")(lambda: Cancel("nothing to do"))
    uuid = shop.submit("modest")
    shop.run()
    assert (shop.get(uuid).state, shop.get(uuid).reason) == (State.CANCELLED, "nothing to do")
    shop.assert_clean()


@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_a_retry_that_falls_due_does_not_wait_for_the_poll(shop: Workshop, delay_s: float) -> None:
    @shop.job(name="flaky", retry=Retry(1, base_s=delay_s, jitter="none"))
    def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OSError

    shop.submit("flaky")
    shop.run(poll_s=3600)
    shop.assert_clean()


def test_a_job_that_falls_due_does_not_wait_for_the_poll(shop: Workshop) -> None:
    define_good(shop)
    in_a_moment = shop.store.inner.now().timestamp() + 0.02
    run_at = shop.store.inner.now().fromtimestamp(in_a_moment, tz=shop.store.inner.now().tzinfo)
    shop.submit("thread", '{"n":1}', run_at=run_at)
    shop.run(poll_s=3600)
    shop.assert_clean()


def test_a_resting_worker_can_be_woken(shop: Workshop) -> None:
    define_good(shop)
    with shop.at_work(poll_s=3600) as worker:
        shop.store.until(lambda: shop.store.calls["claim"] > 0)
        for n in range(3):
            uuid = shop.submit("thread", f'{{"n":{n}}}')
            worker.wake()
            shop.store.until(lambda uuid=uuid: shop.get(uuid).state is State.SUCCEEDED)  # type: ignore[misc]  # bound at once


def test_a_wake_up_that_comes_during_a_claim_is_not_lost(shop: Workshop) -> None:
    effects = define_good(shop)
    worker = shop.build(poll_s=3600)

    def meanwhile() -> None:
        shop.submit("thread", '{"n":1}')
        worker.wake()

    shop.store.after["claim"] = meanwhile
    with shop.at_work(worker):
        shop.store.until(lambda: shop.submitted == 1 and shop.all_ended())
    assert effects == Counter([1])


def test_a_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(shop: Workshop) -> None:
    effects = define_good(shop)
    old = Registry()
    old.job(name="other")(lambda: None)
    uuid = shop.submit("thread", '{"n":1}')
    with shop.at_work(registry=old):
        shop.store.until(lambda: shop.get(uuid).reason == NO_WORKER)
        polls = shop.store.calls["claim"]
        shop.store.until(lambda: shop.store.calls["claim"] > polls + 3)
    assert shop.get(uuid).state is State.PENDING
    assert shop.get(uuid).turn == 2  # given back once, not again and again
    shop.run()
    assert effects == Counter([1])
    shop.assert_clean()


# Slots


def test_the_slots_are_filled_and_never_exceeded(shop: Workshop) -> None:
    slots, inside, most = 3, 0, 0
    lock, meeting = threading.Lock(), threading.Barrier(slots)

    @shop.job(name="meet")
    def meet() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        meeting.wait(PATIENCE_S)  # opens only if all slots are here at once
        with lock:
            inside -= 1

    for _ in range(4 * slots):
        shop.submit("meet")
    shop.run(slots=slots)
    assert most == slots
    shop.assert_clean()


def test_long_jobs_are_claimed_only_for_free_slots(shop: Workshop) -> None:
    gate = threading.Event()
    shop.job(name="long")(lambda: gate.wait(PATIENCE_S) and None)
    for _ in range(10):
        shop.submit("long")
    with shop.at_work(slots=2):
        shop.store.until(lambda: shop.count(State.RUNNING) == 2)
        polls = shop.store.calls["promote"]
        shop.store.until(lambda: shop.store.calls["promote"] > polls + 3)
        assert shop.count(State.RUNNING) == 2
        gate.set()
        shop.store.until(shop.all_ended)


def test_an_end_is_settled_while_others_run(shop: Workshop) -> None:
    gate = threading.Event()
    shop.job(name="long")(lambda: gate.wait(PATIENCE_S) and None)
    define_good(shop)
    shop.submit("long")
    short = shop.submit("thread", '{"n":1}')
    with shop.at_work(slots=2, poll_s=3600):
        shop.store.until(lambda: shop.get(short).state is State.SUCCEEDED)
        gate.set()


def test_an_end_is_settled_while_its_slot_goes_on(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeball.worker.pace.Pace.lacking", lambda *_: 5)
    gate = threading.Event()
    define_good(shop)
    shop.job(name="long")(lambda: gate.wait(PATIENCE_S) and None)
    short = shop.submit("thread", '{"n":1}')
    for _ in range(2):
        shop.submit("long")
    with shop.at_work(slots=1, poll_s=3600):
        shop.store.until(lambda: shop.get(short).state is State.SUCCEEDED)
        gate.set()
        shop.store.until(shop.all_ended)


# The record


def test_an_attempt_begins_between_its_grant_and_its_end(shop: Workshop) -> None:
    define_good(shop)
    for n in range(20):
        shop.submit("thread" if n % 2 else "loop", f'{{"n":{n}}}')
    shop.run(slots=2)
    for history in shop.store.inner.histories():
        (grant,), (end,) = history.grants, history.endings
        assert end.ending is Ending.SUCCEEDED
        assert end.began_at is not None
        assert grant.at <= end.began_at <= end.at
        assert 0 <= end.ran_s < PATIENCE_S


def test_what_has_begun_is_marked_until_a_crash_would_cost_it_nothing(shop: Workshop) -> None:
    table, begun, unsettled = BegunTable.create(2), [], []

    def look() -> None:
        begun.append(table.begun())

    shop.job(name="often")(look)
    shop.job(name="once", delivery="at_most_once")(look)
    shop.store.before["settle"] = lambda *_: unsettled.append(table.begun())
    for kind in ("often", "once"):
        shop.submit(kind)
        shop.run(slots=1, begun=table)
    assert begun == [{(1, 1)}, {(2, 1)}]
    # Between its end and its settlement, at most once means that it must not be run again.
    assert unsettled == [set(), {(2, 1)}]
    assert table.begun() == set()
    table.close()
