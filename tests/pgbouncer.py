"""The PgBouncer that the suite may connect through: certify's, as a test run asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from timeball.certify.pooler import pooled, program
from timeball.certify.scenario import Skipped

__all__ = ["forget_sessions", "pgbouncer", "program"]


@contextmanager
def pgbouncer(dsn: str) -> Iterator[str]:
    """Run one in front of the server of `dsn`, and give the address of the same database there."""
    try:
        with pooled(dsn) as found:
            yield found.dsn
    except Skipped:
        raise pytest.UsageError("--pgbouncer: install pgbouncer") from None


def forget_sessions(dsn: str) -> None:
    """Have it make new connections to the server, for what was SET in an old one would be met."""
    admin = psycopg.conninfo.make_conninfo(dsn, dbname="pgbouncer")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("RECONNECT")
