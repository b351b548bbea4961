"""From records to the JSON that the functions of the database take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import msgspec

from timeball.core.batches import BATCH
from timeball.core.dependencies import Edge
from timeball.core.notes import Note
from timeball.core.records import Delivery, Firing, JobSpec, ScheduleSpec, Settlement, Standing
from timeball.core.uniqueness import Unique, UniqueUntil
from timeball.store.postgres.sealing import closed, closed_end

_GRANTED: Final = {
    "queue": "default",
    "priority": 5,
    "run_at": None,
    "delay_s": None,
    "max_retries": 3,
    "max_crashes": 3,
    "timeout_s": None,
    "expires_at": None,
    "key": None,
}
"""The optional fields of a job, with what ``timeball.submit`` puts where they are missing."""

_encode = msgspec.json.Encoder().encode


def encode(value: object) -> str:
    """Return plain data, with instants and uuids in it, as the text of a JSON value."""
    return _encode(value).decode()


def encode_specs(specs: Sequence[JobSpec]) -> str:
    """Return jobs as the JSON array that the function ``timeball.submit`` takes."""
    return encode([_job(spec) for spec in specs])


def _job(spec: JobSpec) -> dict[str, Any]:
    """Return what the function would not take for granted: the database reads every byte."""
    # Of a batch the functions of the schema look at the arguments, in which nobody wrote anything.
    args = spec.args if spec.kind == BATCH else closed(spec.args, f"args:{spec.uuid}")
    job = {"uuid": spec.uuid, "kind": spec.kind, "args": msgspec.Raw(args.encode())}
    job |= {name: value for name in _GRANTED if (value := getattr(spec, name)) != _GRANTED[name]}
    if spec.delivery is Delivery.AT_MOST_ONCE:
        job["at_most_once"] = True
    if spec.after:
        job |= _after(spec)
    return job | _unique(spec.unique) if spec.unique else job


def _unique(unique: Unique) -> dict[str, Any]:
    return {
        "unique_key": unique.key,
        "unique_scope": unique.scope,
        "until_started": unique.until is UniqueUntil.STARTED,
        "on_clash": unique.on_clash,
    }


def _after(spec: JobSpec) -> dict[str, Any]:
    return {"after": _edges(spec.after), "ruled_out": spec.ruled_out}


def _edges(after: Sequence[Edge]) -> list[dict[str, Any]]:
    return [{"job": edge.parent, "rule": edge.rule} for edge in after]


def encode_edges(after: Sequence[Edge]) -> str:
    """Return edges as the JSON array that the function ``timeball.add_edges`` takes."""
    return encode(_edges(after))


def encode_notes(notes: Sequence[Note]) -> str:
    """Return what attempts say as the JSON array that the function ``timeball.note`` takes."""
    return encode(
        [
            {
                "job_id": note.job_id,
                "turn": note.turn,
                **dict(zip(("done", "total", "note"), note.progress or (), strict=False)),
                "lines": [line._asdict() for line in note.lines],
            }
            for note in notes
        ]
    )


def encode_schedule(spec: ScheduleSpec) -> str:
    """Return a schedule as the JSON object that ``timeball.declare_schedule`` takes."""
    texts = {name: msgspec.Raw(getattr(spec, name).encode()) for name in ("args", "terms")}
    return encode({**asdict(spec), **texts})


def standing_columns(standing: Standing) -> dict[str, Any]:
    """Return how a schedule stands by the names of its columns."""
    columns = standing._asdict()
    due_at = standing.due_at or standing.next_at
    return {"cursor_at": columns.pop("cursor"), **columns, "due_at": due_at}


def firing_columns(firing: Firing) -> dict[str, Any]:
    """Return a firing, but for its decisions, as ``timeball.fire`` takes it."""
    schedule = firing.schedule
    read = {"id": schedule.id, "revision": schedule.revision, "seen": schedule.cursor}
    return {**read, **standing_columns(firing.standing), "moved": firing.moved}


def encode_standing(standing: Standing) -> str:
    """Return how a schedule stands as ``timeball.declare_schedule`` takes it."""
    return encode(standing_columns(standing))


def settlement_columns(settlements: Sequence[Settlement]) -> dict[str, object]:
    """Return settlements as the arrays of ``settle.sql``; a column of nothing but null is empty.

    Numbers go as array texts: the driver's own list adaptation costs more than the statement.
    """
    rows = zip(*settlements, strict=True)
    lanes, seqs, jobs, turns, endings, reasons, delays, began, ran, results, types, errors, _ = rows
    return {
        "lanes": _numbers(lanes),
        "seqs": _numbers(seqs),
        "job_ids": _numbers(jobs),
        "turns": _numbers(turns),
        "events": list(endings),
        "reasons": _texts(reasons),
        "delays_s": _numbers(delays),
        "began": _numbers(began),
        "ran_s": _numbers(ran),
        "results": _texts([closed_end(result, "result") for result in results]),
        "error_types": _texts(types),
        "errors": _texts([closed_end(error, "error") for error in errors]),
    }


def _numbers(column: Sequence[float | None]) -> str:
    return f"{{{','.join(['null' if item is None else repr(item) for item in column])}}}"


def _texts(column: Sequence[str | None]) -> list[str | None]:
    return [] if all(item is None for item in column) else list(column)
