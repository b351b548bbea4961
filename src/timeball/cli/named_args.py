"""The arguments of a job as people write them on a command line: `user=7 name=Ada`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from timeball.errors import UsageError


def named_args(words: Iterable[str]) -> dict[str, Any]:
    """Return arguments by name; each value is JSON if it reads as JSON, else text.

    Raises:
        UsageError: A word is no name=value.
    """
    return dict(map(_named, words))


def _named(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise UsageError(f"{word!r} is no argument: write name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
    except RecursionError:
        raise UsageError(f"the value of {name} is nested too deep: flatten it") from None
