"""How jobs come into PostgreSQL, and how those that come after others are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg

from timeball.core.dependencies import Edge, EdgesAnswer, Parent
from timeball.core.records import JobSpec, Settlement, Verdict
from timeball.core.uniqueness import Submitted
from timeball.errors import StoreUnavailable, UsageError
from timeball.store.base import CLAIM_MAX
from timeball.store.graph import LINK_MAX, links_of
from timeball.store.postgres.connections import (
    Connections,
    LaneMissing,
    Run,
    refusal,
    statement,
)
from timeball.store.postgres.encoding import encode_edges, encode_specs
from timeball.store.postgres.readers import parent_of
from timeball.store.postgres.sealing import closed_end

Answer = TypeVar("Answer")
_SPAWN_TRIES: Final = 20
"""Each waits a tenth of a second for the graph lock at most."""


class PostgresSubmission:
    """Submitting, linking and spawning; see `timeball.store.base.Store` for what each promises."""

    connections: Connections
    _run: Run
    _lanes: set[tuple[str, int]]

    def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """See `Store.submit`. Workers that listen are woken after the commit."""
        if not specs:
            return []
        rows = self._in_lanes(specs, lambda: self._run("submit", jobs=encode_specs(specs)))
        self._follow_up(specs)
        return [Submitted(*row) for row in rows]

    def submit_within(self, connection: Any, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Add jobs inside a caller's own psycopg transaction: there iff that commits.

        No worker is woken: the jobs are found when one next polls.
        """
        self.ensure_lanes((spec.queue, spec.priority) for spec in specs)
        text = statement("submit", self.connections.schema)
        try:
            rows = connection.execute(text, {"jobs": encode_specs(specs)}).fetchall()
        except psycopg.Error as error:
            raise self._refused(error) from error
        return [Submitted(*row) for row in rows]

    async def submit_within_async(
        self, connection: Any, specs: Sequence[JobSpec]
    ) -> list[Submitted]:
        """Do the same on a caller's `AsyncConnection`."""
        await asyncio.to_thread(self.ensure_lanes, [(spec.queue, spec.priority) for spec in specs])
        text = statement("submit", self.connections.schema)
        try:
            cursor = await connection.execute(text, {"jobs": encode_specs(specs)})
        except psycopg.Error as error:
            raise self._refused(error) from error
        return [Submitted(*row) for row in await cursor.fetchall()]

    def spawn(self, worker: int, said: Settlement) -> Verdict:
        """See `Store.spawn`. Workers that listen are woken after the commit."""
        lane, seq, job_id, turn = said[:4]
        jobs = encode_specs(said.spawned)
        facts: dict[str, object] = {
            "worker": worker,
            "lane": lane,
            "seq": seq,
            "job_id": job_id,
            "turn": turn,
        }
        facts |= {
            "began": said.began_at,
            "ran_s": said.ran_s,
            "result": closed_end(said.result, "result"),
        }
        for _ in range(_SPAWN_TRIES):
            try:
                ((answer,),) = self._in_lanes(
                    said.spawned, lambda: self._run("spawn", jobs=jobs, **facts)
                )
            except psycopg.DataError as error:
                raise UsageError(f"what was spawned cannot be stored: {error}") from error
            if answer is not None:
                with suppress(StoreUnavailable):  # one of them may have been there, and ended
                    self.link(LINK_MAX)
                self._follow_up(said.spawned)
                return Verdict(answer)
        raise StoreUnavailable("others have been ending jobs all the time: try again")

    def add_edges(self, job: UUID, after: Sequence[Edge]) -> EdgesAnswer:
        """See `Store.add_edges`."""
        found = EdgesAnswer(self._run("add_edges", job=job, after=encode_edges(after))[0][0])
        if found is EdgesAnswer.ADDED:
            with suppress(StoreUnavailable):  # else the workers do
                for _ in range(1 + len(after) // LINK_MAX):
                    self.link(LINK_MAX)
        return found

    def link(self, limit: int) -> int | None:
        """See `Store.link`."""
        linked = self._run("link", limit=limit)[0][0]
        return None if linked is None else int(linked)

    def parents(self, job_id: int) -> list[Parent]:
        """See `Store.parents`."""
        return [parent_of(row) for row in self._run("parents", job=job_id)]

    def ensure_lanes(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make the lanes of these (queue, priority) pairs where they are missing.

        Never inside a caller's transaction: an uncommitted lane would block others.
        """
        missing = sorted(set(wanted) - self._lanes)
        if missing:
            queues, priorities = zip(*missing, strict=True)
            self._run("ensure_lanes", queues=list(queues), priorities=list(priorities))
            self._lanes.update(missing)

    def wake(self, queues: Collection[str]) -> None:
        """Wake the workers that listen. Only a hint: polling is the guarantee."""
        if queues:
            with suppress(StoreUnavailable):
                self._run("notify", queues=sorted(queues))

    def _in_lanes(self, specs: Sequence[JobSpec], call: Callable[[], Answer]) -> Answer:
        """Return what a call that adds jobs gives; the lanes that they need are made before."""
        wanted = {(spec.queue, spec.priority) for spec in specs}
        self.ensure_lanes(wanted)
        try:
            return call()
        except LaneMissing:
            self._lanes.clear()
            self.ensure_lanes(wanted)
            return call()

    def _follow_up(self, specs: Sequence[JobSpec]) -> None:
        """Do what need not wait for a worker, now that jobs are there; workers do it too."""
        with suppress(StoreUnavailable):
            for _ in links_of(specs):
                self.link(LINK_MAX)
        self.wake({spec.queue for spec in specs if spec.run_at is None and not spec.delay_s})
        keys = {spec.key for spec in specs if spec.key is not None}
        if keys:
            with suppress(StoreUnavailable):
                self._run("admit_keys", keys=sorted(keys), limit=CLAIM_MAX)

    def _refused(self, error: psycopg.Error) -> Exception:
        """Return what an error within a caller's transaction means, which is over by it."""
        refused = refusal(error)
        if isinstance(refused, LaneMissing):
            self._lanes.clear()  # so that another try makes it
        return refused or error
