"""What commands write: data to stdout, talk to stderr, and nothing a terminal would obey.

Tables are drawn on a terminal and plain aligned text everywhere else. Whatever comes from
jobs and files is made harmless first: a job's error may hold escape sequences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from timeball.importers.crontab_line import harmless

SCHEMA_VERSION: Final = 1
"""Of the JSON that commands write; raised when a field changes its meaning or goes."""

_LINE_MAX: Final = 100_000
_Command = TypeVar("_Command", bound=Callable[..., Any])


def say(text: str) -> None:
    """Write talk to stderr."""
    click.echo(clean(text), err=True)


def write(text: str) -> None:
    """Write data for people to stdout."""
    click.echo(clean(text))


def clean(text: str) -> str:
    """Return text that no terminal takes for orders; its line ends stay."""
    return "\n".join(harmless(line, _LINE_MAX) for line in text.split("\n"))


def write_json(payload: Mapping[str, Any]) -> None:
    """Write one JSON document to stdout."""
    document = {"schema_version": SCHEMA_VERSION, **payload}
    click.echo(json.dumps(document, indent=2, default=_plain))


def write_jsonl(rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line to stdout."""
    for row in rows:
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **row}, default=_plain))


def write_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to stdout."""
    cells = [[harmless(str(cell), _LINE_MAX) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(titles, cells)
        return
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for row in ([title.upper() for title in titles], *cells):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _draw(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title in _WHOLE)
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(table)


_WHOLE: Final = {"name", "number", "id", "state", "what"}
"""Columns that are copied or read at a glance, so the others make room for them."""

_STYLES: Final = {
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "error": "red",
}


def iso(instant: datetime) -> str:
    """Return an instant for machines: UTC, ending in Z, with no more digits than it has."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def shown(instant: datetime | None, *, utc: bool) -> str:
    """Return an instant for people: this machine's zone with its offset, or UTC; "" for None."""
    if instant is None:
        return ""
    return instant.astimezone(UTC if utc else None).isoformat(" ", "seconds")


def _plain(value: object) -> str:
    return iso(value) if isinstance(value, datetime) else str(value)


def utc_option(command: _Command) -> _Command:
    """Add `--utc`."""
    return click.option("--utc", is_flag=True, help="Show times in UTC.")(command)


def json_option(command: _Command) -> _Command:
    """Add `--json`, as the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON.")(command)
