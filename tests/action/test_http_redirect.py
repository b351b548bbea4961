"""Redirects: only where a job wants them, checked at each step, with nothing secret elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.action.requests import carried_out, failure, result
from tests.action.server import CA, Answer, Asked, Server, plain, serving

import timeball as tb
from timeball.action import http_pool, http_redirect
from timeball.action.http_request import REDIRECTS_MAX
from timeball.action.http_target import PORTS
from timeball.action.secret import Secret
from timeball.core.outcomes import Outcome, Raised, Returned

KEY = "whsec_" + "QUJD" * 10


@pytest.fixture(autouse=True)
def worker_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.0/8,localhost")
    # Servers of a test have any ports.
    monkeypatch.setattr(http_redirect, "PORTS", frozenset(range(1024, 65536)) | PORTS)
    monkeypatch.setenv("TIMEBALL_SECRET_T", "canary-value")
    monkeypatch.setenv("TIMEBALL_SECRET_K", KEY)


def to(location: str, status: int = 302, body: bytes = b"") -> Answer:
    return plain(body, status=f"{status} X", Location=location)


def walked(*answers: Answer, **args: Any) -> tuple[Outcome, list[Asked]]:
    """What becomes of a request, and what one server was asked on the way."""

    async def main() -> tuple[Outcome, list[Asked]]:
        async with serving(*answers) as server:
            found = await carried_out(server, None, **{"redirects": 5, **args})
            return found, server.asked

    return asyncio.run(main())


def between(
    location: Callable[[Server], str], status: int = 307, **args: Any
) -> tuple[Outcome, list[Asked]]:
    """What becomes of a request that is sent on to another origin, and what that was asked."""

    async def main() -> tuple[Outcome, list[Asked]]:
        async with serving(plain(b"there")) as other:
            async with serving(to(location(other), status)) as first:
                found = await carried_out(first, None, **{"redirects": 5, **args})
            return found, other.asked

    return asyncio.run(main())


def refused(found: Outcome) -> Raised:
    assert isinstance(found, Raised), found
    assert (found.error_type, found.again) == ("HttpRefused", False)
    return found


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b?c=d#e", "/b?c=d"),
        ("b", "/a/b"),
        ("?q=1", "/a/x?q=1"),
        ("//{here}/b", "/b"),
        ("http://{here}/b", "/b"),
    ],
)
def test_an_address_is_read_against_the_one_before(location: str, target: str) -> None:
    async def main() -> None:
        async def answer(writer: asyncio.StreamWriter, asked: Asked) -> None:
            where = location.format(here=asked.headers["host"])
            await to(where)(writer, asked)

        async with serving(answer, plain(b"there")) as server:
            found = await carried_out(server, None, url=f"{server.url}a/x", redirects=1)
            assert isinstance(found, Returned)
            assert [asked.target for asked in server.asked] == ["/a/x", target]
            assert server.connections == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        *((status, "GET", "GET") for status in (301, 302, 303, 307, 308)),
        *((status, "HEAD", "HEAD") for status in (301, 303, 308)),
        *((status, "POST", "GET") for status in (301, 302, 303)),
        *((status, "POST", "POST") for status in (307, 308)),
        *((status, "DELETE", "DELETE") for status in (301, 302, 307, 308)),
        *((303, method, "GET") for method in ("PUT", "PATCH", "DELETE")),
    ],
)
def test_a_method_is_kept_or_becomes_a_get_as_the_standard_has_it(
    status: int, method: str, then: str
) -> None:
    content = {"body": "x"} if method in {"POST", "PUT", "PATCH"} else {}
    found, asked = walked(to("/b", status), plain(), method=method, sign=Secret("env:K"), **content)
    assert isinstance(found, Returned)
    assert [each.method for each in asked] == [method, then]
    kept = method == then
    assert asked[1].body == (b"x" if content and kept else b"")
    for name in ("webhook-signature", "idempotency-key"):
        assert (name in asked[1].headers) is (name in asked[0].headers and kept)


@pytest.mark.parametrize("status", [300, 304, 305, 399])
def test_other_statuses_of_their_class_lead_nowhere(status: int) -> None:
    found, asked = walked(to("/b", status), plain())
    assert isinstance(found, Raised)
    assert (found.error_type, len(asked)) == ("HttpStatus", 1)


def test_an_answer_that_is_a_success_is_one() -> None:
    found, asked = walked(to("/b"), plain(), success=[302])
    assert isinstance(found, Returned)
    assert len(asked) == 1


def test_a_way_without_end_is_left() -> None:
    found, asked = walked(to("/"), redirects=3)
    assert isinstance(found, Raised)
    assert (found.error_type, found.again, len(asked)) == ("HttpStatus", False, 4)
    assert "more than 3" in found.error


@pytest.mark.parametrize("headers", [{}, {"Location": ""}, {"Location": "/a\r\nLocation: /b"}])
def test_none_or_two_ways_are_no_way(headers: dict[str, str]) -> None:
    found, asked = walked(plain(status="302 X", **headers), plain(b"there"))
    if headers.get("Location") == "":  # the same address again
        assert len(asked) == 2
    else:
        assert isinstance(found, Raised)
        assert len(asked) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::ffff:169.254.169.254]/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://8.8.8.8:22/",
        "https://u:p@example.org/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://[::1",
        "http://exa mple.org/",
        "http://ex\u00e4mple.org/",
        "//example.org:99999/",
        "/" + "x" * 9_000,
    ],
)
def test_each_address_on_the_way_is_checked_as_the_first(location: str) -> None:
    async def answer(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        head = f"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
        writer.write(head.encode("latin-1"))

    found, asked = walked(answer, plain(b"there"))
    refused(found)
    assert len(asked) == 1


def test_a_name_on_the_way_is_checked_where_it_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = []

    async def resolve(host: str, _port: int) -> list[Any]:
        names.append(host)
        return [http_pool.ip_address("10.0.0.1")]

    monkeypatch.setattr(http_pool, "resolve", resolve)
    allow = ["127.0.0.1", "inner.example"]
    text = refused(walked(to("http://inner.example/"), allow=allow)[0]).error
    assert "10.0.0.1" in text
    assert names == ["inner.example"]
    assert "not in the job's own allow list" in refused(walked(to("http://b.example/"))[0]).error


def test_to_a_port_that_is_not_usual_no_way_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the list allows the host: with the port that the job has named."""
    monkeypatch.setattr(http_redirect, "PORTS", PORTS)
    assert "port 6379" in refused(walked(to("http://127.0.0.1:6379/"))[0]).error


