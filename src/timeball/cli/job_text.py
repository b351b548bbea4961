"""Jobs in words and in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from timeball.cli.output import iso, shown
from timeball.core.dependencies import Parent
from timeball.core.notes import LogLine
from timeball.core.records import Job
from timeball.core.redaction import redacted_value
from timeball.core.states import TERMINAL, State

_SUMMARY_MAX = 60


def ended_well(job: Job) -> bool:
    """Return whether a job has succeeded."""
    return job.state is State.SUCCEEDED


def job_record(job: Job) -> dict[str, Any]:
    """Return a job for JSON."""
    record = asdict(job)
    record["args"] = redacted_value("", job.args)
    for name in ("created_at", "run_at", "expires_at", "began_at", "ended_at"):
        record[name] = iso(record[name]) if record[name] else None
    if job.progress is not None:
        record["progress"] = {**job.progress._asdict(), "at": iso(job.progress.at)}
    return record


def state_line(job: Job, *, utc: bool) -> str:
    """Return what a job does now, as one line."""
    instant = job.ended_at or job.began_at or job.created_at
    words = [shown(instant, utc=utc), "", str(job.state), _why(job), progress_text(job)]
    return " ".join(word for n, word in enumerate(words) if word or n == 1)


def news_line(job: Job, line: LogLine | None, *, utc: bool) -> str:
    """Return what is new of a job as one line: what it has logged, else what it does now."""
    if line is None:
        return state_line(job, utc=utc)
    return f"    {next(log_lines([line], utc=utc))}"


def progress_text(job: Job) -> str:
    """Return how far a job says that it is; nothing where it says nothing, or has ended."""
    if job.progress is None or job.state in TERMINAL:
        return ""
    done, total, note, *_ = job.progress
    parts = [f"{done:g}"]
    if total is not None:
        parts += [f"of {total:g}"] + ([f"({100 * done / total:.0f} %)"] if total else [])
    return " ".join([*parts, note or ""]).strip()


def log_lines(lines: Iterable[LogLine], *, utc: bool) -> Iterator[str]:
    """Yield what a job has logged, for people."""
    for line in lines:
        yield f"{shown(line.at, utc=utc)}  turn {line.turn}  {line.text}"


def parent_lines(parents: Sequence[Parent]) -> Iterator[str]:
    """Return what a job comes after, one parent a line; nothing where it has none."""
    if parents:
        yield "after"
    for one in parents:
        yield f"    {one.uuid} {one.state or 'deleted'} ({one.rule})"


def summary(job: Job) -> str:
    """Return why a job is where it is, or what it gave, in a few words."""
    text = " ".join((_why(job) or _gist(job.result)).split())
    return text if len(text) <= _SUMMARY_MAX else text[: _SUMMARY_MAX - 1] + "…"


def job_lines(job: Job, *, utc: bool) -> Iterator[str]:
    """Yield everything about a job, for people."""
    facts: dict[str, object] = {
        "job": f"{job.uuid} (number {job.id})",
        "kind": job.kind,
        "state": job.state,
        "progress": progress_text(job),
        "reason": job.reason,
        "queue": f"{job.queue}, priority {job.priority}",
        "key": job.key,
        "attempts": f"{job.attempts} ({job.failures} failed, {job.crashes} crashed, "
        f"{job.max_retries} retries allowed)",
        "created": shown(job.created_at, utc=utc),
        "due": shown(job.run_at, utc=utc),
        "expires": shown(job.expires_at, utc=utc),
        "began": shown(job.began_at, utc=utc),
        "ended": shown(job.ended_at, utc=utc),
        "worker": job.worker,
        "args": json.dumps(redacted_value("", job.args), ensure_ascii=False),
    }
    for name, value in facts.items():
        if value not in (None, ""):
            yield f"{name:10}{value}"
    yield from _block("error", f"{job.error_type or ''}\n{job.error or ''}".strip())
    if _of_command(job.result):
        yield from _block("output", job.result["output"])
    elif job.result is not None:
        yield f"{'result':10}{json.dumps(job.result, ensure_ascii=False)}"


def _block(name: str, text: str) -> Iterator[str]:
    if text.strip():
        yield name
        yield from (f"    {line}".rstrip() for line in text.rstrip().split("\n"))


def _of_command(result: object) -> bool:
    return isinstance(result, dict) and result.keys() == {"exit_code", "output"}


def _gist(result: Any) -> str:
    """Return a result in a few words: of a command, the first line of its output."""
    if _of_command(result):
        return str(result["output"]).strip().partition("\n")[0]
    return "" if result is None else json.dumps(result, ensure_ascii=False)


def _why(job: Job) -> str:
    error = (job.error or "").strip().split("\n")[0]
    words = (f"({job.reason})" if job.reason else "", job.error_type or "", error)
    return " ".join(word for word in words if word)
