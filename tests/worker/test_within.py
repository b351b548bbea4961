"""Transactional jobs: what they write is kept if and only if their success is accepted."""

from __future__ import annotations

import asyncio
import operator
import time
from threading import Thread
from typing import Any

import psycopg
import pytest
from tests.proxy import Proxy
from tests.worker.bank import INSERT, Bank, both
from tests.worker.supervision import until

import timeball as tb
from timeball.client import Client
from timeball.core.outcomes import Returned
from timeball.core.records import Verdict
from timeball.core.states import Ending, State
from timeball.store.postgres import answers
from timeball.worker.attempt import TurnAttempt
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker
from timeball.worker.permits import Batch

# Kept iff accepted


@both
def test_what_a_job_writes_is_kept_with_its_success(bank: Bank, kind: str) -> None:
    seen: list[int] = []
    bank.steps = [INSERT, lambda _: seen.append(bank.effects()) or "done"]
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert (seen, bank.effects()) == ([0], 1)
    job = bank.store.get(attempt.turn.uuid)
    assert (job.state, job.result, job.attempts) == (State.SUCCEEDED, "done", 1)


@both
@pytest.mark.parametrize("end", [tb.Snooze(0.0), tb.Cancel("no"), ValueError("no")], ids=str)
def test_what_a_job_writes_that_does_not_succeed_is_gone(bank: Bank, kind: str, end) -> None:
    def leave(_: tb.Context) -> Any:
        if isinstance(end, Exception):
            raise end
        return end

    bank.steps = [INSERT, leave]
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert bank.effects() == 0
    assert bank.state(attempt) in {State.SCHEDULED, State.CANCELLED}


@both
def test_a_permit_that_runs_out_while_a_transaction_begins_starts_nothing(
    bank: Bank, kind: str
) -> None:
    permits = Batch([("kind:x", 1)], 1, at=0.0, instant_s=(0.0, 0.0), ring=lambda: None)

    class Slow:  # has lent a transaction when the permit has run out
        def begin(self) -> Any:
            permits.ends_s = time.monotonic()
            return bank.store.transactions.begin()

        def begin_async(self) -> Any:
            permits.ends_s = time.monotonic()
            return bank.store.transactions.begin_async()

    permits.ends_s = float("inf")
    bank.steps = [INSERT]
    bank.bench = bank.bench._replace(transactions=Slow())  # type: ignore[arg-type]  # a part of it
    attempt = bank.attempt(kind, permits=[permits])
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert bank.effects() == 0
    (history,) = bank.store.histories()
    (ending,) = history.endings
    assert (ending.ending, ending.reason, ending.began_at) == (Ending.RELEASED, "rate", None)