def test_from_an_encrypted_address_no_way_leads_to_a_plain_one() -> None:
    async def main() -> Outcome:
        async with (
            serving(plain(b"there")) as other,
            serving(to(other.url), certificate="server.pem") as first,
        ):
            found = await carried_out(first, None, redirects=1, ca=CA)
            assert not other.asked
            return found

    assert "is not encrypted" in refused(asyncio.run(main())).error


@pytest.mark.parametrize("where", ["http://127.0.0.1:{port}/", "http://localhost:{port}/"])
def test_another_origin_is_sent_nothing_of_the_jobs_own(where: str) -> None:
    found, asked = between(
        lambda other: where.format(port=other.port),
        auth=Secret("env:T"),
        headers={"X-Api-Key": Secret("env:T"), "X-Tenant": "7", "User-Agent": "x", "accept": "y"},
        sign=Secret("env:K"),
        allow=["127.0.0.0/8", "localhost"],
    )
    assert isinstance(found, Returned), found
    (there,) = asked
    assert there.headers.keys() == {"host", "user-agent", "accept", "accept-encoding"}
    assert there.headers["user-agent"].startswith("timeball/")
    assert "canary" not in str(there)


def test_the_same_origin_is_sent_what_the_first_was() -> None:
    _, asked = walked(to("/b"), plain(), auth=Secret("env:T"), headers={"X-Tenant": "7"})
    assert asked[1].headers == asked[0].headers


def test_who_was_elsewhere_brings_no_credentials_back() -> None:
    async def main() -> None:
        async with serving(to("/later"), plain()) as first:
            async with serving(to(f"{first.url}back", 302)) as other:
                first.answers[0] = to(other.url)
                found = await carried_out(first, None, redirects=5, auth=Secret("env:T"))
            assert isinstance(found, Returned)
            assert [asked.target for asked in first.asked] == ["/", "/back"]
            assert "authorization" in first.asked[0].headers
            assert "authorization" not in first.asked[1].headers

    asyncio.run(main())


@pytest.mark.parametrize("args", [{"method": "POST", "body": "x"}, {"method": "DELETE"}])
def test_no_content_and_no_change_goes_to_another_origin(args: dict[str, Any]) -> None:
    found, asked = between(lambda other: other.url, 307, **args)
    assert "is not repeated at another origin" in refused(found).error
    assert not asked
    if args["method"] == "POST":  # as a GET it goes there, without content
        found, asked = between(lambda other: other.url, 303, **args)
        assert isinstance(found, Returned)
        assert (asked[0].method, asked[0].body) == ("GET", b"")


def test_of_an_address_that_is_a_secret_no_way_tells_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(location: str) -> Outcome:
        async with serving(to(location)) as server:
            monkeypatch.setenv("TIMEBALL_SECRET_HOOK", f"{server.url}T0PSECRET")
            return await carried_out(server, None, url=Secret("env:HOOK"), redirects=2)

    found = refused(asyncio.run(main("http://10.0.0.1/T0PSECRET/part-of-it")))
    assert "part-of-it" not in found.error
    assert "[secret env:HOOK]" in found.error


def test_a_cookie_that_is_set_on_the_way_is_not_kept() -> None:
    way = plain(status="302 X", Location="/b", Set_Cookie="session=1; Path=/")
    _, asked = walked(way, plain())
    assert "cookie" not in asked[1].headers


def test_the_time_of_the_whole_is_for_all_of_the_way() -> None:
    async def slow(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(0.05)
        await to("/")(writer, asked)

    found = failure(slow, redirects=10, timeout_s=0.12)
    assert (found.error_type, found.reason) == ("TimeoutError", "timeout")


@pytest.mark.parametrize("count", [-1, REDIRECTS_MAX + 1, True, "3", 1.0])
def test_a_count_that_is_none_is_refused_at_once(count: Any) -> None:
    with pytest.raises(tb.UsageError, match="0 to 10"):
        tb.http("GET", "https://example.org/", redirects=count)


def test_by_default_none_is_followed() -> None:
    assert failure(to("/b"), plain()).error_type == "HttpStatus"
    assert result(plain(b"x"), redirects=1)["body"] == "x"
