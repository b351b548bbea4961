"""What an importer finds in a file of any scheduler: one record for all of them.

`Found` is one scheduled thing, said in Timeball's words, with where it stands and what its author
wrote. Two are equal if they schedule the same; where they stand does not count. What no words
were found for is never left out silently: it is a `Needs`, with its line and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

DEFAULT_SHELL: Final = "/bin/sh"
GRAPH: Final = "timeball.graph"
"""The kind that runs a graph of jobs."""


class Origin(StrEnum):
    """Whose file it is; the names of the formats on the command line."""

    CRONTAB = "crontab"
    CELERY = "celery"
    APSCHEDULER = "apscheduler"
    KUBERNETES = "kubernetes"
    TOML = "toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCall:
    """It runs jobs of a kind."""

    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The call as a reader of Python would write it; not redacted."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        return f"{self.kind}({given})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """It runs a command: `argv`, or else `shell_text` for a shell."""

    argv: tuple[str, ...] = ()
    shell_text: str | None = None
    shell: str = DEFAULT_SHELL
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """What its file sets, on top of what the account has."""

    user: str | None = None
    stdin: str = ""

    def __str__(self) -> str:
        """The command as one would type it; not redacted."""
        if self.shell_text is not None:
            return self.shell_text
        import shlex

        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a schedule says beside when and what; None where its file leaves it to the default."""

    queue: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    max_crashes: int | None = None
    timeout_s: float | None = None
    delivery: str | None = None
    key: str | None = None
    overlap_runs: str | None = None
    catchup: str | None = None
    catchup_window_s: float | None = None
    catchup_limit: int | None = None
    grace_s: float | None = None
    any_of: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    on_excluded: str | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter_s: int | None = None
    day_rule: str | None = None
    dst: str | None = None
    gap: str | None = None
    overlap: str | None = None
    paused: bool | None = None

    def given(self) -> dict[str, Any]:
        """Return those that are set, in the order above."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in named if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Something that a person has to decide or do."""

    line: int
    name: str
    """Of the scheduled thing; empty where it is about the file."""

    text: str
    """What it is and what to do; redacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One scheduled thing."""

    name: str
    expression: str
    """In Timeball's dialect."""

    tz: str | None = None
    """None: its file names none; see `Findings.default_tz`."""

    runs: KindCall | CommandCall
    options: Options = field(default_factory=Options)
    line: int = field(default=0, compare=False)
    """1-based."""

    text: str = field(default="", compare=False)
    """What its author wrote, redacted, perhaps of several lines."""

    comment: str = field(default="", compare=False)
    """What is said on or directly above it, without the marks of a comment."""

    guard: str | None = field(default=None, compare=False)
    """What keeps its runs apart, in the words of its file, such as ``flock /tmp/x.lock``."""

    key: str | None = field(default=None, compare=False)
    """What it is kept apart by; things with the same key never run at once where they come from."""

    interval_s: float | None = field(default=None, compare=False)
    """Seconds between runs, where it is an interval and no time of day."""

    defaulted: frozenset[str] = field(default=frozenset(), compare=False)
    """Fields and options that its file leaves to their defaults, in the file's own words:
    ``crontab(hour="*/4")`` leaves ``minute``."""

    notes: tuple[str, ...] = field(default=(), compare=False)
    """Good to know; nothing to do."""

    needs: tuple[Needs, ...] = field(default=(), compare=False)
    """It runs, but a person has to look at these."""

    holds: bool = field(default=True, compare=False)
    """False: it would not do what its author meant, so it is written down but not run before a
    person has met its `needs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that was found in one file."""

    origin: Origin
    source: str
    """Its path, as its reader named it."""

    found: tuple[Found, ...] = ()
    needs: tuple[Needs, ...] = ()
    """What became no `Found` at all, and what is about the file."""

    default_tz: str | None = None
    """The zone of what names none; None: the machine's."""

    notes: tuple[str, ...] = ()

    def all_needs(self) -> list[Needs]:
        """Return every remark, those of the found things too, in the order of lines."""
        return sorted([*self.needs, *self._of_found()], key=lambda each: each.line)

    def _of_found(self) -> Iterator[Needs]:
        for each in self.found:
            yield from each.needs


def every(seconds: float) -> str | None:
    """Return the expression of an interval; None if it is no whole number of seconds above 0."""
    whole = int(seconds) if 0 < seconds < 1e12 else 0  # noqa: PLR2004 - beyond any calendar
    if whole != seconds or whole == 0:
        return None
    for size, unit in ((3600, "h"), (60, "m")):
        if whole % size == 0:
            return f"@every {whole // size}{unit}"
    return f"@every {whole}s"
