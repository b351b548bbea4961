"""What an HTTP job may connect to: 09's address vectors, and names that change their address."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.action.requests import carried_out
from tests.action.server import CA, Server, plain, serving

import timeball as tb
from timeball.action import http_pool
from timeball.action.addresses import Address, Allowed, Guard, host_of, why_not_public
from timeball.core.outcomes import Outcome, Raised, Returned

PRIVATE = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *("192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1"),
    *("::", "::1", "::127.0.0.1", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1"),
    *("ff02::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "64:ff9b:1::1", "2001:2::1"),
    *("::ffff:127.0.0.1", "::ffff:100.64.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("::ffff:0:7f00:1", "64:ff9b:2::1", "1000::1", "4000::1", "8000::1", "e000::1"),
    "2001:0:4136:e378:8000:63bf:80ff:fffe",  # Teredo of 127.0.0.1
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("text", PRIVATE)
def test_an_address_that_is_not_public_is_refused(text: str) -> None:
    address = ip_address(text)
    assert why_not_public(address)
    assert Guard().objection("name.example", address)
    # Neither the job alone nor the worker alone can open it.
    listed = Allowed.of(["0.0.0.0/0", "::/0"])
    assert Guard(asked=listed).objection("name.example", address)
    assert Guard(granted=listed).objection("name.example", address)


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_not(text: str) -> None:
    assert Guard().objection("name.example", ip_address(text)) is None


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_as_good_as_alone(inside: IPv4Address) -> None:
    alone, number = why_not_public(inside), int(inside)
    forms = (
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        IPv6Address(0x2002 << 112 | number << 80 | 1),
        IPv6Address(int(IPv6Address("2001::")) | (number ^ 0xFFFFFFFF)),
    )
    for form in forms:
        assert why_not_public(form) == alone


@given(st.ip_addresses())
@example(IPv6Address("2002:100::"))
def test_nothing_is_public_that_python_calls_private(address: Address) -> None:
    if isinstance(address, IPv6Address) and (
        address.ipv4_mapped or address.sixtofour or address.teredo
    ):
        return  # as good as the one inside, whatever a release of Python calls it
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert why_not_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "2130706433",
            "127.0.0.01",
            "0177.0.0.1",
        ),
        *("1.2.3.4.5", "1.2.3", "[::1%25lo]", "[::1%lo]", "[fe80::1%25eth0]", "[::ffff:127.1]"),
        *("[v1.x]", "[::g]", "1.2.3.0x4", "", ".", "a..b", "-a.example", "a-.example", "a b"),
        *("ex%61mple.org", "①②⑦.⓪.⓪.①", "127。0。0。1", "bücher.example", "x" * 64, "a*b"),
    ],
)
def test_a_host_that_programs_read_in_different_ways_is_refused(host: str) -> None:
    with pytest.raises(tb.UsageError):
        tb.http("GET", f"http://{host}/", allow=["0.0.0.0/0", "::/0"])


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://127.0.0.1./"),
        *("http://[::]/", "http://[::1]/", "http://169.254.169.254/latest/meta-data/"),
        *("http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://168.63.129.16/"),
        *("http://192.0.0.192/", "http://0.0.0.0/", "https://10.0.0.1/"),
    ],
)
def test_an_address_that_is_not_public_is_refused_before_the_submit(url: str) -> None:
    with pytest.raises(tb.UsageError, match="allow=") as caught:
        tb.http("GET", url)
    assert "not public" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "//example.org/"),
        *("example.org", "http:/example.org", "javascript:alert(1)", "http://u@example.org/"),
        *("http://u:p@example.org/", "http://example.org\\@evil.example/", "http://exa mple.org/"),
        *("http://example.org/a\r\nHost: b", "http://example.org/\n", "http://example.org/\0"),
        *("http://example.org:0/", "http://example.org:65536/", "http://example.org:8 0/"),
        *("http://example.org:22/", "http://example.org:6379/", "http://example.org:-1/"),
        *(
            "http://example.org:\uff18\uff10/",
            "http://[::1/",
            "http://exämple.org/",
            "http://example.org/ä",
        ),
        "http://example.org/" + "x" * 8_000,
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(tb.UsageError):
        tb.http("GET", url)


def test_a_host_has_one_spelling() -> None:
    assert host_of("Example.ORG.") == "example.org"
    assert host_of("xn--bcher-kva.example") == "xn--bcher-kva.example"


def test_an_allow_list_shuts_everything_else_out() -> None:
    asked = Allowed.of(["api.example.org", "9.9.9.0/24", "[2606::]"])
    guard, public = Guard(asked=asked), ip_address("1.1.1.1")
    assert guard.objection("api.example.org", public) is None
    assert guard.objection("evil.example", ip_address("9.9.9.9")) is None
    assert guard.objection("evil.example", ip_address("2606::")) is None
    assert guard.objection("evil.example", public)
    for entry in ("10.0.0.1/8", "a b", "1.2.3", 7):
        with pytest.raises(tb.UsageError):
            Allowed.of([entry])  # type: ignore[list-item]  # a job's arguments may hold anything


# At the connection


def connected(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[str]], *, grant: str = "", **args: object
) -> tuple[Outcome, Server, int]:
    """Carry out a request to a name that has these addresses, at the first look, the second …"""
    looks = 0

    async def resolve(_host: str, _port: int) -> list[Address]:
        nonlocal looks
        looks += 1
        return [ip_address(text) for text in answers[min(looks, len(answers)) - 1]]

    async def main() -> tuple[Outcome, Server, int]:
        async with serving(plain(b"x"), certificate=certificate) as server:
            url = f"{server.scheme}://{host}:{server.port}/"
            return await carried_out(server, None, url=url, **given), server, looks

    given = dict(args)
    host = str(given.pop("host", "name.example"))
    certificate = given.pop("certificate", None)
    assert certificate is None or isinstance(certificate, str)
    monkeypatch.setattr(http_pool, "resolve", resolve)
    monkeypatch.setenv(http_pool.ALLOW_VARIABLE, grant)
    return asyncio.run(main())


def test_a_name_is_looked_up_once_and_connected_to_where_it_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A second look would give another address: rebinding gains nothing.
    found, server, looks = connected(
        monkeypatch, [["127.0.0.1"], ["127.0.0.2"]], grant="127.0.0.1/32", allow=["127.0.0.1/32"]
    )
    assert isinstance(found, Returned)
    assert looks == 1
    assert server.asked[0].headers["host"] == f"name.example:{server.port}"


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["169.254.169.254"], ["8.8.8.8", "127.0.0.1"], ["::ffff:7f00:1"]]
)
def test_a_name_with_one_address_that_is_not_public_is_refused_at_the_connection(
    monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    found, server, _ = connected(monkeypatch, [answer], allow=["name.example"])
    assert isinstance(found, Raised)
    assert (found.error_type, found.again) == ("HttpRefused", False)
    assert "TIMEBALL_HTTP_ALLOW" in found.error
    assert server.connections == 0


def test_what_the_worker_does_not_allow_no_job_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    found, server, _ = connected(
        monkeypatch, [["127.0.0.1"]], host="127.0.0.1", allow=["127.0.0.1", "0.0.0.0/0"]
    )
    assert isinstance(found, Raised)
    assert "this worker does not allow it: set TIMEBALL_HTTP_ALLOW=127.0.0.1" in found.error
    assert server.connections == 0


def test_the_certificate_is_checked_for_the_name_and_not_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for certificate, host, good in (
        ("other.pem", "other.example", True),
        ("server.pem", "other.example", False),
    ):
        found, *_ = connected(
            monkeypatch,
            [["127.0.0.1"]],
            grant="127.0.0.1",
            allow=["127.0.0.1"],
            host=host,
            certificate=certificate,
            ca=CA,
        )
        assert isinstance(found, Returned) is good


def test_the_next_address_is_tried_where_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, *_ = connected(
        monkeypatch, [["127.0.0.9", "127.0.0.1"]], grant="127.0.0.0/8", allow=["127.0.0.0/8"]
    )
    assert isinstance(found, Returned)


def test_a_name_without_an_address_is_worth_another_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, *_ = connected(monkeypatch, [[]], allow=["name.example"])
    assert isinstance(found, Raised)
    assert (found.error_type, found.again) == ("HttpBroken", True)


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.2:9")
    found, *_ = connected(monkeypatch, [["127.0.0.1"]], grant="127.0.0.1", allow=["127.0.0.1"])
    assert isinstance(found, Returned)
