"""Callbacks as jobs: what they refuse, and addresses that workers alone know whole."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.action.requests import carried_out
from tests.action.server import plain, serving
from tests.store.world import NOON, World, end, memory_world

import timeball as tb
from timeball.action.callback_address import is_proof, proof
from timeball.action.draft import draft
from timeball.action.draft_specs import draft_spec
from timeball.action.own_kinds import serve
from timeball.action.registry import Registry
from timeball.action.secret import Secret, SecretUnavailable
from timeball.action.webhook import SignatureInvalid, signed_headers, verify
from timeball.client import Client
from timeball.core.callbacks import CALLBACK
from timeball.core.outcomes import Returned
from timeball.core.states import Ending, State
from timeball.errors import UsageError

ONE = UUID(int=1)
KEYS = ["whsec_" + b64encode(bytes([n]) * 32).decode() for n in (1, 2)]
SOON: dict[str, Any] = {"expires_at": NOON + timedelta(hours=1)}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", KEYS[0])
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.0/8")


@pytest.fixture
def world() -> World:
    return memory_world()


@pytest.fixture
def client(world: World) -> Client:
    return Client(world.store)


def test_what_comes_after_a_callback_starts_when_the_call_has_come(
    world: World, client: Client
) -> None:
    asked = client.submit(tb.callback("an answer", within_s=60), **SOON)
    child = client.submit("ship", after=[asked])
    assert (asked.job().state, asked.job().args) == (State.WAITING, {"name": "an answer"})
    world.store.call_back(asked.uuid, "{}")
    assert (asked.job().state, child.job().state) == (State.SUCCEEDED, State.PENDING)


def test_an_async_client_submits_one_too(client: Client) -> None:
    async def main() -> tb.Handle:
        return await tb.AsyncClient(client).submit(tb.callback("a", within_s=60), **SOON)

    assert asyncio.run(main()).job().state is State.WAITING


def test_a_callback_ends_with_its_time_by_itself(client: Client) -> None:
    before = tb.callback("a", within_s=3600).options["expires_at"]
    assert timedelta(minutes=59) < before - tb.callback("a", within_s=1).options["expires_at"]
    with pytest.raises(UsageError, match="does not wait for ever"):
        client.submit(CALLBACK, name="a")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"after": [ONE]}, "after: a callback waits for its call alone"),
        ({"key": "a"}, "key: a callback"),
        ({"delay_s": 5}, "delay_s: a callback"),
        ({"run_at": NOON}, "run_at: a callback"),
    ],
)
def test_a_callback_waits_for_nothing_but_its_call(
    client: Client, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        client.submit(tb.callback("a", within_s=60), **{**SOON, **options})


@pytest.mark.parametrize(
    "written",
    [
        lambda: tb.callback("", within_s=1),
        lambda: tb.callback("a\n", within_s=1),
        lambda: tb.callback("x" * 257, within_s=1),
        lambda: tb.callback("a", within_s=0),
        lambda: tb.callback("a", within_s=float("nan")),
        lambda: tb.callback("a", within_s=float("inf")),
        lambda: tb.callback("a", within_s=True),
        lambda: tb.callback("a", within_s=1, signed_by=["whsec_plain"]),  # type: ignore[list-item]
        lambda: tb.callback("a", within_s=1, signed_by=[Secret("env:A")] * 5),
    ],
)
def test_what_can_never_work_is_refused_when_it_is_written(written: Any) -> None:
    with pytest.raises(UsageError, match="write"):
        written()


def test_no_clock_and_no_scheduler_of_this_process_takes_one(client: Client) -> None:
    call = tb.callback("a", within_s=60)
    with pytest.raises(UsageError, match="no job for the clock"):
        client.schedule("a", call, cron="* * * * *", tz="UTC")
    with tb.Scheduler(1) as scheduler, pytest.raises(UsageError, match=r"tb\.connect"):
        scheduler.submit(call)


def test_no_worker_serves_callbacks() -> None:
    registry = Registry()
    serve(registry)
    assert list(registry)
    assert CALLBACK not in registry


def test_a_job_waits_for_a_call_that_it_spawns(world: World, client: Client) -> None:
    """As `ctx.spawn(tb.callback(…))` does: the spec is the same."""
    worker = world.worker()
    turn = world.start(worker)
    spec = draft_spec(draft(tb.callback("a", within_s=60), **SOON))
    world.store.spawn(worker, end(turn, Ending.AWAITED)._replace(spawned=(spec,)))
    assert client.get(turn.uuid).state is State.WAITING
    world.store.call_back(spec.uuid, "1")
    assert client.get(turn.uuid).state is State.PENDING


# Addresses


@pytest.mark.parametrize("base", ["https://jobs.example", "http://10.0.0.7:8642/ops/"])
def test_the_whole_address_is_made_where_the_key_is(base: str) -> None:
    secret = tb.callback_url(base, ONE)
    assert secret.reference == f"callback:{base.rstrip('/')}/api/v1/callbacks/{ONE}"
    assert secret.reveal() == f"{secret.reference.removeprefix('callback:')}/{proof(KEYS[0], ONE)}"


@pytest.mark.parametrize(
    "base",
    [
        *("", "jobs.example", "ftp://jobs.example", "https://", "https://u:p@jobs.example"),
        *("https://jobs.example/?a", "https://jobs.example/#a", "https://[", 'https://a"b'),
        *("https://jobs.ex\u00e4mple", "https://a b", "https://" + "a" * 200),
    ],
)
def test_half_an_address_is_refused(base: str) -> None:
    with pytest.raises(UsageError, match=r"https://jobs\.example"):
        tb.callback_url(base, ONE)


def test_who_has_not_the_key_is_told_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIMEBALL_SECRET_CALLBACK")
    with pytest.raises(SecretUnavailable, match="timeball callback key"):
        tb.callback_url("https://a", ONE).reveal()
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", "swordfish")
    with pytest.raises(SecretUnavailable, match="whsec_") as caught:
        tb.callback_url("https://a", ONE).reveal()
    assert "swordfish" not in str(caught.value)
    with pytest.raises(SecretUnavailable, match="callback_url"):
        Secret("callback:https://a/1").reveal()


def test_the_key_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("TIMEBALL_SECRET_CALLBACK")
    monkeypatch.setenv("TIMEBALL_SECRETS", str(tmp_path))
    (tmp_path / "CALLBACK").write_text(f"{KEYS[1]}\n{KEYS[0]}\n")
    assert tb.callback_url("https://a", ONE).reveal().endswith(proof(KEYS[1], ONE))


@given(st.uuids(), st.uuids(), st.text(max_size=60))
def test_a_proof_is_of_one_callback_and_of_one_key(one: UUID, other: UUID, text: str) -> None:
    made = proof(KEYS[0], one)
    assert len(made) == 43
    assert is_proof(KEYS[:1], one, made)
    assert is_proof(KEYS[::-1], one, made)
    assert not is_proof(KEYS[1:], one, made)
    assert is_proof(KEYS[:1], other, made) is (one == other)
    assert not is_proof(KEYS[:1], one, text)
    assert not is_proof([], one, made)


def test_a_proof_is_no_signature_of_a_webhook_and_the_other_way_round() -> None:
    made = proof(KEYS[0], ONE)
    forged = {"webhook-id": f"timeball callback {ONE}", "webhook-timestamp": "0"}
    for text in (made, made.replace("-", "+").replace("_", "/") + "="):
        with pytest.raises(SignatureInvalid):
            verify(KEYS, {**forged, "webhook-signature": f"v1,{text}"}, b"", now_s=0)
    headers = signed_headers(KEYS, id_=f"timeball callback {ONE}", at_s=0, body=b"")
    for signature in headers["webhook-signature"].split():
        assert not is_proof(KEYS, ONE, signature.removeprefix("v1,").rstrip("="))


def test_a_request_carries_the_address_and_neither_stores_nor_shows_it() -> None:
    """Not even where the answer repeats it."""
    url = tb.callback_url("https://jobs.example", ONE)
    whole = url.reveal()
    secret = whole.rpartition("/")[2]
    call = tb.http("POST", "https://pay.example/", json={"order": 7, "notify": url})
    assert secret not in repr(call)
    assert secret not in call.kind.encode(call.args)

    async def main() -> tuple[Any, bytes]:
        async with serving(plain(json.dumps({"notify": whole, "part": secret}).encode())) as server:
            found = await carried_out(server, None, method="POST", json={"notify": url})
            assert isinstance(found, Returned), found
            return found, server.asked[0].body

    found, sent = asyncio.run(main())
    assert json.loads(sent) == {"notify": whole}
    assert secret not in (found.result or "")
    assert f"callback:https://jobs.example/api/v1/callbacks/{ONE}" in (found.result or "")
