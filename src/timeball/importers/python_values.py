"""What expressions of a Python file stand for, as far as that is certain without running it.

Known are literals, arithmetic, containers, `dict(...)`, `timedelta(...)`, zones, names with one
value and the variables of loops over what is known. All else is a `UsageError` that says what is
not known and on which line; nothing is guessed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.errors import UsageError
from timeball.importers.python_source import PythonSource

_DEPTH_MAX: Final = 50
_STEPS_MAX: Final = 200_000
_ELEMENTS_MAX: Final = 2_000
_NUMBER_MAX: Final = 10**15
_UNKNOWN: Final = ast.Constant(value=...)
_ARITHMETIC: Final[Mapping[type, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
    }
)
_ZONE_CALLS: Final = frozenset(
    {"zoneinfo.ZoneInfo", "pytz.timezone", "dateutil.tz.gettz", "backports.zoneinfo.ZoneInfo"}
)
_UTC_NAMES: Final = frozenset(
    {"pytz.utc", "pytz.UTC", "datetime.UTC", "datetime.timezone.utc", "django.utils.timezone.utc"}
)
_MOMENTS: Final[Mapping[str, type]] = MappingProxyType(
    {"datetime.timedelta": timedelta, "datetime.datetime": datetime, "datetime.date": date}
)


class Pair(NamedTuple):
    """One entry of a dictionary."""

    key: str
    value: ast.expr
    line: int


@dataclass(frozen=True, slots=True)
class Scope:
    """A file, and what the variables of the loops around a place stand for there."""

    source: PythonSource
    names: Mapping[str, ast.expr] = field(default_factory=dict)

    def unknown(self, node: ast.expr) -> UsageError:
        """Return the error that a value is known only when the program runs."""
        return UsageError(
            f"`{self.source.text_of(node)}` has a value only when the program runs: write it out"
        )

    def resolve(self, node: ast.expr, depth: int = 0) -> ast.expr:
        """Return the expression that a name, or an entry of something known, stands for."""
        match node:
            case _ if depth > _DEPTH_MAX:
                return node
            case ast.Name(id=name) if name in self.names:
                bound = self.names[name]
                return node if bound is _UNKNOWN else self.resolve(bound, depth + 1)
            case ast.Name(id=name) if name in self.source.constants:
                return self.resolve(self.source.constants[name], depth + 1)
            case ast.Subscript(value=inner, slice=index):
                found = self._entry(self.resolve(inner, depth + 1), index)
                return node if found is None else self.resolve(found, depth + 1)
        return node

    def dotted(self, node: ast.AST) -> str:
        """Return the full name that is meant, such as ``datetime.timedelta``; "" if it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.source.imports.get(node.id, node.id))
        return ".".join(reversed(parts))

    def literal(self, node: ast.expr, depth: int = 0) -> Any:
        """Return the value of an expression.

        Raises:
            UsageError: It is not known.
        """
        node = self.resolve(node)
        if depth > _DEPTH_MAX:
            raise self.unknown(node)
        match node:
            case ast.Constant(value=value) if value is not ...:
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self.literal(each, depth + 1) for each in items]
            case ast.Dict():
                return {each.key: self.literal(each.value, depth + 1) for each in self.pairs(node)}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._computed(operator.sub, 0, self.literal(operand, depth + 1), node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                both = self.literal(left, depth + 1), self.literal(right, depth + 1)
                return self._computed(_ARITHMETIC[type(op)], *both, node)
            case ast.Call():
                return self._called(node, depth)
        raise self.unknown(node)

    def pairs(self, node: ast.expr, depth: int = 0) -> list[Pair]:
        """Return the entries of a dictionary whose keys are known.

        Raises:
            UsageError: It is none, or one of its keys is not known.
        """
        node = self.resolve(node)
        if depth > _DEPTH_MAX:
            raise self.unknown(node)
        match node:
            case ast.Dict(keys=keys, values=values):
                parts = (
                    self.pairs(value, depth + 1)
                    if key is None
                    else [Pair(str(self.literal(key)), value, key.lineno)]
                    for key, value in zip(keys, values, strict=True)
                )
                return [pair for part in parts for pair in part]
            case ast.Call(func=ast.Name(id="dict"), args=args):
                own = [pair for each in args for pair in self.pairs(each, depth + 1)]
                return own + self.keywords(node, depth + 1)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.pairs(left, depth + 1) + self.pairs(right, depth + 1)
        raise self.unknown(node)

    def keywords(self, call: ast.Call, depth: int = 0) -> list[Pair]:
        """Return the arguments of a call that are given by name, those of ``**`` too.

        Raises:
            UsageError: The names are not known.
        """
        found: list[Pair] = []
        for each in call.keywords:
            if each.arg is None:
                found += self.pairs(each.value, depth + 1)
            else:
                found.append(Pair(each.arg, each.value, each.value.lineno))
        return found

    def zone(self, node: ast.expr) -> str | None:
        """Return the name of a time zone, None where the program takes the machine's.

        Raises:
            UsageError: It is not known.
        """
        node = self.resolve(node)
        if self.dotted(node) in _UTC_NAMES:
            return "UTC"
        if isinstance(node, ast.Call):
            name = self.dotted(node.func)
            if name.endswith("get_localzone") or name == "dateutil.tz.tzlocal":
                return None
            if name in _ZONE_CALLS and node.args:
                return str(self.literal(node.args[0]))
        value = self.literal(node)
        if value is None or isinstance(value, str):
            return value
        raise self.unknown(node)

    def inside(self, target: ast.expr, element: ast.expr) -> Scope:
        """Return the scope of a loop's body for one element."""
        return Scope(self.source, {**self.names, **dict(self._binds(target, element))})

    def elements(self, node: ast.expr) -> list[ast.expr] | None:
        """Return what a loop goes over; None if that is not known."""
        match self.resolve(node):
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return None if any(isinstance(each, ast.Starred) for each in items) else items
            case ast.Call(func=ast.Attribute(value=table, attr="items"), args=[]):
                found = self.resolve(table)
                if isinstance(found, ast.Dict) and None not in found.keys:
                    return [
                        ast.copy_location(ast.Tuple(elts=[key, value], ctx=ast.Load()), key)
                        for key, value in zip(found.keys, found.values, strict=True)
                        if key is not None
                    ]
        return None

    def _binds(self, target: ast.expr, element: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        if isinstance(target, ast.Name):
            yield target.id, element
            return
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        values = self.elements(element) if element is not _UNKNOWN else None
        if values is None or len(values) != len(names):
            values = [_UNKNOWN] * len(names)
        for each, value in zip(names, values, strict=True):
            yield from self._binds(each, value)

    def _entry(self, node: ast.expr, index: ast.expr) -> ast.expr | None:
        match node, index:
            case ast.Dict(keys=keys, values=values), ast.Constant(value=wanted):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == wanted:
                        return value
            case ast.List(elts=items) | ast.Tuple(elts=items), ast.Constant(value=int() as at):
                return items[at] if -len(items) <= at < len(items) else None
        return None

    def _computed(
        self, function: Callable[[Any, Any], Any], left: Any, right: Any, node: ast.expr
    ) -> Any:
        """Return the result of arithmetic on numbers, intervals and short texts."""
        texts = isinstance(left, str) and isinstance(right, str) and function is operator.add
        plain = all(
            isinstance(each, timedelta)
            or (isinstance(each, int | float) and abs(each) <= _NUMBER_MAX)
            for each in (left, right)
        )
        if not (plain or texts):
            raise self.unknown(node)
        try:
            return function(left, right)
        except (ArithmeticError, TypeError) as error:
            raise self.unknown(node) from error

    def _called(self, node: ast.Call, depth: int) -> Any:
        kind = _MOMENTS.get(self.dotted(node.func))
        if kind is None:
            if isinstance(node.func, ast.Name) and node.func.id == "dict":
                return {each.key: self.literal(each.value, depth + 1) for each in self.pairs(node)}
            raise self.unknown(node)
        args = [self.literal(each, depth + 1) for each in node.args]
        named = {each.key: self.literal(each.value, depth + 1) for each in self.keywords(node)}
        try:
            return kind(*args, **named)
        except (TypeError, ValueError, OverflowError) as error:
            raise self.unknown(node) from error


def walk(source: PythonSource) -> Iterator[tuple[ast.AST, Scope]]:
    """Give every node in its order, and the scope that it is in; loops over what is known unrolled.

    Raises:
        UsageError: The loops would never end.
    """
    stack: list[tuple[ast.AST, Scope]] = [(source.tree, Scope(source))]
    steps = elements = 0
    while stack:
        node, scope = stack.pop()
        steps += 1
        if steps > _STEPS_MAX or elements > _ELEMENTS_MAX:
            raise UsageError("its loops are too long to follow: write the schedules out")
        yield node, scope
        if isinstance(node, ast.For | ast.AsyncFor):
            inner = list(_unrolled(node, scope))
            elements += len(inner)
            stack += reversed(inner)
        else:
            stack += [(each, scope) for each in reversed(list(ast.iter_child_nodes(node)))]


def _unrolled(loop: ast.For | ast.AsyncFor, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    elements = scope.elements(loop.iter)
    for element in [_UNKNOWN] if elements is None else elements:
        inner = scope.inside(loop.target, element)
        yield from ((each, inner) for each in loop.body)
    yield from ((each, scope) for each in loop.orelse)
