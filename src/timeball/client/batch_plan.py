"""A batch that is being made: what its block has written so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from timeball.action.edges import parents_of
from timeball.client.handles import Handle
from timeball.core.batches import BATCH, batch_args
from timeball.core.dependencies import Edge, Rule, RuledOut
from timeball.core.records import JobSpec
from timeball.errors import UsageError
from timeball.store.base import Store

MEMBERS_MAX: Final = 100_000
"""Jobs that a batch is made with, those of batches in it too."""

NAME_MAX: Final = 256
"""Characters of a batch's name."""

_OPTIONS: Final = frozenset({"after", "rule", "ruled_out", "open"})


class Plan:
    """Jobs in their order, and batches among them.

    Attributes:
        uuid: Of the batch.
        is_inner: Whether it is a part of another one, with which it is submitted.
        dropped: Whether its block was left by an error.
    """

    def __init__(
        self, uuid: UUID, name: str, options: Mapping[str, Any], *, is_inner: bool = False
    ) -> None:
        if unknown := options.keys() - _OPTIONS:
            raise UsageError(f"{', '.join(sorted(unknown))}: not an option of a batch")
        if len(name) > NAME_MAX or not name.isprintable():
            raise UsageError(f"name is {name!r:.80}: write {NAME_MAX} printable characters at most")
        self.uuid = uuid
        self.is_inner = is_inner
        self.dropped = False
        self._name = name
        self._open = bool(options.get("open"))
        self._after, self._ruled_out = parents_of(options)
        self._items: list[tuple[JobSpec, Handle] | Plan] = []

    def add(self, handle: Handle, spec: JobSpec) -> Handle:
        """Take a job and return its handle, which gets its number when all is submitted."""
        self._items.append((spec, handle))
        return handle

    def inside(self, uuid: UUID, name: str, options: Mapping[str, Any]) -> Plan:
        """Return a plan in this one."""
        inner = Plan(uuid, name, options, is_inner=True)
        self._items.append(inner)
        return inner

    def submit(self, store: Store) -> None:
        """Add all of it in one transaction.

        Raises:
            UsageError: There is too much of it, or a job comes after one that is not there.
        """
        own = {self.uuid, *(uuid for uuid in self.uuids())}
        specs = list(self.specs(own, (), RuledOut.SKIP))
        if len(specs) > MEMBERS_MAX:
            raise UsageError(
                f"{len(specs):,} jobs in one batch: make it of {MEMBERS_MAX:,} at most, with "
                "open=True, add the others, and close it"
            )
        added = {spec.uuid: job for spec, job in zip(specs, store.submit(specs), strict=True)}
        for handle in self.handles():
            job = added[handle.uuid]
            # Only here a handle is known before its job: to everybody else it never changes.
            object.__setattr__(handle, "id", job.id)
            object.__setattr__(handle, "uuid", job.uuid)

    def uuids(self) -> Iterator[UUID]:
        """Yield the uuids of all jobs and batches in it."""
        for item in self._items:
            if isinstance(item, Plan):
                yield item.uuid
                yield from item.uuids()
            else:
                yield item[0].uuid

    def handles(self) -> Iterator[Handle]:
        """Yield the handles of all jobs that are submitted with it."""
        for item in self._items:
            if not isinstance(item, Plan):
                yield item[1]
            elif not item.dropped:
                yield from item.handles()

    def specs(
        self, own: set[UUID], outer: tuple[Edge, ...], ruled_out: RuledOut
    ) -> Iterator[JobSpec]:
        """Yield the jobs, each batch after its own.

        Args:
            own: The uuids of all that is made together.
            outer: What the whole comes after.
            ruled_out: What happens to those whose `outer` rules them out.
        """
        after = _united(self._after, outer)
        ruled_out = self._ruled_out if self._after else ruled_out
        members = []
        for item in self._items:
            if isinstance(item, Plan):
                if item.dropped:
                    continue
                members.append(item.uuid)
                yield from item.specs(own, after, ruled_out)
                continue
            spec, _ = item
            members.append(spec.uuid)
            if after and not any(edge.parent in own for edge in spec.after):
                chosen = spec.ruled_out if spec.after else ruled_out
                spec = replace(spec, after=_united(spec.after, after), ruled_out=chosen)
            yield spec
        yield JobSpec(
            uuid=self.uuid,
            kind=BATCH,
            args=batch_args(self._name, is_open=self._open),
            after=tuple(Edge(uuid, Rule.MEMBER) for uuid in members) or after,
            ruled_out=RuledOut.RUN,
        )


def _united(edges: tuple[Edge, ...], more: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return some edges and more; of two to one parent the first counts."""
    known = {edge.parent for edge in edges}
    return (*edges, *(edge for edge in more if edge.parent not in known))
