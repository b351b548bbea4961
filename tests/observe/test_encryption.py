"""A database on another machine: encrypted where that is asked for, and else a warning."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from timeball.errors import StoreUnavailable
from timeball.observe import encryption
from timeball.observe.encryption import warn_if_plain
from timeball.store.postgres.connections import Connections


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "_told", set())


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("db.example.org", "203.0.113.7"),
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("localhost", "10.0.0.7"),  # somebody else has a say in that name
        ("db", ""),
    ],
)
def test_plain_text_to_another_machine_is_warned_of_once(
    host: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        warn_if_plain(host, address, encrypted=False)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert host in record.getMessage()
    assert "sslmode=verify-full" in record.getMessage()


@pytest.mark.parametrize(
    ("host", "address", "encrypted"),
    [
        ("db.example.org", "203.0.113.7", True),
        ("/run/postgresql", "", False),
        ("@abstract", "", False),
        ("", "", False),
        ("localhost", "127.0.0.1", False),
        ("localhost", "", False),
        ("::1", "::1", False),
        ("db", "127.0.1.1", False),
    ],
)
def test_what_is_encrypted_or_on_this_machine_is_not(
    host: str, address: str, *, encrypted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_if_plain(host, address, encrypted=encrypted)
    assert not caplog.records


def test_each_connection_of_the_store_is_looked_at(
    direct: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(encryption, "_is_here", lambda _host, _address: False)
    connections = Connections(direct)
    connections.connect().close()
    connections.close()
    (record,) = caplog.records
    assert "is not encrypted" in record.getMessage()


def test_where_encryption_is_asked_for_nothing_is_said_without_it() -> None:
    """A server, or whoever has come between, that has none is told no name and no password."""
    heard = bytearray()

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            heard.extend(connection.recv(8))
            connection.sendall(b"N")
            while more := connection.recv(4096):
                heard.extend(more)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=answer)
        server.start()
        port = listening.getsockname()[1]
        dsn = f"postgresql://ada:geheim@127.0.0.1:{port}/db?sslmode=require&gssencmode=disable"
        connections = Connections(dsn)
        with pytest.raises(StoreUnavailable, match="SSL") as caught, connections.borrowed():
            pass
        server.join()
    assert "geheim" not in str(caught.value)
    assert bytes(heard) == (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
