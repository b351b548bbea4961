"""A job as a value: what `http`, `command` and `sql` make, and what every submit takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from timeball.action.kind import Kind
from timeball.core.redaction import redacted_value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobCall:
    """A kind with the arguments of one job, checked.

    Give it to `submit` or `schedule` in place of a function. Options of the submit win over the
    value's own.
    """

    kind: Kind
    args: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = redacted_value("", self.args)
        given = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{self.kind.name}({given})"
