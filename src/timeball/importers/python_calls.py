"""Which kind of job a reference to a function means, and with which arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final, NamedTuple

from timeball.errors import UsageError
from timeball.importers.python_values import Scope

_SIGNATURES: Final = frozenset({"s", "si", "subtask", "signature"})
_WHOLE_SIGNATURES: Final = frozenset({"subtask", "signature"})


class Called(NamedTuple):
    """A kind and the expressions of its arguments."""

    kind: str
    arguments: Mapping[str, ast.expr]
    """``args`` and ``kwargs``, where they are given."""


def called_kind(node: ast.expr, scope: Scope, stem: str) -> Called:
    """Return what ``f``, ``"module:f"``, ``f.s(1, a=2)`` or ``signature("f", ...)`` runs.

    Args:
        node: The reference.
        scope: What names mean where it stands.
        stem: The name of its own file as a module.

    Raises:
        UsageError: It is known only when the program runs.
    """
    match node:
        case ast.Constant(value=str() as name):
            return Called(name.replace(":", "."), {})
        case ast.Name() | ast.Attribute():
            return Called(_kind_of(node, scope, stem), {})
        case ast.Call(func=ast.Attribute(value=inner, attr=verb)) if verb in _SIGNATURES:
            called = called_kind(scope.resolve(inner), scope, stem)
            return Called(called.kind, _arguments(node, whole=verb in _WHOLE_SIGNATURES))
        case ast.Call(func=ast.Name(id=verb), args=[first, *rest]) if verb in _WHOLE_SIGNATURES:
            called = called_kind(scope.resolve(first), scope, stem)
            call = ast.Call(func=node.func, args=rest, keywords=node.keywords)
            return Called(called.kind, _arguments(ast.copy_location(call, node), whole=True))
    raise scope.unknown(node)


def local_functions(tree: ast.Module, stem: str) -> dict[str, list[str]]:
    """Return the parameters of the file's own functions, by the names of their kinds.

    A function with ``*args`` is left out: its arguments have no names.
    """
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.args.vararg:
            names = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
            if _is_bound(node):
                names = names[1:]
            found[_given_name(node) or f"{stem}.{node.name}"] = names
    return found


def _kind_of(node: ast.expr, scope: Scope, stem: str) -> str:
    first = node
    while isinstance(first, ast.Attribute):
        first = first.value
    dotted = scope.dotted(node)
    if not isinstance(first, ast.Name) or first.id in scope.names:
        raise scope.unknown(node)
    if first.id in scope.source.imports:
        return dotted
    if isinstance(node, ast.Name):
        return _explicit_name(scope, node.id) or f"{stem}.{dotted}"
    raise UsageError(
        f"`{scope.source.text_of(node)}` belongs to an object: give a function of a module"
    )


def _explicit_name(scope: Scope, function: str) -> str | None:
    for node in scope.source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            return _given_name(node)
    return None


def _given_name(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the name that a decorator gives, as in ``@app.task(name="mail.send")``."""
    for each in decorated_with(function):
        match each:
            case ast.keyword(arg="name", value=ast.Constant(value=str() as name)):
                return name
    return None


def _is_bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        each.arg == "bind" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in decorated_with(function)
    )


def decorated_with(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.keyword]:
    """Return the options of a function's decorators, as in ``@app.task(rate_limit="9/m")``."""
    calls = [each for each in function.decorator_list if isinstance(each, ast.Call)]
    return [option for call in calls for option in call.keywords]


def _arguments(call: ast.Call, *, whole: bool) -> dict[str, ast.expr]:
    """Return what a signature is called with; a whole one has `args` and `kwargs` itself."""
    if whole:
        given = {each.arg: each.value for each in call.keywords if each.arg}
        given |= dict(zip(("args", "kwargs"), call.args, strict=False))
        return {name: given[name] for name in ("args", "kwargs") if name in given}
    found: dict[str, ast.expr] = {}
    if call.args:
        found["args"] = ast.copy_location(ast.List(elts=call.args, ctx=ast.Load()), call)
    if call.keywords:
        keys: list[ast.expr | None] = [
            ast.copy_location(ast.Constant(value=each.arg), call) if each.arg else None
            for each in call.keywords
        ]
        values = [each.value for each in call.keywords]
        found["kwargs"] = ast.copy_location(ast.Dict(keys=keys, values=values), call)
    return found
