"""The server for monitoring: what it answers, and what it does not put up with."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Event, Thread
from urllib.error import HTTPError

import pytest

from timeball.errors import UsageError
from timeball.observe import endpoint as module
from timeball.observe.endpoint import CLIENTS_MAX, REQUEST_MAX, Answer, Endpoint, address

GET = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def gate() -> Event:
    """Holds up the answer of `/slow`."""
    return Event()


@pytest.fixture
def endpoint(gate: Event) -> Iterator[Endpoint]:
    def slow() -> Answer:
        gate.wait(30)
        return Answer(200, "at last\n")

    pages = {"/page": lambda: Answer(200, "ä\n", "text/x"), "/slow": slow}
    made = Endpoint("127.0.0.1", 0, pages)
    made.start()
    yield made
    gate.set()
    made.close()


def port(endpoint: Endpoint) -> int:
    return int(endpoint.url.rpartition(":")[2])


def raw(endpoint: Endpoint, request: bytes) -> bytes:
    """All that is answered to these bytes."""
    with socket.create_connection(("127.0.0.1", port(endpoint)), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while more := connection.recv(1 << 16):
            answer += more
        return answer


def status(endpoint: Endpoint, request: bytes) -> int | None:
    return status_of(raw(endpoint, request))


def status_of(answer: bytes) -> int | None:
    """The number in an answer; None where there is none."""
    return int(answer.split(b" ")[1]) if answer else None


def test_a_page_is_answered_with_its_type_and_length(endpoint: Endpoint) -> None:
    with urllib.request.urlopen(f"{endpoint.url}/page?x=1", timeout=30) as answer:
        assert answer.read().decode() == "ä\n"
        assert answer.headers["Content-Type"] == "text/x"
        assert answer.headers["Content-Length"] == "3"
        assert answer.headers["Cache-Control"] == "no-store"


def test_a_page_that_is_not_there_is_not_found_and_others_are_named(endpoint: Endpoint) -> None:
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(f"{endpoint.url}/other", timeout=30)
    with caught.value as error:
        assert (error.code, error.read()) == (404, b"there is /page, /slow\n")


def test_only_get_and_head_are_allowed(endpoint: Endpoint) -> None:
    assert status(endpoint, GET.replace(b"GET", b"POST")) == 405
    head = raw(endpoint, GET.replace(b"GET", b"HEAD"))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "request_", [b"\r\n\r\n", b"GET /page\r\n\r\n", b"\xff\x00 \x16 HTTP\r\n\r\n"], ids=repr
)
def test_what_is_no_http_is_refused(endpoint: Endpoint, request_: bytes) -> None:
    assert status(endpoint, request_) == 400


def test_a_request_that_never_ends_is_refused(endpoint: Endpoint) -> None:
    assert status(endpoint, b"GET /page HTTP/1.1\r\nX: ".ljust(REQUEST_MAX, b"x")) == 400


def test_who_says_nothing_is_let_go(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr(module, "DEADLINE_S", 0.05)
        with socket.create_connection(("127.0.0.1", port(endpoint)), timeout=30) as silent:
            silent.sendall(b"GET /pa")
            assert status_of(silent.recv(1_000)) is None
    assert status(endpoint, GET) == 200


def test_slow_ones_never_have_more_than_a_few_threads(
    endpoint: Endpoint, gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.0)
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port(endpoint)), timeout=30))
            for _ in range(CLIENTS_MAX + 1)
        ]
        for each in slow:
            each.sendall(GET.replace(b"/page", b"/slow"))
        refused = _first_closed(slow)
        gate.set()
        answers = [each.recv(1 << 16) for each in slow if each is not refused]
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
    assert len(answers) == CLIENTS_MAX


def _first_closed(connections: list[socket.socket]) -> socket.socket:
    """Wait for the one that is closed unanswered: the last to be accepted."""
    last = connections[-1]
    with suppress(ConnectionResetError):
        assert last.recv(100) == b""
    return last


def test_where_no_thread_can_be_started_the_next_one_who_asks_is_answered(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", fail)
        for _ in range(CLIENTS_MAX + 1):
            with suppress(ConnectionResetError):
                assert raw(endpoint, GET) == b""
    assert status(endpoint, GET) == 200


def test_a_taken_port_is_an_error_at_once(endpoint: Endpoint) -> None:
    with pytest.raises(OSError, match="in use"):
        Endpoint("127.0.0.1", port(endpoint), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", ("127.0.0.1", 0)),
        ("9300", ("127.0.0.1", 9300)),
        ("127.0.0.2:1", ("127.0.0.2", 1)),
        ("localhost:80", ("localhost", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_of_this_machine_is_taken(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "127.0.0.1", "65536", "-1", "1.5", "0.0.0.0:1", "10.0.0.1:1", "a.example:1",
             "[::]:1", "²"]
)  # fmt: skip
def test_any_other_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write"):
        address(text)
