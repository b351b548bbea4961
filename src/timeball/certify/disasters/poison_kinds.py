"""Jobs that are as bad as can be: in what they return, in what they raise, in what they do."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from timeball.action.registry import Registry
from timeball.core.retry import PermanentError, Retry

LOADER: Final = "timeball.certify.disasters.poison_kinds:registry"
TAKES_A: Final = "poison.takes-a"
KILLS: Final = "poison.kills"
_LARGE: Final = 10_000_000
_DEEP: Final = 5_000


class _MuteError(Exception):
    """Has no text, not even when it is asked."""

    def __str__(self) -> str:
        raise RuntimeError


def _nested() -> list[Any]:
    inner: list[Any] = []
    for _ in range(_DEEP):
        inner = [inner]
    return inner


def _raises(error: BaseException) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


RETURNED: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        "returns NUL": lambda: "a\x00b",
        "returns a lone surrogate": lambda: "\ud800",
        "returns NaN": lambda: {"ratio": math.nan},
        "returns bytes": lambda: b"\xff",
        "returns 10 MB": lambda: "x" * _LARGE,
        "returns 5,000 lists in each other": _nested,
    }
)
RAISED: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        "raises NUL": _raises(PermanentError("a\x00b")),
        "raises a lone surrogate": _raises(PermanentError("\ud800")),
        "raises 10 MB": _raises(PermanentError("x" * _LARGE)),
        "raises what has no text": _raises(_MuteError()),
        "exits": lambda: sys.exit(3),
    }
)


def name_of(what: str) -> str:
    """Return the kind of a job that does so."""
    return f"poison.{what.replace(' ', '-')}"


def registry(_target: str) -> Registry:
    """Return the kinds."""
    kinds = Registry()
    for what, call in {**RETURNED, **RAISED}.items():
        kinds.job(name=name_of(what), retry=Retry(0))(_job(call))

    @kinds.job(name=TAKES_A)
    def _takes_a(a: int) -> int:
        return a

    @kinds.job(name=KILLS)
    def _kills() -> None:
        os._exit(9)

    return kinds


def _job(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function of its own, as each kind needs one."""

    def run() -> Any:
        return call()

    return run
