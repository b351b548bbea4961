"""From records to the JSON that the functions of the database take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from timeball.core.records import Delivery, JobSpec, ScheduleSpec, Standing

_encode = msgspec.json.Encoder().encode


def encode_specs(specs: Sequence[JobSpec]) -> str:
    """Return jobs as the JSON array that the function ``timeball.submit`` takes."""
    return _encode(
        [
            {
                "uuid": spec.uuid,
                "kind": spec.kind,
                "args": msgspec.Raw(spec.args.encode()),
                "queue": spec.queue,
                "priority": spec.priority,
                "run_at": spec.run_at,
                "delay_s": spec.delay_s,
                "max_retries": spec.max_retries,
                "max_crashes": spec.max_crashes,
                "at_most_once": spec.delivery is Delivery.AT_MOST_ONCE,
                "timeout_s": spec.timeout_s,
            }
            for spec in specs
        ]
    ).decode()


def encode_schedule(spec: ScheduleSpec) -> str:
    """Return a schedule as the JSON object that ``timeball.declare_schedule`` takes."""
    texts = {name: msgspec.Raw(getattr(spec, name).encode()) for name in ("args", "terms")}
    return _encode({**asdict(spec), **texts}).decode()


def standing_columns(standing: Standing) -> dict[str, Any]:
    """Return how a schedule stands by the names of its columns."""
    cursor, next_at, due_at, zone_version, fingerprint = standing
    return {
        "cursor_at": cursor,
        "next_at": next_at,
        "due_at": due_at or next_at,
        "zone_version": zone_version,
        "fingerprint": fingerprint,
    }


def encode_standing(standing: Standing) -> str:
    """Return how a schedule stands as ``timeball.declare_schedule`` takes it."""
    return _encode(standing_columns(standing)).decode()
