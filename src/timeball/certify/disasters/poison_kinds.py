"""Jobs that are as bad as can be: in what they return, in what they raise, in what they do."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from timeball.action.context import Context
from timeball.action.registry import Registry
from timeball.core.retry import PermanentError, Retry

LOADER: Final = "timeball.certify.disasters.poison_kinds:registry"
TAKES_A: Final = "poison.takes-a"
KILLS: Final = "poison.kills"
_LARGE: Final = 50_000_000
_DEEP: Final = 10_000


class _MuteError(Exception):
    """Has no text, not even when it is asked."""

    def __str__(self) -> str:
        raise RuntimeError


def _nested() -> list[Any]:
    inner: list[Any] = []
    for _ in range(_DEEP):
        inner = [inner]
    return inner


def _raises(text: Callable[[], str]) -> Callable[[], Any]:
    def call() -> Any:
        raise PermanentError(text())

    return call


def _mute() -> Any:
    raise _MuteError


VALUES: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        "NUL": lambda: "a\x00b",
        "a lone surrogate": lambda: "\ud800",
        "NaN": lambda: {"ratio": math.nan},
        "an endless number": lambda: 10**400_000,
        "bytes": lambda: b"\xff",
        "50 MB": lambda: "x" * _LARGE,
        "10,000 lists in each other": _nested,
    }
)
"""What cannot be stored, as an argument or as a result."""

TEXTS: Final = ("NUL", "a lone surrogate", "50 MB")
"""Those that are texts: what can be raised, said and a key as well."""

RETURNED: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {f"returns {what}": value for what, value in VALUES.items()}
)
RAISED: Final[Mapping[str, Callable[[], Any]]] = MappingProxyType(
    {
        **{f"raises {what}": _raises(VALUES[what]) for what in TEXTS},
        "raises what has no text": _mute,
        "exits": lambda: sys.exit(3),
    }
)
SAID: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {f"says {what}": VALUES[what] for what in TEXTS}
)


def name_of(what: str) -> str:
    """Return the kind of a job that does so."""
    return f"poison.{what.replace(' ', '-')}"


def registry(_target: str) -> Registry:
    """Return the kinds."""
    kinds = Registry()
    for what, call in {**RETURNED, **RAISED}.items():
        kinds.job(name=name_of(what), retry=Retry(0))(_job(call))
    for what, text in SAID.items():
        kinds.job(name=name_of(what), retry=Retry(0))(_says(text))

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


def _says(text: Callable[[], str]) -> Callable[[Context], Any]:
    """Return a function that says a text in each way there is, and then fails."""

    def run(context: Context) -> Any:
        context.log(text())
        context.progress(1, None, text())
        context.progress(math.nan)
        raise PermanentError("said")

    return run