@both
def test_only_the_attempt_that_succeeds_leaves_its_writes(bank: Bank, kind: str) -> None:
    def fail_once(ctx: tb.Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("the first time")

    bank.steps = [INSERT, fail_once]
    assert bank.settle(bank.attempt(kind)) is Verdict.ACCEPTED
    until(lambda: bank.store.promote(10).moved, "its retry falls due")
    assert bank.settle(bank.of(bank.claim())) is Verdict.ACCEPTED
    assert bank.effects() == 1
    assert bank.store.counts() == {State.SUCCEEDED: 1}


@both
def test_the_writes_of_a_zombie_are_gone_and_its_success_is_recorded_as_refused(
    bank: Bank, kind: str
) -> None:
    bank.steps = [INSERT, lambda _: bank.store.expire(bank.worker, beat=None, begun=None) and None]
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.STALE
    assert (bank.effects(), bank.state(attempt)) == (0, State.PENDING)
    assert sum(len(history.stale) for history in bank.store.histories()) == 1


@both
def test_of_a_success_and_an_expiry_that_meet_one_waits_and_one_counts(
    bank: Bank, kind: str
) -> None:
    """The sweeper has written that the turn was lost, and has not committed yet."""
    expiry = psycopg.connect(bank.watcher.info.dsn, password=bank.watcher.info.password)

    def expire(_: tb.Context) -> None:
        expiry.execute(
            "SELECT timeball.expire(%s, NULL, NULL, NULL, 'expired')", [bank.worker]
        ).fetchall()

    def committed_while_it_is_waited_for() -> None:
        until(
            lambda: bank.watcher.execute(
                "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                [expiry.info.backend_pid],
            ).fetchone(),
            "the settlement waits for the expiry",
        )
        expiry.commit()

    other = Thread(target=committed_while_it_is_waited_for)
    bank.steps = [INSERT, expire, lambda _: other.start()]
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.STALE
    other.join()
    expiry.close()
    assert (bank.effects(), bank.state(attempt)) == (0, State.PENDING)


# The commit


@both
@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_decided_by_the_record(
    bank: Bank,
    proxy: Proxy,
    kind: str,
    cut: Any,
    *,
    swallows: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lost with the connection, or because somebody in between takes all and hands nothing on."""
    if swallows:
        monkeypatch.setattr(answers, "ANSWER_S", 0.5)
    proxy.swallows = swallows
    bank.steps = [INSERT]
    proxy.at_commit = cut
    attempt = bank.attempt(kind)
    verdict = bank.settle(attempt)
    assert (proxy.cuts, bank.said.reason, attempt.accepted) == (1, "uncommitted", False)
    if cut == "after":
        assert (verdict, bank.effects()) == (Verdict.ALREADY, 1)
        assert bank.state(attempt) is State.SUCCEEDED
    else:
        assert (verdict, bank.effects()) == (Verdict.ACCEPTED, 0)
        assert bank.said.ending is Ending.RETRIED
        assert bank.state(attempt) is State.SCHEDULED


@both
def test_a_beginning_whose_answer_is_swallowed_is_put_off(
    bank: Bank, proxy: Proxy, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is made, and then nothing comes of it: the slot must not be lost for ever."""
    monkeypatch.setattr(answers, "ANSWER_S", 0.3)
    transaction = f"{'Async' if kind == 'loop' else ''}Connection.transaction"
    begin = operator.attrgetter(transaction)(psycopg)

    def swallowed(connection: Any, *args: Any) -> Any:
        proxy.muted = True
        return begin(connection, *args)

    attempt = bank.attempt(kind)
    monkeypatch.setattr(f"psycopg.{transaction}", swallowed)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert (bank.said.ending, bank.said.began_at) == (Ending.SNOOZED, None)
    assert bank.effects() == 0


@both
def test_a_commit_still_under_way_is_waited_for(bank: Bank, kind: str) -> None:
    """The connection is gone and the server has not noticed: what it holds is decided first."""
    attempt = bank.attempt(kind)
    attempt._begin()
    with bank.store.transactions.begin() as own:
        own.connection.execute(INSERT)
        ((backend,),) = own.connection.execute("SELECT pg_backend_pid()").fetchall()
        own.settle(bank.worker, attempt._settlement(Returned()))
        verdicts: list[Verdict] = []
        unsure = attempt.interrupted()._replace(ending=Ending.RETRIED, reason="uncommitted")
        other = Thread(target=lambda: verdicts.extend(bank.store.settle(bank.worker, [unsure])))
        other.start()
        until(
            lambda: bank.watcher.execute(
                "SELECT 1 FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                [backend],
            ).fetchone(),
            "the question waits for the commit",
        )
        assert verdicts == []
    other.join()
    assert (verdicts, bank.effects()) == ([Verdict.ALREADY], 1)


@both
def test_what_the_database_refuses_at_the_commit_is_a_failure_of_the_job(
    bank: Bank, kind: str
) -> None:
    bank.watcher.execute("ALTER TABLE public.effect ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    bank.steps = [INSERT, INSERT]
    attempt = bank.attempt(kind, max_retries=0)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    job = bank.store.get(attempt.turn.uuid)
    assert (job.state, job.reason, bank.effects()) == (State.FAILED, "uncommitted", 0)
    assert job.error_type == "psycopg.errors.UniqueViolation"


@both
def test_without_a_connection_a_job_has_not_begun(bank: Bank, proxy: Proxy, kind: str) -> None:
    bank.steps = [INSERT]
    proxy.down()
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    job = bank.store.get(attempt.turn.uuid)
    assert (job.state, job.attempts, job.failures) == (State.SCHEDULED, 0, 0)


# What is wanted of it


def test_a_coroutine_whose_time_is_up_is_rolled_back(bank: Bank) -> None:
    bank.steps = [INSERT, lambda _: asyncio.sleep(3600)]
    attempt = bank.attempt("loop", timeout_s=0.05, max_retries=0)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert bank.store.get(attempt.turn.uuid).reason == "timeout"
    assert bank.effects() == 0


def test_a_coroutine_that_is_cancelled_is_rolled_back(bank: Bank) -> None:
    started = asyncio.Event()

    async def hang(_: tb.Context) -> None:
        started.set()
        await asyncio.sleep(3600)

    async def cancelled(attempt: TurnAttempt) -> Any:
        task = asyncio.create_task(attempt.run_async())
        await started.wait()
        attempt.cancel()
        task.cancel()
        return await task

    bank.steps = [INSERT, hang]
    attempt = bank.attempt("loop")
    said = asyncio.run(cancelled(attempt))
    assert (said.ending, bank.effects()) == (Ending.CANCELLED, 0)


def test_a_commit_is_not_broken_off_by_a_cancel(bank: Bank) -> None:
    async def cancelled_late(attempt: TurnAttempt) -> Any:
        task = asyncio.create_task(attempt.run_async())
        soon = asyncio.get_running_loop().call_soon
        bank.steps = [INSERT, lambda _: soon(late, task, 200) and None]
        return await task

    def late(task: asyncio.Task[Any], times: int) -> None:
        """Cancel it once more at each turn of the loop, while it is about to settle."""
        if times and not task.done():
            task.cancel()
            asyncio.get_running_loop().call_later(0.0005, late, task, times - 1)

    attempt = bank.attempt("loop")
    asyncio.run(cancelled_late(attempt))
    assert attempt.accepted == (bank.effects() == 1)
    assert attempt.accepted


# The whole worker


def test_a_worker_runs_them_in_threads_and_on_its_loop_and_pays_once(bank: Bank) -> None:
    bank.steps = [INSERT]
    uuids = [bank.submit(kind) for kind in ("thread", "loop") for _ in range(5)]
    worker = Worker(
        bank.store, bank.registry, WorkerConfig(name="w", slots=3, poll_s=0.05), draw=lambda: 0.0
    )
    worker.lend(transactions=bank.store.transactions)
    thread = Thread(target=worker.work)
    thread.start()
    try:
        until(lambda: bank.store.ended(uuids) == set(uuids), "all have ended")
    finally:
        worker.stop()
        thread.join(30)
    assert (bank.effects(), worker.stale) == (10, 0)
    assert bank.store.counts() == {State.SUCCEEDED: 10}


def test_a_worker_without_a_database_says_so(bank: Bank) -> None:
    bank.bench = bank.bench._replace(transactions=None)
    attempt = bank.attempt("thread")
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert "no PostgreSQL" in str(bank.store.get(attempt.turn.uuid).error)


# Children


@both
@pytest.mark.parametrize("fails", [False, True])
def test_a_child_is_there_iff_the_success_of_its_parent_is_accepted(
    bank: Bank, kind: str, *, fails: bool
) -> None:
    client = Client(bank.store)

    def spawn(ctx: tb.Context) -> Any:
        if kind == "loop":
            return tb.AsyncClient(client).submit("child", connection=ctx.connection)
        return client.submit("child", connection=ctx.connection)

    def leave(_: tb.Context) -> None:
        assert client.jobs(kind="child") == []
        if fails:
            raise ValueError("no")

    bank.steps = [spawn, leave]
    attempt = bank.attempt(kind, max_retries=0)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert len(client.jobs(kind="child")) == (not fails)
    assert bank.state(attempt) is (State.FAILED if fails else State.SUCCEEDED)
