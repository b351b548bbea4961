"""Copies of modules of this package, with a defect put in or with modelled locks.

A copy is made from the source, perhaps with some of it replaced, and finds copies of the other
chosen modules, and substitutes for modules of the standard library, where it imports them. The
package itself is not touched, so there is nothing to restore.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader
from textwrap import dedent, indent
from types import CodeType, ModuleType
from typing import Any


class Drift(Exception):
    """A patch does not fit the code any more: its pattern is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of the code of one function."""

    module: str
    function: str
    """Qualified name: `Agenda.finish`."""

    old: str
    """Statements, or one expression, that the function has exactly once; layout does not count."""

    new: str

    def apply(self, source: str) -> str:
        """Return `source` with the change made, on as few lines as possible.

        Raises:
            Drift: The function, or the pattern in it, is not there exactly once.
        """
        owner = self._function(ast.parse(source))
        spans = [*self._spans(owner)]
        if len(spans) != 1:
            place = f"{self.module}.{self.function}"
            raise Drift(f"{place} has {len(spans)} times what must be there once:\n{self.old}")
        first, last = spans[0]
        lines = source.splitlines(keepends=True)
        head = lines[first.lineno - 1].encode()[: first.col_offset].decode()
        tail = lines[(last.end_lineno or 0) - 1].encode()[last.end_col_offset or 0 :].decode()
        new = dedent(self.new).strip()
        if not head.strip():
            new = indent(new, head).removeprefix(head)
        return "".join(
            [*lines[: first.lineno - 1], head, new, tail, *lines[last.end_lineno or 0 :]]
        )

    def _function(self, tree: ast.Module) -> ast.AST:
        owner: ast.AST = tree
        for name in self.function.split("."):
            found = [
                node
                for node in ast.iter_child_nodes(owner)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                and node.name == name
            ]
            if len(found) != 1:
                raise Drift(f"{self.module} has {len(found)} times {self.function}")
            owner = found[0]
        return owner

    def _spans(self, owner: ast.AST) -> Iterator[tuple[Any, Any]]:
        pattern = ast.parse(dedent(self.old).strip()).body
        if len(pattern) == 1 and isinstance(pattern[0], ast.Expr):
            wanted = ast.dump(pattern[0].value)
            for node in ast.walk(owner):
                if isinstance(node, ast.expr) and ast.dump(node) == wanted:
                    yield node, node
            return
        statements = [ast.dump(statement) for statement in pattern]
        for block in _blocks(owner):
            for at in range(len(block) - len(statements) + 1):
                part = block[at : at + len(statements)]
                if [ast.dump(statement) for statement in part] == statements:
                    yield part[0], part[-1]


def _blocks(owner: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(owner):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, [])
            if isinstance(block, list):
                yield block


class Overlay:
    """Copies of some modules, made when they are asked for.

    Args:
        modules: Their names. Copies import copies of each other.
        patches: Changes of their code; of several in one module each sees those before.
        substitutes: What they find in place of other modules.
        label: Shown in front of the names of changed files.
    """

    def __init__(
        self,
        modules: Iterable[str],
        *,
        patches: Sequence[Patch] = (),
        substitutes: Mapping[str, ModuleType] | None = None,
        label: str = "patched",
    ) -> None:
        self._names = frozenset(modules)
        self._patches = patches
        self._found: dict[str, ModuleType] = dict(substitutes or {})
        self._label = label
        self.files: dict[str, str] = {}
        """Of each module that was copied, the name of its file in tracebacks and schedules."""
        unknown = {patch.module for patch in patches} - self._names
        assert not unknown, f"patches of modules that are not copied: {unknown}"

    def __getitem__(self, name: str) -> ModuleType:
        """Return the copy of a module."""
        if name not in self._found:
            assert name in self._names, f"{name} is not among the copied modules"
            self._found[name] = module = ModuleType(name)
            source = _Source(name, [p for p in self._patches if p.module == name], self._label)
            self.files[name] = source.file
            module.__dict__.update(
                __builtins__={**vars(builtins), "__import__": self._import}, __loader__=source
            )
            source.exec_module(module)
            linecache.lazycache(source.file, vars(module))
        return self._found[name]

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        assert level == 0, "relative imports are not used in this package"
        if name in self._found or name in self._names:
            assert fromlist or "." not in name, f"write: from … import, of {name}"
            return self[name]
        for part in fromlist or ():
            if f"{name}.{part}" in self._names:
                raise ImportError(f"write: from {name}.{part} import …")
        return __import__(name, globals, locals, fromlist or (), level)


class _Source(InspectLoader):
    """The source of one module with its patches."""

    def __init__(self, name: str, patches: Sequence[Patch], label: str) -> None:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        # First the original, so that nothing is imported for the first time from within a copy.
        importlib.import_module(name)
        self._text = importlib.util.decode_source(
            spec.loader.get_data(spec.origin)  # type: ignore[union-attr] # a loader of files
        )
        self.file = f"<{label}>/{name.replace('.', '/')}.py" if patches else spec.origin
        for patch in patches:
            self._text = patch.apply(self._text)

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._text, self.file)
