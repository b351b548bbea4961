"""The ways in which a defect is put into the durable product, from outside, and taken out again.

What is replaced must be there exactly once, or the defect has drifted from the code and says so.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, LiteralString, Protocol

from timeball.action import command
from timeball.certify.boot import Boot
from timeball.certify.overlay import Drift, Overlay, Patch
from timeball.store.postgres import connections

_PATIENCE: Final = "KILL_PATIENCE_S, TICK_S = 0.5"


class Defect(Protocol):
    """One change."""

    def put_in(self, connection: Any) -> Any:
        """Return a context in which the change is made.

        Args:
            connection: To the database of one probe, in autocommit mode; it is dropped afterwards.
        """
        ...


@dataclass(frozen=True, slots=True)
class InFunction:
    """Some text of one function of the database is replaced."""

    function: str
    old: str
    new: str
    more: tuple[tuple[str, str], ...] = ()
    """Other replacements in the same function: (old, new)."""

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        connection.execute(self.changed())
        yield

    def changed(self) -> str:
        """Return the function with the defect.

        Raises:
            Drift: The text is not there exactly once.
        """
        path = files("timeball.store.postgres") / "functions" / f"{self.function}.sql"
        text = path.read_text("utf-8")
        for old, new in ((self.old, self.new), *self.more):
            text = replaced(text, old, new, self.function)
        return text


@dataclass(frozen=True, slots=True)
class InSchema:
    """A statement changes the schema once it is migrated."""

    statement: str

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        connection.execute(self.statement)
        yield


@dataclass(frozen=True, slots=True)
class InStatement:
    """Some text of one of the store's named statements is replaced, in this process."""

    name: str
    old: str
    new: str

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        plain, text = connections.in_schema, self.text()
        changed = replaced(text, self.old, self.new, self.name)

        def in_schema(given: str, schema: str) -> LiteralString:
            return plain(changed if given == text else given, schema)

        connections.statement.cache_clear()
        try:
            with _attribute(connections, "in_schema", in_schema):
                yield
        finally:
            connections.statement.cache_clear()

    def text(self) -> str:
        """Return the statement as it is."""
        path = files("timeball.store.postgres") / "sql" / f"{self.name}.sql"
        return path.read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Instead:
    """A function of this process is replaced."""

    module: str
    name: str
    """Qualified: `PostgresStore.counts`."""

    by: Callable[..., Any]

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        owner, name = _owner(self.module, self.name)
        with _attribute(owner, name, self.by):
            yield


@dataclass(frozen=True, slots=True)
class InCode:
    """Some code of one function of this process is replaced."""

    patch: Patch

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        copies = Overlay([self.patch.module], patches=[self.patch], label="defect")
        changed: Any = copies[self.patch.module]
        for part in self.patch.function.split("."):
            changed = getattr(changed, part)
        owner, name = _owner(self.patch.module, self.patch.function)
        with _attribute(owner, name, changed):
            yield


@dataclass(frozen=True, slots=True)
class Planted:
    """Processes that a probe starts are changed when they begin."""

    boot: Boot

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`: the stage was given the change."""
        yield


@dataclass(frozen=True, slots=True)
class InMinder:
    """Some text of the program that minds a command is replaced; it does not wait for long then."""

    old: str
    new: str

    @contextmanager
    def put_in(self, connection: Any) -> Iterator[None]:
        """See `Defect.put_in`."""
        path = Path(command._MINDER[-1])  # noqa: SLF001 - from outside
        text = replaced(path.read_text("utf-8"), self.old, self.new, path.name)
        text = replaced(text, "KILL_PATIENCE_S, TICK_S = 10.0", _PATIENCE, path.name)
        with tempfile.TemporaryDirectory(prefix="timeball-minder-") as folder:
            changed = Path(folder, path.name)
            changed.write_text(text, "utf-8")
            words = (*command._MINDER[:-1], str(changed))  # noqa: SLF001
            with _attribute(command, "_MINDER", words):
                yield


def replaced(text: str, old: str, new: str, name: str) -> str:
    """Return `text` with `new` in the place of `old`, whatever the layout.

    Raises:
        Drift: It is not there exactly once.
    """
    pattern = re.compile(r"\s+".join(re.escape(word) for word in old.split()))
    found = pattern.findall(text)
    if len(found) != 1:
        raise Drift(f"{name} has {len(found)} times what must be there once:\n{old}")
    return text.replace(found[0], new)


def _owner(module: str, name: str) -> tuple[Any, str]:
    """Return what has a function, and under which name; of a method the class that defines it.

    Raises:
        Drift: Nobody has.
    """
    *path, last = name.split(".")
    owner: Any = import_module(module)
    for part in path:
        owner = getattr(owner, part)
    for each in getattr(owner, "__mro__", [owner]):
        if last in vars(each):
            return each, last
    raise Drift(f"{module} has no {name}")


@contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
