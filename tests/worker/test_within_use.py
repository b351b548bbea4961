"""What a transactional job may do with its connection, and what it is told where it may not."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.worker.bank import INSERT, Bank, both

import timeball as tb
from timeball.action.registry import Registry
from timeball.core.records import Verdict
from timeball.core.states import State
from timeball.errors import UsageError

# What it may do with its connection


@both
@pytest.mark.parametrize(
    "step",
    [
        "COMMIT",
        "ROLLBACK",
        "COMMIT AND CHAIN",
        "COMMIT; BEGIN; INSERT INTO public.effect VALUES (2)",
        "ROLLBACK; BEGIN",
    ],
)
def test_a_job_that_ends_its_transaction_itself_fails_and_is_told(
    bank: Bank, kind: str, step: str
) -> None:
    bank.steps = [INSERT, step]
    attempt = bank.attempt(kind)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    job = bank.store.get(attempt.turn.uuid)
    assert (job.state, job.failures) == (State.FAILED, 1)
    assert job.error
    assert "the job ended the transaction itself" in job.error
    assert bank.effects() == ("COMMIT" in step)


@both
@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("PREPARE TRANSACTION 'mine'", "exported snapshots"),
        (lambda ctx: ctx.connection.commit(), "commit() forbidden"),
        (lambda ctx: ctx.connection.rollback(), "rollback() forbidden"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "before any query"),
    ],
)
def test_what_would_take_the_transaction_out_of_our_hands_is_refused(
    bank: Bank, kind: str, step: Any, told: str
) -> None:
    bank.steps = [INSERT, step]
    attempt = bank.attempt(kind, max_retries=0)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    job = bank.store.get(attempt.turn.uuid)
    assert job.state is State.FAILED
    assert told in str(job.error)
    assert bank.effects() == 0


def test_an_error_that_was_caught_without_a_savepoint_is_told(bank: Bank) -> None:
    def careless(ctx: tb.Context) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            ctx.connection.execute("SELECT 1 / 0")

    bank.steps = [INSERT, careless]
    attempt = bank.attempt("thread", max_retries=0)
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert "with ctx.connection.transaction():" in str(bank.store.get(attempt.turn.uuid).error)
    assert bank.effects() == 0


def test_a_closed_connection_is_told(bank: Bank) -> None:
    bank.steps = [INSERT, lambda ctx: ctx.connection.close()]
    attempt = bank.attempt("thread")
    assert bank.settle(attempt) is Verdict.ACCEPTED
    assert "closed its connection" in str(bank.store.get(attempt.turn.uuid).error)
    assert (bank.state(attempt), bank.effects()) == (State.FAILED, 0)


def test_a_part_may_be_rolled_back_alone(bank: Bank) -> None:
    def in_parts(ctx: tb.Context) -> None:
        with ctx.connection.transaction():
            ctx.connection.execute(INSERT)
        with pytest.raises(psycopg.errors.DivisionByZero), ctx.connection.transaction():
            ctx.connection.execute("INSERT INTO public.effect VALUES (1 / 0)")

    bank.steps = [in_parts]
    assert bank.settle(bank.attempt("thread")) is Verdict.ACCEPTED
    assert bank.effects() == 1


def test_a_part_of_a_coroutine_may_be_rolled_back_alone(bank: Bank) -> None:
    async def in_parts(ctx: tb.Context) -> None:
        async with ctx.connection.transaction():
            await ctx.connection.execute(INSERT)
        with pytest.raises(psycopg.errors.DivisionByZero):
            async with ctx.connection.transaction():
                await ctx.connection.execute("SELECT 1 / 0")

    bank.steps = [in_parts]
    assert bank.settle(bank.attempt("loop")) is Verdict.ACCEPTED
    assert bank.effects() == 1


@both
def test_no_lock_of_the_scheduler_is_held_while_the_job_runs(bank: Bank, kind: str) -> None:
    locks: list[tuple[str, ...]] = []

    def look(_: tb.Context) -> None:
        assert bank.sessions() == 1
        locks.extend(
            bank.watcher.execute(
                "SELECT locktype, coalesce(relation::regclass::text, '')"
                " FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE state = 'idle in transaction'"
                " AND locktype NOT IN ('virtualxid', 'transactionid')"
            ).fetchall()
        )

    bank.steps = [look, INSERT]
    assert bank.settle(bank.attempt(kind)) is Verdict.ACCEPTED
    assert locks == []


@both
def test_the_database_s_own_defaults_do_not_matter(bank: Bank, kind: str) -> None:
    bank.steps = [INSERT]
    for name, value in (
        ("default_transaction_isolation", "'serializable'"),
        ("default_transaction_read_only", "on"),
    ):
        bank.watcher.execute(f"ALTER ROLE CURRENT_USER SET {name} = {value}")
    try:
        attempt = bank.attempt(kind)
        bank.settle(attempt)
    finally:
        bank.watcher.execute("ALTER ROLE CURRENT_USER RESET ALL")
    assert (attempt.accepted, bank.effects()) == (True, 1)


# Definitions


def test_a_transactional_job_needs_its_context_and_no_process() -> None:
    registry = Registry()
    with pytest.raises(UsageError, match=r"add a parameter `ctx: tb\.Context`"):
        registry.job(name="a", transactional=True)(lambda: None)

    def call(ctx: tb.Context) -> None: ...

    with pytest.raises(UsageError, match="leave out runner"):
        registry.job(name="b", transactional=True, runner="process")(call)


def test_a_job_that_is_not_transactional_has_no_connection() -> None:
    with tb.Scheduler(1) as scheduler:

        def call(ctx: tb.Context) -> None:
            _ = ctx.connection

        with pytest.raises(tb.TimeballError, match="transactional=True"):
            scheduler.submit(call).result()
