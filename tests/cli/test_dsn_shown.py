"""A connection string is never shown with its password, whatever goes wrong with it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cli.invoking import invoke

from timeball.client import connect
from timeball.errors import TimeballError
from timeball.store.postgres import PostgresStore

PASSWORD = "geheim-geheim"


@pytest.fixture
def port() -> Iterator[int]:
    """Of nobody."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


WRONG = (
    f"postgresql://ada:{PASSWORD}@127.0.0.1:{{port}}/db?connect_timeout=2",
    f"host=127.0.0.1 port={{port}} user=ada dbname=db password={PASSWORD}",
    f"postgresql://ada:{PASSWORD}@h:no-port/db",
    f"postgresql://ada:{PASSWORD}@[::1/db",
    f"postgresql://ada:{PASSWORD}@127.0.0.1/db?no_such_option=1",
    f"host=h password={PASSWORD} and more",
    f"mysql://ada:{PASSWORD}@h/db",
    PASSWORD,
)


@pytest.mark.parametrize("dsn", WRONG)
def test_a_command_that_cannot_connect_does_not_repeat_it(
    dsn: str, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for words in (["jobs", "list"], ["db", "verify"], ["submit", "a"]):
        found = invoke(*words, "--dsn", dsn.format(port=port))
        assert found.exit_code != 0
        assert found.output
        assert PASSWORD not in found.output
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize("dsn", WRONG)
def test_no_exception_of_ours_holds_it(dsn: str, port: int) -> None:
    with pytest.raises(TimeballError) as caught:
        connect(dsn.format(port=port))
    assert PASSWORD not in f"{caught.value}{caught.value!r}{caught.value.args}"


def test_a_server_that_refuses_it_is_quoted_without_it(direct: str) -> None:
    # The tests let the owner in without one; whom the server does not know it tells the same.
    parts = {**conninfo_to_dict(direct), "user": "stranger", "password": PASSWORD}
    found = invoke("jobs", "list", "--dsn", make_conninfo(**parts))
    assert found.exit_code == 5
    assert "password authentication failed" in found.output
    assert PASSWORD not in found.output


def test_no_object_shows_it(direct: str) -> None:
    password = str(conninfo_to_dict(direct)["password"])
    with connect(direct) as client, psycopg.connect(direct):
        store = client.store
        assert isinstance(store, PostgresStore)
        for each in (client, store, store.connections, store.connections.connect):
            assert password not in repr(each)
