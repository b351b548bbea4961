"""What runs of `timeball certify` have left in a folder: read with bounds, whatever is in it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from timeball.certify.results import Exit
from timeball.certify.scenario import Profile, Status
from timeball.errors import UsageError

FILE: Final = "results.json"
RUNS_MAX: Final = 20
"""Runs that are read: the newest, by when their files were written."""

SIZE_MAX: Final = 4 * 1024 * 1024
"""Bytes of a file that is read."""

_FOLDERS_MAX: Final = 2_000
_WORDS: Final = frozenset(code.name.lower() for code in Exit)


class Found(BaseModel):
    """One thing that a scenario has checked."""

    model_config = ConfigDict(extra="ignore")

    name: str
    holds: bool
    text: str = ""


class Played(BaseModel):
    """One scenario of a run."""

    model_config = ConfigDict(extra="ignore")

    title: str
    status: Status
    reason: str
    invariants: list[str]
    witness: dict[str, int]
    """How often each fault was met."""

    checks: list[Found]
    expected: dict[str, Any]
    observed: dict[str, Any]
    wall_s: FiniteFloat
    replay: str

    @property
    def differing(self) -> list[str]:
        """The names of what was seen otherwise than it must be."""
        names = self.expected.keys() | self.observed.keys()
        return sorted(n for n in names if self.expected.get(n) != self.observed.get(n))


class _Product(BaseModel):
    version: str


class _Mutants(BaseModel):
    total: int
    killed: int


class Run(BaseModel):
    """One run, as its file tells of it."""

    model_config = ConfigDict(extra="ignore")

    product: _Product
    at: str
    """When it began: an instant in UTC, as ISO 8601 writes it."""

    profile: Profile
    seed: int
    verdict: str = Field(pattern=f"^({'|'.join(sorted(_WORDS))})$")
    scenarios: dict[str, Played]
    mutants: _Mutants | None = None
    folder: str = ""

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many scenarios ended how."""
        return Counter(each.status for each in self.scenarios.values())

    @property
    def wall_s(self) -> float:
        """How long all scenarios took together, in seconds."""
        return sum(each.wall_s for each in self.scenarios.values())

    @property
    def worst_first(self) -> list[tuple[str, Played]]:
        """Its scenarios: first those that are no good, else as they were played."""
        fine = {Status.PASSED, Status.SKIPPED}
        return sorted(self.scenarios.items(), key=lambda pair: pair[1].status in fine)


class Unread(BaseModel):
    """A file that is no run's, or not yet."""

    folder: str
    why: str


def runs_in(folder: Path) -> tuple[list[Run], list[Unread]]:
    """Return the latest runs in a folder and the folders in it, newest first; and what is none.

    Args:
        folder: What `--out` was, or what holds several of these.
    """
    runs, unread = [], []
    for file in _files(folder):
        name = os.fsencode(file.parent.relative_to(folder)).decode("utf-8", "replace")
        try:
            run = Run.model_validate_json(_read(file))
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "it"
            unread.append(Unread(folder=name, why=f"not what certify writes, at {where[:80]}"))
        except UsageError as error:
            unread.append(Unread(folder=name, why=str(error)))
        except OSError as error:
            unread.append(Unread(folder=name, why=error.strerror or "it cannot be read"))
        else:
            runs.append(run.model_copy(update={"folder": name}))
    return sorted(runs, key=lambda run: run.at, reverse=True), unread


def _read(file: Path) -> bytes:
    """Return what is in a file, which is opened once, so that it is what it was found to be.

    Raises:
        UsageError: It is none that can be read to its end, or a large one.
    """
    # A pipe is opened only when somebody writes to it, unless one says not to wait.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise UsageError("it is no plain file")
        found = opened.read(SIZE_MAX + 1)
    if len(found) > SIZE_MAX:
        raise UsageError(f"it has more than {SIZE_MAX:,} bytes")
    return found


def _files(folder: Path) -> list[Path]:
    """Return the files that were written last."""
    found = sorted(_written(folder), reverse=True)
    return [file for _, file in found[:RUNS_MAX]]


def _written(folder: Path) -> Iterator[tuple[float, Path]]:
    try:
        folders = [folder, *islice(folder.iterdir(), _FOLDERS_MAX)]
    except OSError:
        return
    for each in folders:
        file = each / FILE
        try:
            yield file.stat().st_mtime, file
        except OSError:  # no run has ended there
            continue
