"""Keys and limits as a program asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.jobs import add

import timeball as tb
from timeball.action.job_specs import job_spec
from timeball.client.specs import schedule_spec
from timeball.core.limits import Limit, Scope
from timeball.errors import UsageError
from timeball.store.memory import MemoryStore


@tb.job(name="limits.bill", key="tenant-{tenant}")
def bill(tenant: int, month: str = "may") -> None: ...


@pytest.fixture
def client() -> Iterator[tb.Client]:
    with tb.Client(MemoryStore(lambda: datetime.now(UTC))) as client:
        yield client


def test_a_key_is_that_of_the_call_else_that_of_the_kind(client: tb.Client) -> None:
    assert client.submit(bill, tenant=7).job().key == "tenant-7"
    assert client.submit(bill, tenant=7, key="mine").job().key == "mine"
    assert client.submit(add, a=1).job().key is None
    many = client.submit_many(bill, [{"tenant": 1}, {"tenant": 2}])
    assert [handle.job().key for handle in many] == ["tenant-1", "tenant-2"]


def test_a_key_may_be_made_of_arguments_of_the_call_alone() -> None:
    assert job_spec("elsewhere", {"key": "user-{user}", "user": "ann"}).key == "user-ann"
    with pytest.raises(UsageError, match="month is not among the job's arguments"):
        job_spec(bill, {"tenant": 1, "key": "m-{month}"})


@pytest.mark.parametrize("key", ["", "x" * 257, "a\x00b"])
def test_a_key_that_cannot_be_stored_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="key"):
        job_spec("elsewhere", {"key": key})


def test_the_jobs_of_a_schedule_have_the_key_of_its_kind(client: tb.Client) -> None:
    client.schedule("bills", bill, cron="0 0 1 * *", tz="UTC", args={"tenant": 3})
    assert client.run_schedule("bills").job().key == "tenant-3"
    spec = schedule_spec("own", bill, cron="@daily", tz="UTC", args={"tenant": 3}, key="own")
    assert spec.key == "own"


def test_limits_are_set_listed_and_taken_away(client: tb.Client) -> None:
    client.limit(key="tenant-*", at_once=2)
    client.limit(queue="mail", at_once=10)
    wanted = [Limit(Scope.KEY, "tenant-*", 2), Limit(Scope.QUEUE, "mail", 10)]
    assert client.limits() == wanted
    client.limit(queue="mail", at_once=None)
    assert client.limits() == wanted[:1]


def test_rates_are_set_beside_what_is_under_way_at_once(client: tb.Client) -> None:
    client.limit(queue="mail", at_once=10)
    client.limit(queue="mail", rate="5/s")
    assert client.limits() == [Limit(Scope.QUEUE, "mail", 10, rate=tb.Rate(5))]
    client.limit(queue="mail", at_once=None)
    client.limit(kind="limits.bill", rate=tb.Rate(1, per_s=60))
    client.limit(queue="mail", rate=None)
    assert client.limits() == [Limit(Scope.KIND, "limits.bill", None, rate=tb.Rate(1, per_s=60))]
    assert client.prove_rates() == client.prove_rates(kind="limits.bill") == []


def test_the_asynchronous_client_sets_limits_too(client: tb.Client) -> None:
    async def use() -> list[Limit]:
        other = tb.AsyncClient(client)
        await other.limit(key="k", at_once=4)
        return await other.limits()

    assert asyncio.run(use()) == [Limit(Scope.KEY, "k", 4)]


@pytest.mark.parametrize(
    "words",
    [
        {"at_once": 1},
        {"at_once": 1, "key": "k", "queue": "q"},
        {"at_once": 0, "key": "k"},
        {"at_once": True, "key": "k"},
        {"at_once": 10_001, "queue": "q"},
        {"at_once": 1, "queue": ""},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(client: tb.Client, words: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="write"):
        client.limit(**words)
