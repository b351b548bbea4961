"""The client against the real database."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from tests.client.jobs import add

import timeball as tb
from timeball.core.states import Ending, State
from timeball.errors import JobNotFound, UsageError
from timeball.store.memory import MemoryStore
from timeball.store.postgres import PostgresStore


@pytest.fixture
def client(store: PostgresStore) -> Iterator[tb.Client]:
    with tb.Client(store) as client:
        yield client


def run_all(store, *, queue: str = "sums") -> int:
    """Carry out all that is pending, in the shortest way."""
    worker = store.register("w", kinds=["client.add"], queues=[queue], lease_s=30.0)
    done = 0
    while turns := store.claim(worker, limit=1_000, request=uuid4(), floors={}):
        from tests.store.world import end

        store.settle(worker, [end(turn, Ending.SUCCEEDED, result="3") for turn in turns])
        done += len(turns)
    return done


def test_a_submitted_job_can_be_looked_at_at_once(client: tb.Client) -> None:
    handle = client.submit(add, a=1, b=2)
    job = handle.job()
    assert (job.state, job.kind, job.args, job.id) == (
        State.PENDING, "client.add", {"a": 1, "b": 2}, handle.id,
    )  # fmt: skip


def test_the_same_uuid_gives_the_same_job(client: tb.Client) -> None:
    uuid = uuid4()
    assert client.submit(add, a=1, uuid=uuid) == client.submit(add, a=1, uuid=uuid)
    assert client.counts()[State.PENDING] == 1


def test_many_jobs_keep_their_order(client: tb.Client) -> None:
    handles = client.submit_many(add, ({"a": n} for n in range(2_500)))
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert handles[1_234].job().args == {"a": 1_234}


def test_one_wrong_job_among_many_submits_none(client: tb.Client) -> None:
    with pytest.raises(UsageError):
        client.submit_many(add, [{"a": 1}, {"c": 2}])
    assert not any(client.counts().values())


def test_the_four_sets_add_up(client: tb.Client) -> None:
    client.submit_many(add, [{"a": 1}] * 3)
    client.submit(add, a=1, delay_s=60)
    client.submit(add, a=1).cancel()
    assert client.sets() == {"pending": 4, "running": 0, "completed": 0, "failed": 1}
    assert run_all(client.store) == 3
    assert client.sets() == {"pending": 1, "running": 0, "completed": 3, "failed": 1}


def test_waiting_gives_the_ended_jobs_in_order(client: tb.Client) -> None:
    handles = client.submit_many(add, ({"a": n} for n in range(5)))
    run_all(client.store)
    seen: list[int] = []
    jobs = client.wait(handles[::-1], timeout_s=5, on_progress=seen.append)
    assert [job.args["a"] for job in jobs] == [4, 3, 2, 1, 0]
    assert [job.result for job in jobs] == [3] * 5
    assert seen[-1] == 5


def test_waiting_in_vain_ends_in_time(client: tb.Client) -> None:
    handles = client.submit_many(add, [{"a": 1}] * 2)
    handles[0].cancel()
    with pytest.raises(TimeoutError, match="1 of 2 jobs"):
        client.wait(handles, timeout_s=0.01)


def test_an_unknown_job_is_not_found(client: tb.Client) -> None:
    with pytest.raises(JobNotFound):
        client.get(uuid4())
    assert client.cancel(uuid4()) == tb.CancelAnswer.NOT_FOUND


def test_a_job_submitted_in_a_transaction_is_there_iff_it_commits(
    client: tb.Client, dsn: str
) -> None:
    with psycopg.connect(dsn) as connection:
        gone = client.submit(add, a=1, connection=connection)
        with pytest.raises(JobNotFound):
            gone.job()
        connection.rollback()
        kept = client.submit(add, a=2, connection=connection)
        assert run_all(client.store) == 0
        connection.commit()
    with pytest.raises(JobNotFound):
        gone.job()
    assert kept.job().args == {"a": 2}
    assert run_all(client.store) == 1


def test_a_job_submitted_in_an_async_transaction_is_there_iff_it_commits(
    client: tb.Client, dsn: str
) -> None:
    async def main() -> tb.Handle:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            handle = await tb.AsyncClient(client).submit(add, a=1, connection=connection)
            with pytest.raises(JobNotFound):
                await tb.AsyncClient(client).get(handle)
        return handle

    assert asyncio.run(main()).job().state == State.PENDING


def test_a_memory_store_has_no_transactions() -> None:
    client = tb.Client(MemoryStore(lambda: datetime(2026, 1, 1, tzinfo=UTC)))
    with pytest.raises(UsageError, match="needs a PostgreSQL store"):
        client.submit(add, a=1, connection=object())


def test_the_async_client_does_what_the_client_does(client: tb.Client) -> None:
    async def main() -> None:
        async with tb.AsyncClient(client) as aio:
            handle = await aio.submit(add, a=1)
            (other,) = await aio.submit_many(add, [{"a": 2}])
            assert await aio.cancel(other) == tb.CancelAnswer.CANCELLED
            await asyncio.to_thread(run_all, client.store)
            assert [job.state for job in await aio.wait([handle, other], timeout_s=5)] == [
                State.SUCCEEDED, State.CANCELLED,
            ]  # fmt: skip
            assert (await aio.counts())[State.SUCCEEDED] == 1
            assert (await aio.get(handle)).result == 3
            await aio.schedule("s", add, cron="@daily", tz="UTC", args={"a": 1})
            with pytest.raises(TimeoutError):
                await aio.wait([await aio.submit(add, a=1)], timeout_s=0.01)

    asyncio.run(main())


def test_a_schedule_starts_from_now_and_declaring_it_again_changes_nothing(
    client: tb.Client,
) -> None:
    client.schedule("s", add, cron="0 * * * *", tz="UTC", args={"a": 1}, source="file")
    (before,) = client.schedules()
    client.schedule("s", add, cron="0 * * * *", tz="UTC", args={"a": 1}, source="file")
    (after,) = client.schedules()
    assert before == after
    assert timedelta(0) < before.next_at - before.cursor <= timedelta(hours=1)
    assert client.withdraw("file", keep=[]) == ["s"]
    assert client.schedules() == []
