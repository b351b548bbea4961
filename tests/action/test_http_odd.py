"""HTTP jobs against servers that are odd, slow or hostile: each ends as stated, in its time."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from typing import Any

import pytest
from tests.action.requests import carried_out, failure, result
from tests.action.server import CA, Answer, endless, plain, raw, serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"


@pytest.fixture(autouse=True)
def worker_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.0/8")


def test_a_gigabyte_is_left_alone_after_its_beginning() -> None:
    found = result(endless, capture_bytes=100)
    assert (found["body"], found["truncated"]) == ("x" * 100, True)


def _squeezed(form: str) -> bytes:
    megabytes = b"\0" * 64_000_000
    return gzip.compress(megabytes, 1) if form == "gzip" else zlib.compress(megabytes, 1)


@pytest.mark.parametrize("form", ["gzip", "deflate"])
@pytest.mark.slow
def test_a_compressed_bomb_is_opened_no_further_than_is_kept(form: str) -> None:
    body = _squeezed(form)
    tracemalloc.start()
    found = result(plain(body, Content_Encoding=form), capture_bytes=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000  # of 64; what has arrived and was not opened is in there
    assert found["truncated"]
    assert found["body"] == "\\x00" * 10


@pytest.mark.parametrize("form", ["gzip", "deflate"])
def test_what_comes_behind_the_end_of_what_is_compressed_is_left_alone(form: str) -> None:
    packed = {"gzip": gzip.compress, "deflate": zlib.compress}[form](b"hello")
    sent = 0

    async def and_more(writer: asyncio.StreamWriter, _asked: Any) -> None:
        nonlocal sent
        head = f"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\nContent-Encoding: {form}\r\n\r\n"
        writer.write(head.encode() + packed)
        while sent < 50_000_000 - len(packed) and not writer.is_closing():
            writer.write(b"x" * 50_000)
            await writer.drain()
            sent += 50_000

    found = result(and_more)
    assert (found["body"], found["truncated"]) == ("hello", True)
    assert sent < 25_000_000  # what fits between the two is far less


def test_what_is_compressed_is_read_and_what_only_says_so_is_told() -> None:
    packed = gzip.compress(b"hello")
    assert result(plain(packed, Content_Encoding="gzip"))["body"] == "hello"
    found = failure(plain(b"no gzip at all", Content_Encoding="gzip"))
    assert found.error_type == "HttpBroken"


@pytest.mark.parametrize(
    "body", [b"\xff\xfe\x00", b"\x00" * 40_000, b"\x01" * 40_000, b'"' * 40_000]
)
def test_any_body_can_be_stored(body: bytes) -> None:
    found = result(plain(body), capture_bytes=40_000)
    assert found["status"] == 200
    assert "\0" not in found["body"]


def test_a_body_in_another_charset_is_read_in_it() -> None:
    answer = plain("Köln".encode("latin-1"), Content_Type='text/plain; charset="ISO-8859-1"')
    assert result(answer)["body"] == "Köln"
    assert result(plain(b"x", Content_Type="text/plain; charset=zlib_codec"))["body"] == "x"


@pytest.mark.parametrize(
    ("answer", "type_"),
    [
        (raw(then="silence"), "HttpTimeout"),
        (raw(b"HTTP/1.1 200", then="silence"), "HttpTimeout"),
        (raw(HEAD, b"half", then="silence"), "HttpTimeout"),
        (raw(HEAD, b"half", then="reset"), "HttpBroken"),
        (raw(HEAD, b"half", then="close"), "HttpBroken"),
        (raw(then="close"), "HttpBroken"),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "HttpBroken"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "HttpBroken"),
    ],
    ids=["no-head", "slow-head", "slow-body", "reset", "cut", "nothing", "no-http", "two-lengths"],
)
def test_a_server_that_breaks_off_or_stands_still_is_worth_another_attempt(
    answer: Answer, type_: str
) -> None:
    found = failure(answer, read_s=0.05)
    assert (found.error_type, found.again) == (type_, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf;",
    ],
    ids=["body", "headers", "status", "chunk"],
)
def test_the_time_of_the_whole_is_bounded_however_steadily_it_drips(head: bytes) -> None:
    async def drip(writer: asyncio.StreamWriter, _asked: Any) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(b"1")
            await asyncio.sleep(0.01)

    found = failure(drip, timeout_s=0.2)
    assert (found.error_type, found.reason, found.again) == ("TimeoutError", "timeout", True)


def test_http_1_0_is_read_to_the_end_of_the_connection() -> None:
    found = result(raw(b"HTTP/1.0 200 OK\r\n\r\n", b"all ", b"of it"))
    assert (found["status"], found["body"]) == (200, "all of it")


def test_a_certificate_counts_for_its_name_and_its_authority_only() -> None:
    assert result(plain(b"x"), certificate="server.pem", ca=CA)["body"] == "x"
    for certificate, ca in (("other.pem", {"ca": CA}), ("server.pem", {})):
        found = failure(plain(b"x"), certificate=certificate, **ca)
        assert (found.error_type, found.again) == ("HttpBroken", True)
        assert "certificate" in found.error.lower()


def test_a_closed_port_is_worth_another_attempt() -> None:
    async def main() -> Any:
        async with serving(plain()) as server:
            pass
        return await carried_out(server, None)

    found = asyncio.run(main())
    assert (found.error_type, found.again) == ("HttpBroken", True)
