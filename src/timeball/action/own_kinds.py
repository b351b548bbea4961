"""The kinds that Timeball brings itself, and which of them a worker serves."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from timeball.action.kind import Kind
from timeball.action.registry import Registry

_HOMES: Final = {
    "timeball.http": "http_kind",
    "timeball.command": "own_command",
    "timeball.sql": "sql_kind",
    "timeball.graph": "graph_kind",
    "timeball.callback": "callback_kind",
}
"""By name, the module of this package that defines it as `KIND`, loaded when it is needed."""


def own_kind(name: str) -> Kind | None:
    """Return the kind of Timeball's own with that name; None if there is none."""
    if name not in _HOMES:
        return None
    found = import_module(f"timeball.action.{_HOMES[name]}").KIND
    assert isinstance(found, Kind)
    return found


def serve(registry: Registry) -> None:
    """Add the kinds of our own that can be carried out here.

    Raises:
        UsageError: What the environment allows them cannot be read.
    """
    for name, module in _HOMES.items():
        kind = own_kind(name)
        if kind is not None and import_module(f"timeball.action.{module}").usable():
            registry.add(kind)
