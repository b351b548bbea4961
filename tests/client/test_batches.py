"""Batches from both clients: made in a block, all or none, then looked at and changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from tests.client.jobs import add
from tests.store.world import end

import timeball as tb
from timeball.core.records import CancelAnswer
from timeball.core.states import Ending, State
from timeball.errors import JobNotFound, UsageError
from timeball.store.memory import MemoryStore


@pytest.fixture
def client() -> Iterator[tb.Client]:
    with tb.Client(MemoryStore(lambda: datetime.now(UTC))) as client:
        yield client


def finish(client: tb.Client, count: int, ending: Ending = Ending.SUCCEEDED) -> None:
    """End so many of the jobs that are pending, in their order."""
    store = client.store
    worker = store.register("w", kinds=["client.add"], queues=["sums", "default"], lease_s=30.0)
    turns = store.claim(worker, limit=count, request=uuid4(), floors={})
    assert len(turns) == count
    store.settle(worker, [end(turn, ending, ran_s=0.5) for turn in turns])


def test_a_block_makes_a_batch_with_its_jobs(client: tb.Client) -> None:
    with client.batch("nightly") as nightly:
        parts = nightly.submit_many(add, [{"a": n} for n in range(3)])
        last = nightly.submit(add, a=9, after=parts)
        assert client.jobs() == []
        assert last.id == 0
    assert [handle.job().id for handle in (*parts, last)] == [1, 2, 3, 4]
    assert last.id == 4
    told = client.submit(add, a=0, after=[nightly], rule="all_done")
    assert nightly.state().name == "nightly"
    assert nightly.counts()[State.PENDING] == 3
    finish(client, 3)
    assert (nightly.progress(), nightly.state().state) == (0.75, State.WAITING)
    finish(client, 1)
    seen = []
    found = nightly.wait(5, on_progress=lambda state: seen.append(state.ended))
    assert (found.state, found.progress, seen) == (State.SUCCEEDED, 1.0, [4])
    assert told.job().state is State.PENDING


def test_of_a_block_that_fails_nothing_is_there(client: tb.Client) -> None:
    batch = client.batch()
    with pytest.raises(UsageError):
        fill(batch, b=1)  # no argument of it
    with pytest.raises(JobNotFound):
        batch.state()
    with pytest.raises(UsageError):
        fill(client.batch(), a=1, after=[uuid4()])
    assert client.jobs() == []


def fill(batch: tb.Batch, **arguments: object) -> None:
    with batch:
        batch.submit(add, a=1)
        batch.submit(add, **arguments)


def test_batches_nest_and_come_after_each_other(client: tb.Client) -> None:
    with client.batch("outer") as outer:
        with outer.batch("first") as first:
            first.submit(add, a=1)
        with outer.batch("second", after=[first], rule="all_done") as second:
            one = second.submit(add, a=2)
            second.submit(add, a=3, after=[one])
        outer.submit(add, a=4, after=[second])
    states = [job.state for job in reversed(client.jobs()) if job.kind == "client.add"]
    assert states == [State.PENDING, *[State.WAITING] * 3]
    finish(client, 1, Ending.FAILED)
    for _ in range(3):
        finish(client, 1)
    assert second.state().state is State.SUCCEEDED
    assert (outer.state().state, outer.state().jobs) == (State.FAILED, 4)
    lines = client.batches()
    assert [line.name for line in lines] == ["outer", "second", "first"]
    assert client.get_batch(outer.uuid).state() == outer.state()


def test_an_inner_block_that_fails_is_left_out(client: tb.Client) -> None:
    with client.batch() as outer:
        outer.submit(add, a=1)
        with pytest.raises(UsageError):
            fill(outer.batch(), b=1)
    assert outer.state().jobs == 1


@pytest.mark.parametrize("nested", [False, True])
def test_an_empty_batch_ends_once_what_it_comes_after_has(
    client: tb.Client, *, nested: bool
) -> None:
    first = client.submit(add, a=1)
    with client.batch(after=[first]) as outer:
        if nested:
            with outer.batch():
                pass
    after = client.submit(add, a=2, after=[outer])
    with client.batch() as empty:
        pass
    assert empty.wait(0).state is State.SUCCEEDED
    assert outer.state().state is State.WAITING
    finish(client, 1)
    assert (outer.state().state, outer.state().progress) == (State.SUCCEEDED, 1.0)
    assert after.job().state is State.PENDING


def test_a_batch_is_not_edited_from_outside(client: tb.Client) -> None:
    with client.batch() as batch:
        batch.submit(add, a=1)
    with pytest.raises(UsageError, match="write it in the block"):
        batch.batch()
    with pytest.raises(UsageError, match="was made before"), batch:
        pass
    with pytest.raises(UsageError, match="not an option of a batch"):
        client.batch(queue="q")
    with pytest.raises(UsageError, match="256 printable characters"):
        client.batch("n" * 257)
    with pytest.raises(UsageError, match="leave connection out"):
        batch.submit(add, a=1, connection=object())
    with pytest.raises(UsageError, match="write one of"):
        client.submit(add, a=1, after=[batch], rule="member")


def test_an_open_batch_takes_more_until_it_is_closed(client: tb.Client) -> None:
    with client.batch("stream", open=True) as stream:
        first = stream.submit(add, a=1)
    more = stream.submit_many(add, [{"a": n} for n in range(1_200)], after=[first])
    assert len({handle.id for handle in more}) == 1_200
    stream.submit_all([tb.draft(add, a=5, after=[more[0]])])
    assert (stream.state().jobs, stream.state().is_open) == (1_202, True)
    assert stream.close()
    assert not stream.state().is_open
    assert stream.cancel() == {CancelAnswer.CANCELLED: 1_202}
    with pytest.raises(UsageError, match="was cancelled"):
        stream.submit(add, a=1)


def test_a_cancel_reaches_all_that_is_left_and_a_retry_what_has_failed(client: tb.Client) -> None:
    with client.batch() as outer:
        with outer.batch(open=True) as inner:
            inner.submit_many(add, [{"a": n} for n in range(3)])
        outer.submit(add, a=9, after=[inner])
    finish(client, 1)
    assert outer.cancel() == {CancelAnswer.CANCELLED: 3}
    assert outer.state().state is State.CANCELLED
    assert outer.cancel() == {}
    assert outer.retry() == 3
    assert (outer.state().state, inner.state().state) == (State.WAITING, State.WAITING)
    finish(client, 2)
    finish(client, 1)
    assert outer.state().state is State.SUCCEEDED
    assert outer.retry() == 0


def test_the_report_is_that_of_a_scheduler(client: tb.Client) -> None:
    with client.batch() as batch:
        parts = batch.submit_many(add, [{"a": n} for n in range(3)])
        last = batch.submit(add, a=9, after=parts)
    finish(client, 3)
    finish(client, 1)
    report = batch.report()
    assert (report.jobs, report.attempts) == (4, 4)
    assert report.success_rate == 1.0
    assert report.bound.ns <= report.makespan_ns
    assert [each.id for each in batch.critical_path()][-1] == last.id
    assert "Makespan" in str(report)


def test_the_async_client_has_the_same(client: tb.Client) -> None:
    async def story() -> None:
        other = tb.AsyncClient(client)
        async with other.batch("a") as batch:
            one = await batch.submit(add, a=1)
            async with batch.batch("b") as inner:
                await inner.submit_many(add, [{"a": 2}], after=[one])
            await batch.submit_all([tb.draft(add, a=3)])
        assert (await batch.counts())[State.PENDING] == 2
        finish(client, 2)
        finish(client, 1)
        assert (await batch.wait(5)).state is State.SUCCEEDED
        assert await batch.progress() == 1.0
        assert (await batch.report()).jobs == 3
        assert len(await batch.critical_path()) >= 1
        assert await batch.cancel() == {}
        assert await batch.retry() == 0
        assert not await batch.close()
        assert (await other.get_batch(batch)).uuid == batch.uuid
        assert len(await other.batches()) == 2

    asyncio.run(story())


def test_a_batch_is_submitted_by_no_name(client: tb.Client) -> None:
    with pytest.raises(UsageError, match="is no kind of job"):
        client.submit("timeball.batch")
    with pytest.raises(UsageError, match="is no kind of job"):
        client.schedule("s", "timeball.batch", cron="@daily", tz="UTC")


def test_a_job_that_was_added_just_before_a_cancel_is_cancelled_too(
    client: tb.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.batch() as batch:
        first = batch.submit(add, a=1)
    late, close = [], client.store.close_batch

    def add_and_close(uuid: UUID, *, stop: bool = False) -> bool:
        if not late:  # somebody else, while the batch is being cancelled
            late.append(client.get_batch(uuid).submit(add, a=2))
        return close(uuid, stop=stop)

    monkeypatch.setattr(client.store, "close_batch", add_and_close)
    assert batch.cancel() == {CancelAnswer.CANCELLED: 2}
    assert [handle.job().state for handle in (first, *late)] == [State.CANCELLED] * 2
