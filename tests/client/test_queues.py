"""Queues as a program asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.client.jobs import add

import timeball as tb
from timeball.errors import QueueFull, UsageError
from timeball.store.memory import MemoryStore

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused


@pytest.fixture
def client() -> Iterator[tb.Client]:
    with tb.Client(MemoryStore(lambda: datetime.now(UTC))) as client:
        yield client


def test_a_queue_is_paused_by_somebody_and_resumed(client: tb.Client) -> None:
    job = client.submit(add, a=1, queue="default")
    assert client.pause_queue("default")
    assert not client.pause_queue("default", by="bob")
    queue = client.queues()[0]
    assert (queue.name, queue.pending) == ("default", 1)
    assert "@" in (queue.paused_by or "")
    assert job.job().reason == "paused"
    assert client.resume_queue("default")
    assert not client.resume_queue("default")
    assert job.job().reason is None


@pytest.mark.parametrize("name", ["", "x" * 257, "a\x00b"])
def test_a_queue_that_cannot_be_is_refused(client: tb.Client, name: str) -> None:
    with pytest.raises(UsageError, match="queue"):
        client.pause_queue(name)


def test_who_pauses_may_have_no_name(client: tb.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr("timeball.client.queues.getuser", nobody)
    client.pause_queue("default")
    assert (client.queues()[0].paused_by or "").startswith("somebody@")


def test_the_async_client_does_the_same(client: tb.Client) -> None:
    async def run() -> None:
        also = tb.AsyncClient(client)
        assert await also.pause_queue("default", by="ann")
        assert [queue.paused_by for queue in await also.queues()] == ["ann"]
        assert await also.resume_queue("default")
        await also.limit_depth("default", 7)
        assert [queue.max_depth for queue in await also.queues()] == [7]

    asyncio.run(run())


def test_a_job_is_moved_by_its_handle_or_its_uuid(client: tb.Client) -> None:
    job = client.submit(add, a=1)
    assert client.move(job, queue="other") == "moved"
    assert (job.job().queue, job.job().priority) == ("other", 7)

    async def run() -> None:
        assert await tb.AsyncClient(client).move(job.uuid, priority=0) == "moved"

    asyncio.run(run())
    assert (job.job().queue, job.job().priority) == ("other", 0)


def test_a_job_is_put_off_by_its_handle_or_its_uuid(client: tb.Client) -> None:
    job = client.submit(add, a=1)
    at = client.store.now() + timedelta(hours=1)
    assert client.snooze(job, until=at) == "snoozed"
    assert job.job().run_at == at

    async def run() -> None:
        assert await tb.AsyncClient(client).snooze(job.uuid, delay_s=7_200) == "snoozed"

    asyncio.run(run())
    assert job.job().run_at > at


@pytest.mark.parametrize(
    "when", [{}, {"delay_s": -1}, {"until": NAIVE}, {"until": NAIVE, "delay_s": 1}]
)
def test_until_when_it_is_put_off_is_said_once_and_can_be(client: tb.Client, when: dict) -> None:
    with pytest.raises(UsageError, match=r"until|delay_s"):
        client.snooze(client.submit(add, a=1), **when)


@pytest.mark.parametrize("place", [{}, {"queue": ""}, {"priority": 10}, {"priority": True}])
def test_a_job_is_moved_to_where_there_can_be_jobs(client: tb.Client, place: dict) -> None:
    job = client.submit(add, a=1)
    with pytest.raises(UsageError, match=r"queue|priority"):
        client.move(job, **place)


def test_a_depth_is_limited_for_submissions_of_all_kinds(client: tb.Client) -> None:
    client.limit_depth("default", 2)
    with pytest.raises(QueueFull, match="submit again") as told:
        client.submit_many(add, [{"a": n} for n in range(3)], queue="default")
    assert told.value.queue == "default"
    client.submit_many(add, [{"a": 1}, {"a": 2}], queue="default")
    client.limit_depth("default", None)
    client.submit(add, a=3, queue="default")


@pytest.mark.parametrize("depth", [0, -1, True, 1.5, 1_000_001])
def test_a_depth_is_a_number_of_jobs(client: tb.Client, depth: int) -> None:
    with pytest.raises(UsageError, match="max_depth"):
        client.limit_depth("default", depth)
