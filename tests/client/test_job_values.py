"""What `tb.http` and the like give, submitted and scheduled by clients."""

from __future__ import annotations

import sys

import pytest
from tests.store.world import World, memory_world

import timeball as tb
from timeball.client import Client
from timeball.core.records import Delivery

URL = "https://example.org/hook"


@pytest.fixture
def world() -> World:
    return memory_world()


def test_a_job_value_is_submitted_with_its_arguments_and_the_submits_options(world: World) -> None:
    call = tb.http("POST", URL, json={"n": 1}, auth=tb.Secret("env:TOKEN"), timeout_s=5)
    job = Client(world.store).submit(call, queue="web", delivery="at_most_once").job()
    assert (job.kind, job.queue, job.max_retries) == ("timeball.http", "web", 0)
    assert job.args == {
        "method": "POST",
        "url": URL,
        "json": {"n": 1},
        "auth": {"$secret": "env:TOKEN"},
    }
    (turn,) = world.claim(world.worker("timeball.http", queues=("web",)))
    assert turn.timeout_s == 5


def test_a_job_value_is_scheduled(world: World) -> None:
    client = Client(world.store)
    client.schedule("ping", tb.http("GET", URL), cron="0 3 * * *", tz="UTC", priority=7)
    spec = client.get_schedule("ping").spec
    assert (spec.kind, spec.priority, spec.timeout_s) == ("timeball.http", 7, 60.0)
    assert spec.delivery is Delivery.AT_LEAST_ONCE


def test_the_arguments_of_a_kind_of_our_own_are_checked_without_a_value_too(world: World) -> None:
    client = Client(world.store)
    client.submit("timeball.http", method="GET", url=URL)
    with pytest.raises(tb.UsageError, match="not public"):
        client.submit("timeball.http", method="GET", url="http://127.0.0.1/")
    with pytest.raises(tb.UsageError, match="missing: url"):
        client.submit("timeball.http", method="GET")
    with pytest.raises(tb.UsageError, match="not public"):
        client.schedule(
            *("ping", "timeball.http"),
            cron="0 3 * * *",
            tz="UTC",
            args={"method": "GET", "url": "http://[::1]/"},
        )


def test_a_job_value_takes_no_further_arguments(world: World) -> None:
    client, call = Client(world.store), tb.http("GET", URL)
    for surplus in ({"url": URL}, {"args": {"url": URL}}):
        with pytest.raises(tb.UsageError, match="already"):
            client.submit(call, **surplus)
    with pytest.raises(tb.UsageError):
        client.schedule("ping", call, cron="0 3 * * *", tz="UTC", args={"url": URL})
    with tb.Scheduler() as scheduler, pytest.raises(tb.UsageError, match="already"):
        scheduler.submit(call, url=URL)


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Authorization": "Bearer abc"}},
        {"headers": {"X-Api-Key": "abcdef"}},
        {"headers": {"X-Anything": "ghp_0123456789abcdef0123"}},
        {"headers": {"Host": "other.example"}},
        {"headers": {"X-A": "b\r\nX-C: d"}},
        {"headers": {"X A": "b"}},
        {"headers": {"Content-Length": "5"}},
        {"auth": "abc"},
        {"auth": ["user", "password"]},
        {"sign": "whsec_abc"},
        {"json": {}, "body": ""},
        {"body": b"x"},
        {"success": [99]},
        {"success": "2xx"},
        {"retry_on": ["6xx"]},
        {"expect": {"status": 1}},
        {"ca": "/etc/ssl/ca.pem"},
        {"connect_s": 0},
        {"read_s": True},
        {"capture_bytes": 50_000},
        {"traceparent": "00-0-0-01"},
        {"idempotency_header": "a b"},
        {"json": float("nan")},
        {"verify": False},
    ],
)
def test_what_can_never_work_or_is_not_safe_is_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(tb.UsageError) as caught:
        tb.http("POST", URL, **options)  # type: ignore[arg-type]  # that is the point
    assert "ghp_0123456789" not in str(caught.value)


@pytest.mark.parametrize("url", [f"{URL}?api_key=abcd", "https://hooks.slack.com/services/T0/B0/X"])
def test_an_address_that_is_a_secret_is_not_stored_in_plain_text(url: str) -> None:
    with pytest.raises(tb.UsageError, match="Secret") as caught:
        tb.http("POST", url)
    assert "abcd" not in str(caught.value)
    assert "services/T0" not in str(caught.value)


def test_a_name_imports_nothing(world: World) -> None:
    before = set(sys.modules)
    Client(world.store).submit("this.module", args={})
    Client(world.store).submit("timeball.other", args={})
    assert set(sys.modules) == before


def test_a_value_shows_no_content_of_telling_names() -> None:
    call = tb.http("POST", URL, json={"password": "hunter22", "n": 1})
    assert "hunter22" not in repr(call)
    assert URL in repr(call)
