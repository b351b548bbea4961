"""The text of a Python file, parsed and never run: its tree, its names, its comments.

The parser is bounded: a file that is too large or nested too deep is refused in words.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from timeball.core.redaction import redacted
from timeball.errors import UsageError

SOURCE_MAX: Final = 1 << 18
"""Characters of a file that is read; its tree takes a hundred times as much memory."""

_SHOWN_MAX: Final = 200
_CHANGES: Final = frozenset(
    {"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault"}
    | {"update"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource:
    """One parsed file."""

    tree: ast.Module
    lines: tuple[str, ...]
    comments: Mapping[int, str]
    """By line, without the mark."""

    imports: Mapping[str, str]
    """What each imported name stands for: ``dt`` for ``datetime``."""

    constants: Mapping[str, ast.expr]
    """Names that have one value in the whole file."""

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """Return what stands in the file, on one line, cut and redacted."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        part = list(self.lines[first : last + 1])
        # Offsets count bytes; the end first, because both may be on one line.
        part[-1] = part[-1].encode()[: node.end_col_offset].decode(errors="ignore")
        part[0] = part[0].encode()[node.col_offset :].decode(errors="ignore")
        text = redacted(" ".join(" ".join(part).split()))
        return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"

    def comment_at(self, first: int, last: int) -> str:
        """Return the comments on these lines and in the block directly above them."""
        above = first - 1
        while above in self.comments and self.lines[above - 1].lstrip().startswith("#"):
            above -= 1
        said = [self.comments[line] for line in range(above + 1, last + 1) if line in self.comments]
        return redacted("\n".join(said))


def read_python(text: str) -> PythonSource:
    """Return a file as it is written.

    Raises:
        UsageError: It is no Python, or no program that a person would write.
    """
    if len(text) > SOURCE_MAX:
        raise UsageError(f"it is longer than {SOURCE_MAX:,} characters: move the schedules out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong escape in a string is its author's business
            tree = ast.parse(text)
    except SyntaxError as error:
        raise UsageError(f"line {error.lineno}: it is not Python: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise UsageError("it is nested too deep: write the schedules as plain values") from error
    except ValueError as error:
        raise UsageError(f"it is not Python: {error}") from error
    return PythonSource(
        tree=tree,
        lines=tuple(text.split("\n")),
        comments=dict(_comments(text)),
        imports=dict(_imports(tree)),
        constants=_constants(tree),
    )


def _comments(text: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("#! \t").rstrip()
    except (tokenize.TokenError, SyntaxError):
        return  # the parser was content; comments are for people


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield (
                        each.asname or each.name.split(".")[0],
                        (each.name if each.asname else each.name.split(".")[0]),
                    )
            case ast.ImportFrom(module=module, names=names, level=level):
                start = "." * level + (module or "")
                for each in names:
                    dot = "" if start.endswith(".") or not start else "."
                    yield each.asname or each.name, f"{start}{dot}{each.name}".lstrip(".")


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    bindings, values, changed = Counter[str](), dict[str, ast.expr](), set[str]()
    for node in ast.walk(tree):
        bindings.update(_bound(node))
        changed.update(_changed(node))
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
    return {
        name: value for name, value in values.items() if bindings[name] == 1 and name not in changed
    }


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a node gives a value to; an augmented assignment counts too."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.arg(arg=name) | ast.ExceptHandler(name=str() as name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [each.asname or each.name.split(".")[0] for each in names]
    return []


def _changed(node: ast.AST) -> list[str]:
    """Return the names whose value a node changes in place."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=verb)) if verb in _CHANGES:
            return [name]
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return [name]
    return []
