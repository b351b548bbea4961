"""Signatures of Standard Webhooks, both ways against the reference library."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError
from tests.action.requests import UUID_TEXT, carried_out, failure
from tests.action.server import plain, serving

from timeball.action.secret import Secret
from timeball.action.webhook import SignatureInvalid, signed_headers, verify
from timeball.chance import now

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"


def signed(keys: list[str], body: bytes, *, late_s: float = 0.0) -> dict[str, str]:
    return signed_headers(keys, id_="msg_1", at_s=now().timestamp() - late_s, body=body)


@given(st.text(max_size=200))
def test_the_reference_takes_ours(text: str) -> None:
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    assert Webhook(KEY).verify(body, signed([KEY], body)) == {"text": text}


@given(st.text(max_size=200).filter(lambda text: text.isprintable()))
def test_we_take_those_of_the_reference(text: str) -> None:
    at = now()
    signature = Webhook(KEY).sign("msg_1", at, text)
    headers = {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": f"v2,x {signature}",
    }
    verify([OTHER, KEY], headers, text.encode(), now_s=at.timestamp())


def test_while_a_key_is_replaced_both_are_good() -> None:
    headers = signed([KEY, OTHER], b"{}")
    for key in (KEY, OTHER):
        Webhook(key).verify(b"{}", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(b"{}", signed([KEY], b"{}"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"webhook-id": "msg_2"}, "no signature"),
        ({"webhook-timestamp": "7"}, "more than 300 s"),
        ({"webhook-timestamp": "soon"}, "no number"),
        ({"webhook-signature": "v1,AAAA"}, "no signature"),
        ({"webhook-signature": "ü"}, "no signature"),
    ],
)
def test_whatever_was_changed_is_seen(change: dict[str, str], word: str) -> None:
    headers, now_s = signed([KEY], b"{}"), now().timestamp()
    verify([KEY], headers, b"{}", now_s=now_s)
    with pytest.raises(SignatureInvalid, match=word):
        verify([KEY], headers | change, b"{}", now_s=now_s)
    with pytest.raises(SignatureInvalid):
        verify([KEY], headers, b"{ }", now_s=now_s)
    with pytest.raises(SignatureInvalid, match="missing"):
        verify([KEY], {}, b"{}", now_s=now_s)


def test_a_signature_grows_old() -> None:
    headers = signed([KEY], b"{}", late_s=301)
    with pytest.raises(SignatureInvalid, match="more than 300"):
        verify([KEY], headers, b"{}", now_s=now().timestamp())


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_AAAA", "whsec_!!!", "x" * 200])
def test_a_key_that_is_none_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match="64 random bytes"):
        signed([key], b"")


def test_all_attempts_of_a_job_have_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.1")
    monkeypatch.setenv("TIMEBALL_SECRET_NEW", OTHER)
    monkeypatch.setenv("TIMEBALL_SECRET_OLD", KEY)
    sign = [Secret("env:NEW"), Secret("env:OLD")]

    async def main() -> None:
        async with serving(plain(status="503 X"), plain()) as server:
            for _ in range(2):
                await carried_out(server, None, method="POST", json={"a": "ü"}, sign=sign)
        for asked in server.asked:
            assert asked.headers["webhook-id"] == UUID_TEXT
            for key in (KEY, OTHER):
                assert Webhook(key).verify(asked.body, asked.headers) == {"a": "ü"}

    asyncio.run(main())


def test_a_wrong_key_fails_for_good_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_K", "no-key-at-all")
    found = failure(plain(), method="POST", sign=Secret("env:K"))
    assert (found.error_type, found.again) == ("HttpRefused", False)
    assert "no-key" not in found.error


def test_the_reference_reads_time_in_utc() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    headers = signed_headers([KEY], id_="m", at_s=at.timestamp(), body=b"x")
    assert headers["webhook-signature"] == Webhook(KEY).sign("m", at, "x")


@pytest.mark.parametrize("stamp", ["9" * 5_000, "-1", "1.5", "\u0661", ""])
def test_a_time_that_is_none_is_no_signature(stamp: str) -> None:
    headers = {"webhook-id": "m", "webhook-timestamp": stamp, "webhook-signature": "v1,x"}
    with pytest.raises(SignatureInvalid, match=r"no number|more than"):
        verify([KEY], headers, b"", now_s=0.0)
