"""HTTP jobs against a real server: each odd case ends as stated, within its time."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.action.requests import UUID_TEXT, carried_out, failure, outcome, result
from tests.action.server import Answer, plain, raw, serving

import timeball as tb
from timeball.action.http_response import RETRY_AFTER_MAX_S
from timeball.action.secret import Secret
from timeball.chance import now
from timeball.core.outcomes import Raised, Returned


@pytest.fixture(autouse=True)
def worker_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.0/8")


def test_a_success_gives_status_headers_and_body() -> None:
    answer = plain(b"hello", Content_Type="text/plain", Set_Cookie="session=1")
    assert result(answer) == {
        "status": 200,
        "headers": {"content-length": "5", "content-type": "text/plain"},
        "body": "hello",
        "truncated": False,
    }


def test_what_is_sent_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_T", "t0ken-value")

    async def main() -> None:
        async with serving(plain()) as server:
            await carried_out(
                server,
                None,
                method="POST",
                url=f"{server.url}a/b?c=d#e",
                json={"n": 1, "inner": Secret("env:T"), "text": "{{7*7}} ${HOME} {url} %s"},
                headers={"X-One": "1", "Accept": "application/json"},
                auth=Secret("env:T"),
            )
        (asked,) = server.asked
        assert (asked.method, asked.target) == ("POST", "/a/b?c=d")
        # Templates are text: nothing of it is evaluated.
        text = "{{7*7}} ${HOME} {url} %s"
        assert json.loads(asked.body) == {"n": 1, "inner": "t0ken-value", "text": text}
        wanted = {
            "host": f"127.0.0.1:{server.port}",
            "x-one": "1",
            "accept": "application/json",
            "authorization": "Bearer t0ken-value",
            "content-type": "application/json",
            "idempotency-key": UUID_TEXT,
        }
        assert wanted.items() <= asked.headers.items()

    asyncio.run(main())


def test_a_password_is_sent_as_basic_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_P", "geheim-geheim")

    async def echo(writer: asyncio.StreamWriter, asked: Any) -> None:
        body = json.dumps(asked.headers).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    found = result(echo, auth=["ada", Secret("env:P")], headers={"X-Key": Secret("env:P")})
    sent = json.loads(found["body"])
    assert sent["authorization"] == "Basic [secret env:P]"
    assert sent["x-key"] == "[secret env:P]"


def test_an_idempotency_key_may_have_another_name_or_none() -> None:
    async def main() -> None:
        async with serving(plain()) as server:
            await carried_out(server, None, method="PUT", idempotency_header="X-Once")
            await carried_out(server, None, method="PUT", idempotency_header=None)
            await carried_out(server, None, method="GET")
        named, without, safe = (asked.headers for asked in server.asked)
        assert named["x-once"] == UUID_TEXT
        assert UUID_TEXT not in list(without.values()) + list(safe.values())

    asyncio.run(main())


def test_a_trace_is_gone_on_with_or_is_the_jobs_own() -> None:
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def main() -> None:
        async with serving(plain()) as server:
            await carried_out(server, None, traceparent=given)
            await carried_out(server, None)
        gone_on, own = (asked.headers["traceparent"].split("-") for asked in server.asked)
        assert (gone_on[1], gone_on[3]) == (given.split("-")[1], "01")
        assert gone_on[2] != given.split("-")[2]
        assert own[1] == UUID_TEXT.replace("-", "")

    asyncio.run(main())


def test_attempts_to_one_host_share_a_connection() -> None:
    async def main() -> None:
        async with serving(plain(b"x")) as server:
            for _ in range(5):
                await carried_out(server, None)
            assert server.connections == 1
            # Another list of what may be called may not use what this one has checked.
            await carried_out(server, None, allow=["127.0.0.1"])
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        *((f"{status} X", "again") for status in (408, 425, 429, 500, 503)),
        *((f"{status} X", "for good") for status in (304, 400, 404, 410)),
    ],
)
def test_a_status_is_tried_again_or_fails_for_good(status: str, ends: str) -> None:
    found = failure(plain(b"because", status=status))
    assert (found.error_type, found.again) == ("HttpStatus", ends == "again")
    assert found.error.startswith(f"the server answered {status[:3]}")
    assert status == "304 X" or "because" in found.error


def test_the_mapping_of_statuses_is_the_jobs_own() -> None:
    assert result(plain(status="404 X"), success=[200, 404])["status"] == 404
    assert failure(plain(status="404 X"), retry_on=["4xx"]).again
    assert not failure(plain(status="503 X"), retry_on=[]).again
    assert not failure(plain(status="200 OK"), success=[201]).again


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        *(("7", 7.0), (" 0 ", 0.0), ("999999999999999", RETRY_AFTER_MAX_S), ("soon", None)),
        *(("-5", None), ("", None), ("Wed, 99 Oct 2015", None)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_retry_after_is_obeyed_within_bounds(text: str, wait_s: float | None) -> None:
    found = failure(plain(status="429 Too Many Requests", Retry_After=text))
    assert (found.again, found.retry_after_s) == (True, wait_s)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 X"])
def test_retry_after_may_be_a_date(status: str) -> None:
    at = format_datetime(now() + timedelta(hours=1), usegmt=True)
    wait_s = failure(plain(status=status, Retry_After=at)).retry_after_s
    assert wait_s is not None
    assert 3000 < wait_s <= 3600


def test_a_redirect_is_not_followed_and_says_where_to() -> None:
    found = failure(plain(status="302 Found", Location="http://169.254.169.254/latest"))
    assert (found.error_type, found.again) == ("HttpStatus", False)
    assert "http://169.254.169.254/latest, which is not followed" in found.error


@pytest.mark.parametrize(
    ("body", "expect", "ends"),
    [
        (b'{"a": {"b/c": [1, {"~": true}]}}', {"/a/b~1c/1/~0": True}, "well"),
        (b'{"status": "ok", "n": 1}', {"/status": "ok", "/n": 1}, "well"),
        (b"[]", {"": []}, "well"),
        (b'{"status": "no"}', {"/status": "ok"}, "badly"),
        (b'{"n": true}', {"/n": 1}, "badly"),
        (b"{}", {"/status": "ok"}, "badly"),
        (b'{"a": 1}', {"/a/b": 1}, "badly"),
        (b"[1]", {"/5": 1}, "badly"),
        (b"[1]", {"/x": 1}, "badly"),
        (b"no json", {"/status": "ok"}, "badly"),
    ],
)
def test_a_body_is_a_success_if_it_has_what_is_expected(
    body: bytes, expect: dict[str, Any], ends: str
) -> None:
    found = outcome(plain(body), expect=expect)
    if ends == "well":
        assert isinstance(found, Returned)
    else:
        assert isinstance(found, Raised)
        assert (found.error_type, found.again) == ("HttpUnexpected", False)


def test_what_was_not_kept_cannot_be_checked() -> None:
    found = failure(plain(b'{"a": 1}'), expect={"/a": 1}, capture_bytes=4)
    assert "capture_bytes" in found.error


def test_a_secret_that_no_header_can_hold_fails_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_T", "with\r\nX-Injected: 1")
    for args in ({"auth": Secret("env:T")}, {"headers": {"X-Key": Secret("env:T")}}):
        found = failure(plain(), **args)
        assert (found.error_type, found.again) == ("HttpRefused", False)
        assert "Injected" not in found.error


def test_an_address_may_be_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(plain(b"x"), plain(status="500 X")) as server:
            monkeypatch.setenv("TIMEBALL_SECRET_HOOK", f"{server.url}hook/T0PSECRET")
            assert isinstance(await carried_out(server, None, url=Secret("env:HOOK")), Returned)
            assert server.asked[0].target == "/hook/T0PSECRET"
            found = await carried_out(server, None, url=Secret("env:HOOK"))
            assert "T0PSECRET" not in str(found)

    asyncio.run(main())


def test_a_program_without_the_extra_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("timeball.action.http_kind.usable", lambda: False)
    assert "pip install 'timeball[http]'" in failure(plain()).error


def test_it_runs_in_the_in_process_engines_too() -> None:
    async def main() -> None:
        async with serving(plain(b"x"), plain(status="404 X")) as server:
            call = tb.http("POST", server.url, allow=["127.0.0.1"])
            async with tb.AsyncScheduler() as scheduler:
                good = await scheduler.submit(call)
                assert (await good)["body"] == "x"
                bad = await scheduler.submit(call, id="bad")
                await scheduler.wait()
                assert bad.reason == "permanent"
                assert "answered 404" in str(bad.error)
        first, second = (asked.headers["idempotency-key"] for asked in server.asked)
        assert first != second

    asyncio.run(main())


def test_of_an_address_that_is_a_secret_no_failure_tells_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(url: str, **args: Any) -> Raised:
        monkeypatch.setenv("TIMEBALL_SECRET_HOOK", url)
        async with serving(raw(then="close")) as server:
            monkeypatch.setenv("TIMEBALL_SECRET_HOOK", url.format(server.port))
            found = await carried_out(server, None, url=Secret("env:HOOK"), **args)
        assert isinstance(found, Raised)
        assert "T0PSECRET" not in str(found)
        assert "[secret env:HOOK]" in found.error
        return found

    lost = asyncio.run(main("http://127.0.0.1:{}/T0PSECRET?n=1"))
    assert lost.error_type == "HttpBroken"
    for url in ("http://127.0.0.1/T0PSECRET" + "/x" * 50 + " ", "ftp://T0PSECRET.example/"):
        assert asyncio.run(main(url)).error_type == "HttpRefused"
    shut = asyncio.run(main("http://127.0.0.2:22/T0PSECRET", allow=[]))
    assert (shut.error_type, shut.again) == ("HttpRefused", False)


@pytest.mark.parametrize("before", [0, 470, 490, 90])
def test_no_part_of_a_secret_is_left_where_an_answer_is_cut(
    monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_T", "canary-" + "value" * 8)

    def echo(status: bytes) -> Answer:
        async def answer(writer: asyncio.StreamWriter, asked: Any) -> None:
            body = b"x" * before + asked.headers["authorization"].encode()
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n" % (status, len(body)))
            writer.write(b"X-Request-Id: %b\r\n\r\n%b" % (body, body))

        return answer

    auth = Secret("env:T")
    assert "canary" not in failure(echo(b"500 X"), auth=auth).error
    assert "canary" not in failure(echo(b"500 X"), auth=auth, capture_bytes=before + 20).error
    assert "canary" not in str(result(echo(b"200 OK"), auth=auth, capture_bytes=before + 20))
