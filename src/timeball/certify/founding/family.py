"""Parents and children that no process carries out: a scenario settles each by hand."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from uuid import UUID, uuid4

from timeball.certify.sessions import Blocked, Session
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND, claim_all, worker_of
from timeball.core.dependencies import Edge, Rule
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.postgres.encoding import settlement_columns


class Family:
    """Jobs of one worker on one stage, and how often each was started."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store = stage.store
        self.worker = worker_of(self.store)
        self.starts: Counter[UUID] = Counter()
        self.children: set[UUID] = set()
        self.blocked = 0
        """How many stepped statements had to wait for another one."""

        self._open: dict[UUID, Turn] = {}

    # Parents

    def pending(self, count: int = 1) -> list[UUID]:
        """Submit jobs and return who they are."""
        specs = [JobSpec(uuid=uuid4(), kind=KIND) for _ in range(count)]
        self.stage.submit(specs)
        return [spec.uuid for spec in specs]

    def running(self, count: int = 1) -> list[UUID]:
        """Submit jobs, start them, and return who they are."""
        uuids = self.pending(count)
        self.start_all()
        return uuids

    def start_all(self, request: UUID | None = None) -> None:
        """Start all that may start, and first what was granted to an earlier request."""
        first = request or uuid4()
        turns = self.store.claim(self.worker, limit=1_000, request=first, floors={})
        for turn in (*turns, *claim_all(self.store, self.worker)):
            self.starts[turn.uuid] += 1
            self._open[turn.uuid] = turn

    def end(self, *uuids: UUID, ending: Ending = Ending.SUCCEEDED) -> None:
        """End running jobs."""
        self.store.connections.run("settle", **self.ends(*uuids, ending=ending))
        self.ended(*uuids)

    def ends(self, *uuids: UUID, ending: Ending = Ending.SUCCEEDED) -> dict[str, Any]:
        """Return what the statement `settle` takes to end running jobs."""
        turns = [self._open[uuid] for uuid in uuids]
        settlements = [
            Settlement(
                *(turn.lane, turn.seq, turn.job_id, turn.turn, ending), began_at=turn.granted_at
            )
            for turn in turns
        ]
        return {"worker": self.worker, **settlement_columns(settlements)}

    def ended(self, *uuids: UUID) -> None:
        """Note that a stepped session has ended jobs."""
        for uuid in uuids:
            del self._open[uuid]

    def finish(self) -> None:
        """Start and end whatever is left, and let the worker go."""
        self.start_all()
        while self._open:
            self.end(*list(self._open)[:500])
            self.start_all()
        self.store.retire(self.worker)

    # Children

    def child(self, *parents: UUID, rule: Rule = Rule.ALL_SUCCESS) -> UUID:
        """Submit a child whose edges are linked, and return who it is."""
        edges = tuple(Edge(parent, rule) for parent in parents)
        spec = JobSpec(uuid=uuid4(), kind=KIND, after=edges)
        self.stage.submit([spec])
        self.children.add(spec.uuid)
        return spec.uuid

    def child_text(self, parent: UUID, child: UUID, rule: Rule = Rule.ALL_SUCCESS) -> str:
        """Return a child as `timeball.submit` takes it; its edge is for somebody else to link."""
        after = [{"job": str(parent), "rule": str(rule)}]
        return json.dumps([{"uuid": str(child), "kind": KIND, "after": after}])

    def state(self, job: UUID) -> State:
        """Return the state of a job."""
        return self.store.get(job).state

    # Stepping

    def session(self) -> Session:
        """Return a connection that is stepped."""
        return self.stage.session()

    def steps(self, session: Session, name: str, **params: Any) -> bool:
        """Step a statement and return whether it has to wait, which is counted."""
        waits = isinstance(session.verb_steps(name, **params), Blocked)
        self.blocked += waits
        return waits
