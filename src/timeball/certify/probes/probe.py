"""What a probe is: a small attack whose outcome is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timeball.certify.overlay import Overlay
from timeball.certify.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One attack on a database of its own. It is the check that mutants name."""

    name: str
    """In words: what must hold."""

    run: Callable[[Stage], Any]
    """Returns what was seen; JSON values."""

    expected: Any
    """What must be seen, exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeProbe:
    """One attack on copies of some modules, without a database."""

    name: str
    modules: tuple[str, ...]
    """What is copied, so that a defect can be put in."""

    run: Callable[[Overlay], Any]
    expected: Any
