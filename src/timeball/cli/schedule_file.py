"""A file of schedules, as commands take it: what it holds, and whether it has a user column."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from timeball.errors import UsageError

STDIN: Final = "-"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def form_option(command: _Command) -> _Command:
    """Add `--form`."""
    return click.option(
        "--form",
        type=click.Choice(["auto", "user", "system"]),
        default="auto",
        show_default=True,
        help="Whether a crontab has a user column.",
    )(command)


def text_of(file: str) -> str:
    """Return what a file holds, `-` being stdin; bytes that are no UTF-8 as surrogates.

    Raises:
        UsageError: It cannot be read, or is too large. The file is not named.
    """
    from timeball.importers.formats import BYTES_MAX

    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(BYTES_MAX + 1)
        else:
            # It may be a pipe, or have no end
            with open(file, "rb") as opened:  # noqa: PTH123 - pathlib would cost every --help
                content = opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"{error.strerror}: name a file of schedules") from error
    if len(content) > BYTES_MAX:
        raise UsageError(f"larger than {BYTES_MAX:,} bytes: split it")
    return content.decode(errors="surrogateescape")
