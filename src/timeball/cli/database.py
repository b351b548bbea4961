"""Which database a command works on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:  # psycopg takes longer to import than most commands to run
    from timeball.client import Client

_Command = TypeVar("_Command", bound=Callable[..., Any])


def dsn_option(command: _Command) -> _Command:
    """Add `--dsn`."""
    return click.option(
        "--dsn", help="The database; else TIMEBALL_DSN, DATABASE_URL, or the embedded PostgreSQL."
    )(command)


def given_dsn(dsn: str | None) -> str | None:
    """Return the DSN that a command or its environment gives; None means the embedded server."""
    return dsn or os.environ.get("TIMEBALL_DSN") or os.environ.get("DATABASE_URL") or None


@contextmanager
def opened(dsn: str | None) -> Iterator[Client]:
    """Lend a client of the database; an embedded one is started where it is not running."""
    from timeball.client import connect

    with connect(dsn) as client:
        yield client
