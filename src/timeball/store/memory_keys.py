"""Unique keys of the memory store: who took each last, and whether he holds it still."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from timeball.core.records import JobSpec
from timeball.core.states import TERMINAL, State
from timeball.core.uniqueness import OnClash, UniqueScope, UniqueUntil
from timeball.errors import UniqueClash
from timeball.store.memory_rows import Row

Key = tuple[str, str, str]


class Taken(NamedTuple):
    """Who took a key last."""

    job: UUID
    until: UniqueUntil


class MemoryKeys(ABC):
    """A key is freed by nobody: who comes next takes it over from one that holds it no longer."""

    _rows: dict[int, Row]
    _ids: dict[UUID, int]
    _held: dict[int, Row]
    _keys: dict[Key, Taken]

    @abstractmethod
    def _replace(self, row: Row) -> None: ...

    def _take_keys(self, specs: Sequence[JobSpec]) -> list[UUID]:
        """Take the keys of jobs that are about to be added; return whom each spec stands for.

        Raises:
            UniqueClash: Nothing has happened.
        """
        taken: dict[Key, Taken] = {}
        replaced: list[Row] = []
        answers: list[UUID] = []
        for spec in specs:
            holder = self._clash(spec, taken)
            if holder is not None and self._gives_way(holder, spec):
                replaced.append(self._rows[self._ids[holder]])
                holder = None
            if holder is None and spec.unique and spec.uuid not in self._ids:
                taken[name_of(spec)] = Taken(spec.uuid, spec.unique.until)
            answers.append(spec.uuid if holder is None else holder)
        for row in replaced:
            self._replace(row)
        self._keys |= taken
        return answers

    def _clash(self, spec: JobSpec, taken: dict[Key, Taken]) -> UUID | None:
        """Return the other job that holds the key of a new one."""
        if spec.unique is None or spec.uuid in self._ids:
            return None
        name = name_of(spec)
        if (new := taken.get(name)) is not None:
            return new.job if new.job != spec.uuid else None
        held = self._keys.get(name)
        return held.job if held is not None and self._holds(held) else None

    def _gives_way(self, holder: UUID, spec: JobSpec) -> bool:
        """Return whether a new job replaces the one that holds its key; False: it is ignored."""
        assert spec.unique is not None
        if spec.unique.on_clash is OnClash.IGNORE:
            return False
        if spec.unique.on_clash is OnClash.REPLACE and self._is_held(holder):
            return True
        raise UniqueClash(holder, f"holds the unique key {spec.unique.key}")

    def _is_held(self, holder: UUID) -> bool:
        """Whether a job is held back, and not by its parents: who ends those might meet it."""
        row = self._held.get(self._ids.get(holder, 0))
        return row is not None and row.state is not State.WAITING

    def _retake_key(self, row: Row) -> bool:
        """Take the key of an ended job that is about to be revived, unless another holds it."""
        if row.spec.unique is None:
            return True
        name = name_of(row.spec)
        held = self._keys.get(name)
        if held is not None and held.job != row.spec.uuid and self._holds(held):
            return False
        self._keys[name] = Taken(row.spec.uuid, row.spec.unique.until)
        return True

    def _drop_key(self, row: Row) -> None:
        if row.spec.unique is not None:
            held = self._keys.get(name_of(row.spec))
            if held is not None and held.job == row.spec.uuid:
                del self._keys[name_of(row.spec)]

    def _holds(self, taken: Taken) -> bool:
        job = self._ids.get(taken.job)
        if job is None or self._rows[job].state in TERMINAL:
            return False
        row = self._rows[job]
        begun = row.tally.attempts > 0 or row.state is State.RUNNING
        return taken.until is UniqueUntil.ENDED or not begun


def name_of(spec: JobSpec) -> Key:
    """Return what a key stands for within its scope."""
    assert spec.unique is not None
    owners = {UniqueScope.KIND: spec.kind, UniqueScope.QUEUE: spec.queue, UniqueScope.GLOBAL: ""}
    return spec.unique.scope, owners[spec.unique.scope], spec.unique.key
