"""Calls from outside: who knows the address ends the callback, once, and nobody else does."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.web.asgi import Answer, Browser
from tests.web.conftest import CALLBACK_KEY, TEXTS

import timeball as tb
from timeball.action.callback_address import PATH, is_proof, proof
from timeball.action.webhook import signed_headers
from timeball.chance import now
from timeball.client import Client
from timeball.core.payload import RESULT_MAX
from timeball.core.states import State
from timeball.errors import UsageError
from timeball.web import Scope
from timeball.web.guard import BODY_MAX

OTHER_KEY = "whsec_" + b64encode(b"another key, of somebody else's").decode()
BASE = "https://jobs.example"


def called(app: Any, path: str, body: bytes | str = b"{}", **headers: str) -> Answer:
    """What somebody is told who has nothing but an address."""
    raw = body if isinstance(body, bytes) else body.encode()
    return Browser(app, client=("203.0.113.9", 4711)).ask("POST", path, raw, headers=headers)


def asked(client: Client, **options: Any) -> tuple[tb.Handle, str]:
    """A callback that waits, and the path of its address."""
    given = {"within_s": 3600, **options}
    handle = client.submit(tb.callback("payment 7", **given))
    return handle, path_of(handle)


def path_of(handle: tb.Handle) -> str:
    return tb.callback_url(BASE, handle).reveal().removeprefix(BASE)


def test_a_call_ends_the_callback_and_what_comes_after_it_reads_what_it_said(
    app: Any, client: Client
) -> None:
    handle, path = asked(client)
    child = client.submit("ship", after=[handle])
    said = {"order": 7, "paid": True, "note": "\u20ac 19.99"}
    answer = called(app, path, json.dumps(said), content_type="application/json")
    assert (answer.status, answer.json) == (200, {"answer": "accepted"})
    assert (handle.job().state, handle.job().result) == (State.SUCCEEDED, said)
    assert child.job().state is State.PENDING


def test_the_same_call_again_is_answered_the_same_and_another_is_refused(
    app: Any, client: Client
) -> None:
    handle, path = asked(client)
    first = called(app, path, '{"a": 1, "b": 2}')
    before = handle.job()
    again = called(app, path, ' {"b":2,"a":1}\n')
    assert (again.status, again.body) == (first.status, first.body) == (200, first.body)
    other = called(app, path, '{"a": 2}')
    assert (other.status, "stays" in other.json["detail"]) == (409, True)
    assert handle.job() == before


@pytest.mark.parametrize(
    "forge",
    [
        lambda uuid, made: (uuid, made[:-1]),
        lambda uuid, made: (uuid, made + "A"),
        lambda uuid, made: (uuid, made[:-2] + ("AA" if made[-2:] != "AA" else "BB")),
        lambda uuid, made: (uuid, made.swapcase()),
        lambda uuid, _: (uuid, "A" * 43),
        lambda uuid, _: (uuid, "\u00e9"),
        lambda uuid, _: (uuid, proof(OTHER_KEY, uuid)),
        lambda uuid, _: (uuid, proof(CALLBACK_KEY, UUID(int=1))),
        lambda _, made: (uuid4(), made),
        lambda _, made: ("1", made),
    ],
)
def test_a_forged_address_is_refused_whether_or_not_there_is_such_a_callback(
    app: Any, client: Client, forge: Any
) -> None:
    handle, _ = asked(client)
    uuid, made = forge(handle.uuid, proof(CALLBACK_KEY, handle.uuid))
    refused = called(app, f"{PATH}/{uuid}/{made}")
    nowhere = called(app, f"{PATH}/{uuid4()}/{made}")
    assert (refused.status, refused.body) == (403, nowhere.body)
    assert handle.job().state is State.WAITING


def test_no_token_stands_in_for_the_address(app: Any, client: Client) -> None:
    handle, path = asked(client)
    for scope, text in TEXTS.items():
        forged = Browser(app, text).send("POST", f"{PATH}/{handle.uuid}/{'A' * 43}", {})
        assert forged.status == 403, scope
    assert called(app, path, authorization="Bearer no-token-of-ours").status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_a_link_checker_or_a_browser_that_opens_the_address_ends_nothing(
    app: Any, client: Client, method: str
) -> None:
    handle, path = asked(client)
    assert Browser(app).ask(method, path).status == 405
    assert handle.job().state is State.WAITING


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"paid": tr', 400),
        (b'{"paid": 1', 400),
        (b"paid=1", 400),
        (b"\xff", 400),
        (b'{"a": 1, "a": 2}', 400),
        (b'{"a": NaN}', 400),
        (b'{"a": 1e999}', 400),
        (b'["\\u0000"]', 400),
        (b'"\\ud800"', 400),
        (b"[" * 5_000 + b"]" * 5_000, 400),
        (b'"' + b"x" * RESULT_MAX + b'"', 413),
        (b" " * (BODY_MAX + 1), 413),
    ],
    ids=str,
)
def test_a_body_that_cannot_be_kept_ends_nothing_and_the_right_one_may_follow(
    app: Any, client: Client, body: bytes, status: int
) -> None:
    handle, path = asked(client)
    assert called(app, path, body).status == status
    assert handle.job().state is State.WAITING
    assert called(app, path, b"").status == 200
    assert handle.job().result is None


def test_a_form_says_nothing_and_other_pages_may_call(app: Any, client: Client) -> None:
    handle, path = asked(client)
    assert called(app, path, content_type="application/x-www-form-urlencoded").status == 200
    assert handle.job().state is State.SUCCEEDED
    _, path = asked(client)
    assert called(app, path, origin="https://partner.example").status == 200


def test_who_calls_too_late_or_for_nothing_is_told_so(app: Any, client: Client) -> None:
    late = client.submit(tb.callback("a", within_s=1), expires_at=now() - timedelta(seconds=1))
    answer = called(app, path_of(late))
    assert (answer.status, "too late" in answer.json["detail"]) == (410, True)
    gone, path = asked(client)
    gone.cancel()
    assert (called(app, path).status, gone.job().state) == (409, State.CANCELLED)
    client.delete(gone)
    assert called(app, path).status == 404


def test_the_address_of_another_kind_of_job_is_none(app: Any, client: Client) -> None:
    plain = client.submit("a")
    assert called(app, path_of(plain)).status == 404
    assert plain.job().state is State.PENDING


def test_while_the_key_is_replaced_addresses_by_the_old_one_are_known(
    app: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, old), (handle, _) = asked(client), asked(client)
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", f"{OTHER_KEY} {CALLBACK_KEY}")
    assert path_of(handle).rpartition("/")[2] == proof(OTHER_KEY, handle.uuid)
    assert called(app, old).status == called(app, path_of(handle)).status == 200
    _, later = asked(client)
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", CALLBACK_KEY)
    assert called(app, later).status == 403


@pytest.mark.parametrize("key", [None, "short", "whsec_!", f"{CALLBACK_KEY} whsec_AAAA"])
def test_without_its_key_a_server_asks_to_be_called_later(
    app: Any, client: Client, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    handle, path = asked(client)
    if key is None:
        monkeypatch.delenv("TIMEBALL_SECRET_CALLBACK")
    else:
        monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", key)
    answer = called(app, path)
    assert (answer.status, "CALLBACK" in answer.text) == (503, False)
    assert handle.job().state is State.WAITING


def test_what_the_server_itself_cannot_keep_is_to_be_called_again(
    app: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise UsageError("the seal toy has failed: out of order")

    handle, path = asked(client)
    with monkeypatch.context() as patched:
        patched.setattr("timeball.store.postgres.calls.closed", broken)
        answer = called(app, path)
        assert (answer.status, "seal" in answer.text) == (503, False)
    assert handle.job().state is State.WAITING
    assert called(app, path).status == 200


def test_where_a_signature_is_asked_for_too_the_address_alone_is_not_enough(
    app: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_PARTNER", OTHER_KEY)
    handle, path = asked(client, signed_by=tb.Secret("env:PARTNER"))
    body, at_s = b'{"paid": true}', now().timestamp()
    right = signed_headers([OTHER_KEY], id_="msg_1", at_s=at_s, body=body)
    old = signed_headers([OTHER_KEY], id_="msg_1", at_s=at_s - 600, body=body)
    wrong = signed_headers([CALLBACK_KEY], id_="msg_1", at_s=at_s, body=body)
    for headers, sent in (({}, body), (old, body), (wrong, body), (right, b'{"paid": false}')):
        answer = called(app, path, sent, **headers)
        assert (answer.status, "signature" in answer.json["detail"]) == (403, True)
    monkeypatch.delenv("TIMEBALL_SECRET_PARTNER")
    assert called(app, path, body, **right).status == 503
    assert handle.job().state is State.WAITING
    monkeypatch.setenv("TIMEBALL_SECRET_PARTNER", OTHER_KEY)
    assert called(app, path, body, **right).status == 200
    forged = f"{PATH}/{handle.uuid}/{'A' * 43}"
    assert called(app, forged, body, **right).status == 403


def test_the_page_of_a_callback_says_what_it_waits_for_and_shows_no_secret(
    admin: Browser, client: Client
) -> None:
    handle, path = asked(client)
    sender = client.submit(tb.http("POST", BASE, json={"to": tb.callback_url(BASE, handle)}))
    secret = path.rpartition("/")[2]
    assert is_proof([CALLBACK_KEY], handle.uuid, secret)
    page = admin.get(f"/jobs/{handle.uuid}").text
    assert "waits for a call to its address" in page
    assert "payment 7" in page
    shown = page + admin.get(f"/jobs/{sender.uuid}").text
    shown += admin.get(f"/api/v1/jobs/{handle.uuid}").text
    shown += admin.get(f"/api/v1/jobs/{sender.uuid}").text
    assert str(handle.uuid) in shown
    assert secret not in shown
    assert CALLBACK_KEY not in shown
    client.cancel(handle)
    assert "/revive" not in admin.get(f"/jobs/{handle.uuid}").text
    assert admin.send("POST", f"/api/v1/jobs/{handle.uuid}/revive").status == 409


def test_a_callback_is_submitted_by_the_api_too_and_not_without_a_deadline(app: Any) -> None:
    browser = Browser(app, TEXTS[Scope.SUBMIT])
    job: dict[str, Any] = {"kind": "timeball.callback", "args": {"name": "a"}}
    refused = browser.send("POST", "/api/v1/jobs", job)
    assert (refused.status, "for ever" in refused.json["detail"]) == (400, True)
    job["expires_at"] = (now() + timedelta(hours=1)).isoformat()
    added = browser.send("POST", "/api/v1/jobs", job)
    assert added.status == 201
    assert called(app, f"{PATH}/{added.json['uuid']}/"
                  f"{proof(CALLBACK_KEY, UUID(added.json['uuid']))}").status == 200  # fmt: skip
