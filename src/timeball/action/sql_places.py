"""The placeholders of a statement, as PostgreSQL itself numbers them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from timeball.errors import UsageError

_PLACE: Final = re.compile(r"%(?:%|s|\(([^)]+)\)s|)", re.DOTALL)


def placed(
    statement: str, params: Sequence[Any] | Mapping[str, Any] | None
) -> tuple[str, Sequence[Any]]:
    """Return a statement with ``$1``, ``$2`` … for its placeholders, and their values in order.

    Raises:
        UsageError: They do not fit each other.
    """
    if not params:  # a percent sign is nothing but that
        return statement, ()
    places = _Places(params)
    text = _PLACE.sub(places.number, statement)
    if not isinstance(params, Mapping) and len(places.values) != len(params):
        raise UsageError(f"params has {len(params)} values for {len(places.values)} %s")
    return text, places.values


class _Places:
    """Numbers placeholders as they come."""

    def __init__(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        self.values: list[Any] = []
        self._params = params
        self._numbers: dict[str, int] = {}

    def number(self, found: re.Match[str]) -> str:
        """Return what stands for a placeholder."""
        match found[0]:
            case "%%":
                return "%"
            case "%":
                raise UsageError("a lone % in a statement that has params: write %%")
        if isinstance(self._params, Mapping):
            return f"${self._named(self._params, found[1])}"
        if found[1] is not None or len(self.values) == len(self._params):
            raise UsageError("params is a list: write as many %s as it has values")
        self.values.append(self._params[len(self.values)])
        return f"${len(self.values)}"

    def _named(self, params: Mapping[str, Any], name: str | None) -> int:
        if name is None or name not in params:
            raise UsageError(f"params is a table without {name!r}: write its names as %(name)s")
        if name not in self._numbers:
            self.values.append(params[name])
            self._numbers[name] = len(self.values)
        return self._numbers[name]
