"""One run of a batch as a file: what the report said, and every attempt, for drawing it later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from timeball.core.makespan import AttemptRecord
from timeball.core.report import BatchReport
from timeball.core.states import Ending
from timeball.errors import UsageError

FORMAT: Final = "timeball batch"
SCHEMA_VERSION: Final = 1
RUNNING: Final = "running"

_SIZE_MAX: Final = 1 << 30
_NS_MAX: Final = 1 << 62
_OUTCOMES: Final = frozenset({*map(str, Ending), RUNNING})


class Bar(NamedTuple):
    """One attempt. Instants are nanoseconds from the first start of the batch."""

    job: int | str
    attempt: int
    slot: int
    started_ns: int
    finished_ns: int
    limiter_ns: int
    outcome: str
    """An `Ending`, or "running"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A batch that has been carried out."""

    name: str
    """What it was: the file's name."""

    rate: str | None
    report: Mapping[str, Any]
    """`BatchReport.as_dict`."""

    bars: Sequence[Bar]

    @classmethod
    def of(
        cls,
        report: BatchReport,
        records: Sequence[AttemptRecord[int | str]],
        *,
        name: str,
        rate: str | None,
    ) -> Self:
        """Return the run that a scheduler has on record."""
        from_ns = min((record.started_ns for record in records), default=0)
        bars = [
            Bar(
                job=record.job,
                attempt=record.attempt,
                slot=record.slot,
                started_ns=record.started_ns - from_ns,
                finished_ns=record.finished_ns - from_ns,
                limiter_ns=record.limiter_ns,
                outcome=str(record.ending or RUNNING),
            )
            for record in records
        ]
        return cls(name=name, rate=rate, report=report.as_dict(), bars=bars)

    def text(self) -> str:
        """Return the run as JSON, the attempts as rows."""
        document = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "rate": self.rate,
            "report": self.report,
            "fields": Bar._fields,
            "attempts": self.bars,
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the run that `text` has written to a file.

        Raises:
            UsageError: It is no such file.
        """
        try:
            with path.open("rb") as file:
                content = file.read(_SIZE_MAX)  # what is cut off there is no JSON any more
            return cls._of_document(json.loads(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"{path} is no saved batch ({error}): write it by timeball batch run --save"
            ) from None

    @classmethod
    def _of_document(cls, document: Any) -> Self:
        if document["format"] != FORMAT or document["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"not {FORMAT!r} of version {SCHEMA_VERSION}")
        report = document["report"]
        for name in ("jobs", "attempts", "workers", "makespan_ns", "bound_ns"):
            _check_count(report[name])
        for ns in report["floors_ns"].values():
            _check_count(ns)
        bars = [_bar(row, report["workers"]) for row in document["attempts"]]
        rate = document["rate"]
        return cls(
            name=str(document["name"]),
            rate=None if rate is None else str(rate),
            report=report,
            bars=bars,
        )


def _bar(row: Sequence[Any], workers: int) -> Bar:
    bar = Bar(*row)
    for value in bar[1:6]:
        _check_count(value)
    if not (isinstance(bar.job, int | str) and bar.outcome in _OUTCOMES):
        raise ValueError(f"no attempt: {bar!r}"[:200])
    if not (bar.started_ns <= bar.finished_ns and bar.slot < workers):
        raise ValueError(f"no attempt of {workers} slots: {bar!r}"[:200])
    return bar


def _check_count(value: object) -> None:
    if type(value) is not int or not 0 <= value <= _NS_MAX:
        raise ValueError(f"no whole number from 0: {value!r}"[:200])
