"""Properties of the code itself: small numbers, held without exception.

What has to be an exception is named in one of the lists below, with its reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "timeball"

FILE_LINES_MAX = 400
BODY_LINES_MAX = 40
NESTING_MAX = 3
COMMENT_SHARE_MAX = 0.08
COMMENT_LINES_FREE = 2  # a share means little in a short file
CLOCK_PLACES_MAX = 2

# Where the wall clock is read and dice are thrown: file of the package -> why there.
CLOCK_AND_DICE = {
    "chance.py": "the one place for both, so that everything else is handed them",
}
# Where foreign code runs, whatever it may raise: file of the package -> whose code it is.
CATCH_ALL = {
    "action/minder.py": "a forked copy of the process must end there, whatever happened",
    "action/python.py": "a job's own function, and the exceptions it makes",
    "certify/peers/adapters/host.py": "a product of somebody else's, whatever it raises",
    "certify/peers/comparison.py": "a probe of a product, whatever that does to it",
    "certify/mutants/matrix.py": "a probe, whatever the defect that is put in does to it",
    "cli/certify.py": "the harness itself, whose failure is no broken promise",
    "certify/runner.py": "a scenario, whatever the fault that it causes does to it",
    "action/registry.py": "a module of the user's, while it is imported",
    "engine/calls.py": "what was submitted, whatever it raises",
    "engine/process_child.py": "a job's own function, and the objects that it takes and returns",
    "engine/processes.py": "an object's own word on how it is pickled",
    "store/postgres/sealing.py": "what a program brings to seal payloads with",
}
# Where parts of SQL stand that others are replaced by, to put defects in.
SQL_OF_DEFECTS = re.compile(r"certify/mutants/\w+_defects\.py")
# Where data may become objects and code: file of the package -> whose data it is.
UNSAFE_PLACES = {
    "engine/process_child.py": "what its own parent writes into a pipe that nobody else holds",
    "engine/processes.py": "what its own child writes into a pipe that nobody else holds",
}

VAGUE_NAMES = re.compile(r"base_.*|common|helpers?|managers?|misc|utils?")
UNSAFE_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = re.compile(
    r"(?:builtins\.)?(?:eval|exec)|yaml\.(?:unsafe_)?load|os\.(?:system|popen)"
)
CLOCK_CALLS = re.compile(
    r"time\.time(?:_ns)?|(?:.+\.)?(?:date|datetime|Instant|ZonedDateTime)\.(?:now|utcnow|today)"
)
SQL_TEXT = re.compile(
    r"\s*(?:INSERT INTO|DELETE FROM|(?:SELECT|UPDATE|WITH|CREATE|ALTER|DROP|TRUNCATE|LISTEN|NOTIFY"
    r"|LOCK|COPY|GRANT|REVOKE|SET) +[\w\"{(*])|.*\b(?:SELECT|DELETE)\b.+\bFROM\b",
    re.DOTALL,
)
# A bracket around one letter keeps these two patterns from finding themselves.
LEFT_OVERS = re.compile(r"\b(?:TOD[O]|FIXM[E])\b")
INSTALL_SOURCES = re.compile(
    r"--(?:extra-)?index-ur[l]|--find-link[s]|--trusted-hos[t]"
    r"|\b(?:pyp[i]|pythonhoste[d]|npmj[s]|docke[r]|ghc[r]|qua[y]|crate[s])\.(?:org|com|io)\b"
)
HIDDEN_HOME = re.compile(r"/[r]oot/\.\w")
# Folders that any machine has; a checkout may lie directly in one, and a text may name it.
ORDINARY_FOLDERS = {"/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/var"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Block = ast.If | Loop | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match


@dataclass(frozen=True)
class Source:
    """One Python file, parsed once."""

    path: Path
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Source:
        text = path.read_text(encoding="utf-8")
        return cls(path, text, ast.parse(text))

    @property
    def name(self) -> str:
        """The path as the lists above give it: within the package where it is in there."""
        return self.path.relative_to(PACKAGE if self.in_package else ROOT).as_posix()

    @property
    def in_package(self) -> bool:
        return self.path.is_relative_to(PACKAGE)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in statements(self.tree.body) if isinstance(node, Function)]


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every statement, also the nested ones; far fewer than all nodes of the tree."""
    for node in body:
        yield node
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, name, [])
            yield from statements(inner if isinstance(inner, list) else [])


def read(*folders: str) -> list[Source]:
    return [Source.read(path) for name in folders for path in sorted((ROOT / name).rglob("*.py"))]


