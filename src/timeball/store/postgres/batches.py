"""Batches in PostgreSQL."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from timeball.core.batches import (
    COUNT_MAX,
    BatchLine,
    BatchState,
    Member,
    MemberAttempt,
    MemberEdge,
    ReopenAnswer,
)
from timeball.core.dependencies import Rule, RuledOut
from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.core.uniqueness import Submitted
from timeball.errors import JobNotFound
from timeball.store.graph import LINK_MAX, links_of
from timeball.store.postgres.connections import Run
from timeball.store.postgres.encoding import encode_specs

Row = tuple[Any, ...]


class PostgresBatches(ABC):
    """Batches; see `timeball.store.batching.Batching` for what each verb promises."""

    _run: Run

    @abstractmethod
    def wake(self, queues: Collection[str]) -> None:
        """Wake the workers that listen."""

    @abstractmethod
    def ensure_lanes(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make lanes where they are missing."""

    @abstractmethod
    def link(self, limit: int) -> int | None:
        """See `Store.link`."""

    def add_members(self, batch: UUID, specs: Sequence[JobSpec]) -> list[Submitted]:
        """See `Batching.add_members`. Workers that listen are woken after the commit."""
        if not specs:
            return []
        self.ensure_lanes((spec.queue, spec.priority) for spec in specs)
        rows = self._run("add_members", batch=batch, jobs=encode_specs(specs))
        for _ in links_of(specs):
            self.link(LINK_MAX)
        keys = sorted({spec.key for spec in specs if spec.key is not None})
        if keys:
            self._run("admit_keys", keys=keys, limit=LINK_MAX)
        self.wake({spec.queue for spec in specs if spec.run_at is None and not spec.delay_s})
        return [Submitted(*row) for row in rows]

    def close_batch(self, batch: UUID, *, stop: bool = False) -> bool:
        """See `Batching.close_batch`."""
        return bool(self._run("close_batch", batch=batch, stop=stop)[0][0])

    def cancel_many(self, uuids: Sequence[UUID]) -> set[UUID]:
        """See `Batching.cancel_many`."""
        found = set(self._run("cancel_many", uuids=list(uuids))[0][0])
        self.link(LINK_MAX)
        return found

    def reopen(self, jobs: Sequence[tuple[int, int]]) -> ReopenAnswer:
        """See `Batching.reopen`."""
        rows = self._run("reopen", jobs=[job for job, _ in jobs], turns=[turn for _, turn in jobs])
        return ReopenAnswer(rows[0][0])

    def batch(self, batch: UUID) -> BatchState:
        """See `Batching.batch`."""
        rows = self._run("batch", batch=batch)
        if not rows:
            raise JobNotFound(batch)
        id_, uuid, name, state, is_open, created_at, ended_at, counts = rows[0]
        found: dict[str, int] = json.loads(counts)
        return BatchState(
            id=id_,
            uuid=uuid,
            name=name,
            state=State(state),
            is_open=is_open,
            created_at=created_at.astimezone(UTC),
            ended_at=ended_at and ended_at.astimezone(UTC),
            states={each: found.get(each, 0) for each in State},
            gone=found.get("gone", 0),
        )

    def batches(self, *, limit: int, before_id: int | None = None) -> list[BatchLine]:
        """See `Batching.batches`."""
        rows = self._run("batches", limit=limit, before_id=before_id, most=COUNT_MAX)
        return [batch_line(*row) for row in rows]

    def batch_left(self, batch: UUID) -> list[tuple[UUID, bool]]:
        """See `Batching.batch_left`."""
        return [(uuid, is_batch) for uuid, is_batch in self._run("batch_left", batch=batch)]

    def batch_members(self, batch: UUID) -> list[Member]:
        """See `Batching.batch_members`."""
        return [member_of(*row) for row in self._run("batch_members", batch=batch)]


def batch_line(id_: int, uuid: UUID, name: str, state: str, *rest: Any) -> BatchLine:
    """Return the batch of a row of ``batches.sql``."""
    is_open, created_at, ended_at, members, left = rest
    return BatchLine(
        id=id_,
        uuid=uuid,
        name=name,
        state=State(state),
        is_open=is_open,
        created_at=created_at.astimezone(UTC),
        ended_at=ended_at and ended_at.astimezone(UTC),
        members=members,
        left=left,
    )


def member_of(*row: Any) -> Member:
    """Return the member of a row of ``batch_members.sql``."""
    id_, uuid, kind, state, turn, reason, ruled_out, name, edges, attempts, spawned, *place = row
    return Member(
        id=id_,
        uuid=uuid,
        kind=kind,
        state=State(state),
        turn=turn,
        reason=reason,
        ruled_out=RuledOut(ruled_out),
        name=name,
        edges=tuple(MemberEdge(parent, Rule(rule), met) for parent, rule, met in json.loads(edges)),
        attempts=tuple(
            MemberAttempt(turn, Ending(event), *instants)
            for turn, event, *instants in json.loads(attempts)
        ),
        spawned=tuple(spawned),
        **dict(zip(("queue", "key"), place, strict=False)),
    )
