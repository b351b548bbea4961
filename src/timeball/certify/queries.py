"""What the harness itself asks of a database: the statements of ``certify/sql``, by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def query(name: str) -> str:
    """Return the text of ``sql/<name>.sql``."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")