def tracked_texts() -> list[Path]:
    """Every text file that git would ship; outside a git checkout, what looks like one."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = [name for name in listing.stdout.decode().split("\0") if name]
    found = [ROOT / name for name in names] or [
        path for name in ("src", "tests", "docs", "examples") for path in (ROOT / name).rglob("*.*")
    ]
    return [path for path in found if path.is_file() and b"\0" not in path.read_bytes()]


@cache
def code() -> list[Source]:
    return read("src", "tests", "examples", "bench")


def product() -> list[Source]:
    return [source for source in code() if source.in_package]


Thing = TypeVar("Thing", Path, Source)


def each(
    things: Callable[[], Iterable[Thing]],
) -> Callable[[Callable[[Thing], None]], Callable[[], None]]:
    """One test of all of them, for there are thousands; its failure names each that is wrong."""

    def decorate(law: Callable[[Thing], None]) -> Callable[[], None]:
        def test() -> None:
            wrong = []
            for thing in things():
                try:
                    law(thing)
                except AssertionError as error:
                    path = thing if isinstance(thing, Path) else thing.path
                    wrong.append(f"{path.relative_to(ROOT)}: {error}")
            if wrong:
                pytest.fail("\n".join(wrong), pytrace=False)

        return test

    return decorate


every_file = each(code)
every_module = each(product)


# Size ---------------------------------------------------------------------------------------


@every_file
def test_a_file_is_read_in_one_go(source: Source) -> None:
    assert len(source.text.splitlines()) <= FILE_LINES_MAX


@every_file
def test_a_function_fits_on_a_screen(source: Source) -> None:
    assert [f.name for f in source.functions if body_lines(f) > BODY_LINES_MAX] == []


@every_file
def test_a_thought_is_at_most_three_blocks_deep(source: Source) -> None:
    assert [f.name for f in source.functions if depth(f.body) > NESTING_MAX] == []


@every_module
def test_comments_stay_rare_enough_to_be_read(source: Source) -> None:
    lines = source.text.splitlines()
    comments = sum(line.lstrip().startswith("#") for line in lines)
    assert comments <= max(COMMENT_LINES_FREE, COMMENT_SHARE_MAX * len(lines))


def body_lines(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function, clean=False) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def depth(body: list[ast.stmt]) -> int:
    """How deep blocks are nested; an `elif` counts as its `if`, a nested function for itself."""
    return max((1 + inner_depth(block) for block in body if isinstance(block, Block)), default=0)


def inner_depth(block: Block) -> int:
    if isinstance(block, ast.Match):
        return max(depth(case.body) for case in block.cases)
    bodies = [block.body, getattr(block, "orelse", []), getattr(block, "finalbody", [])]
    bodies += [handler.body for handler in getattr(block, "handlers", [])]
    otherwise = bodies[1]
    if isinstance(block, ast.If) and len(otherwise) == 1 and isinstance(otherwise[0], ast.If):
        bodies[1] = []
        return max(inner_depth(otherwise[0]), *map(depth, bodies))
    return max(map(depth, bodies))


# Names and prose ----------------------------------------------------------------------------


@every_file
def test_a_name_says_what_is_inside(source: Source) -> None:
    parts = [source.path.stem, *Path(source.name).parent.parts]
    assert not any(VAGUE_NAMES.fullmatch(part) for part in parts)


@every_module
def test_a_module_says_what_it_is_for(source: Source) -> None:
    assert source.text == "" or ast.get_docstring(source.tree)


@every_module
def test_a_public_function_says_what_it_gives(source: Source) -> None:
    public = [f for f in source.tree.body if isinstance(f, Function) and f.name[0] != "_"]
    assert [f.name for f in public if not ast.get_docstring(f)] == []


@every_file
def test_nothing_is_left_for_later(source: Source) -> None:
    assert LEFT_OVERS.findall(source.text) == []


# What may be used ---------------------------------------------------------------------------


@every_module
def test_sql_lives_in_sql_files(source: Source) -> None:
    found = [text for text in strings(source) if SQL_TEXT.match(text)]
    assert found == [] or SQL_OF_DEFECTS.fullmatch(source.name)


@every_module
def test_nothing_turns_data_into_code(source: Source) -> None:
    unsafe = UNSAFE_MODULES & set(imported(source))
    assert unsafe == ({"pickle"} if source.name in UNSAFE_PLACES else set())
    assert [name for name in dotted_names(source) if UNSAFE_CALLS.fullmatch(name)] == []


@every_module
def test_clock_and_dice_are_arguments(source: Source) -> None:
    assert reads_clock_or_dice(source) == (source.name in CLOCK_AND_DICE)


def test_clock_and_dice_have_two_places_at_most() -> None:
    assert len(CLOCK_AND_DICE) <= CLOCK_PLACES_MAX


@every_module
def test_all_is_caught_only_around_foreign_code(source: Source) -> None:
    assert catches_all(source) == (source.name in CATCH_ALL)


def test_the_lists_of_exceptions_name_files_that_exist() -> None:
    names = {source.name for source in product()}
    assert (CLOCK_AND_DICE.keys() | CATCH_ALL.keys() | UNSAFE_PLACES.keys()) - names == set()


def strings(source: Source) -> list[str]:
    """Every string of a file except its docstrings; of an f-string, the fixed parts."""
    owners = [n for n in source.nodes if isinstance(n, ast.Module | ast.ClassDef | Function)]
    prose = [n.body[0].value for n in owners if ast.get_docstring(n, clean=False) is not None]
    texts = [n for n in source.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [n.value for n in texts if n not in prose]


def imported(source: Source) -> Iterator[str]:
    """The top-level packages that a file imports."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def dotted_names(source: Source) -> Iterator[str]:
    """Every plain name and every `a.b.c` of a file, and `a.b` for `from a import b`."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            yield dotted(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text; what is no plain name is left out, as in `.c` for `f().c`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def reads_clock_or_dice(source: Source) -> bool:
    return "random" in imported(source) or any(map(CLOCK_CALLS.fullmatch, dotted_names(source)))


def catches_all(source: Source) -> bool:
    """Whether any exception at all ends in a handler; one that is raised again does not."""
    handlers = [node for node in source.nodes if isinstance(node, ast.ExceptHandler)]
    final = [h for h in handlers if not (isinstance(h.body[-1], ast.Raise) and not h.body[-1].exc)]
    kinds = [ast.unparse(handler.type) if handler.type else "" for handler in final]
    return any(re.fullmatch(r"|.*\b(?:Base)?Exception\b.*", kind) for kind in kinds)


# The machine it was written on --------------------------------------------------------------


@each(tracked_texts)
def test_nothing_tells_where_it_was_written_or_installed_from(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    own = {str(ROOT), str(ROOT.parent), str(Path.home())} - ORDINARY_FOLDERS
    assert [folder for folder in own if f"{folder}/" in text or f"{folder}\n" in text] == []
    assert HIDDEN_HOME.findall(text) == []
    assert INSTALL_SOURCES.findall(text) == []
