"""What all tables hold, told so that only ids and the order of transactions make no difference."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from timeball.certify.stage import Stage

Tables = Mapping[str, tuple[str, ...]]
"""The rows of each table, sorted."""

_VACUUM_EVERY: Final = 60
_DROPPED: Final = frozenset({"xid", "prev", "cur", "pos_xid"})
_NAMED: Final = frozenset({"worker", "lane", "schedule", "job"})
"""Tables whose rows have a name or a uuid beside their id."""

_JOBS: Final = frozenset({"job_id", "child", "parent", "pos_id", "job_ids", "runs"})


class Ledger:
    """The tables of one stage, which can be put back to how they were."""

    def __init__(self, stage: Stage, names: Mapping[UUID, str]) -> None:
        self._stage = stage
        self._names = {str(uuid): name for uuid, name in names.items()}
        self._ids: dict[tuple[str, int], str] = {}
        self._times = 0
        stage.ask("keep_scene")
        self._learn(self._read())

    def put_back(self) -> None:
        """Have the tables hold what they held at first."""
        self._times += 1
        if self._times % _VACUUM_EVERY == 0:
            self._stage.ask("vacuum")
        self._stage.ask("put_scene_back")

    def tables(self, *, in_order: bool) -> Tables:
        """Return what they hold now.

        Args:
            in_order: Whether the order of entries in their lanes is part of it.
        """
        read = self._read()
        self._learn(read)
        told: dict[str, list[str]] = defaultdict(list)
        for table, row in read:
            if table != "lane" and not _grants_nothing(table, row):
                line = self._told(table, row)
                if not in_order:
                    line.pop("place", None)
                told[table].append(json.dumps(line, sort_keys=True))
        return {table: tuple(sorted(rows)) for table, rows in told.items()}

    def name_of(self, table: str, number: int) -> str:
        """Return what a row is called in every run."""
        return self._ids.get((table, number), "nobody" if not number else "somebody")

    def _read(self) -> list[tuple[str, dict[str, Any]]]:
        rows = [(name, dict(line)) for name, line in self._stage.ask("scene_lines")]
        _rank(rows)
        return rows

    def _learn(self, rows: list[tuple[str, dict[str, Any]]]) -> None:
        for table, row in rows:
            if table in _NAMED:
                name = self._text(row.get("uuid") or row.get("name") or f"{row.get('queue')}")
                whole = f"{name}/{row['priority']}" if table == "lane" else name
                self._ids[table, row["id"]] = whole

    def _told(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in row.items() if key not in _DROPPED}
        if table in {"event", "operation"} or table in _NAMED:
            kept.pop("id")
        return {key: self._value(key, value) for key, value in kept.items()}

    def _value(self, column: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(column, each) for each in value]
        if isinstance(value, str):
            return self._text(value)
        tell = _tables_of(column)
        return self.name_of(tell, value) if tell and value is not None else value

    def _text(self, text: str) -> str:
        return self._names.get(text, text)


def _tables_of(column: str) -> str | None:
    if column in _JOBS:
        return "job"
    return {"schedule_id": "schedule", "worker": "worker", "lane": "lane"}.get(column)


def _rank(rows: list[tuple[str, dict[str, Any]]]) -> None:
    """Say of each entry which place it has in its lane, in place of the transaction's number."""
    places: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for table, row in rows:
        if table == "entry":
            places[row["lane"]].append(row)
    for lane in places.values():
        for place, row in enumerate(sorted(lane, key=_order)):
            row["place"] = place


def _grants_nothing(table: str, row: Mapping[str, Any]) -> bool:
    """Return whether a row is a look along a lane that came to nothing."""
    return table == "lease" and row["worker"] is None and not row["job_ids"]


def _order(entry: dict[str, Any]) -> tuple[int, int]:
    """Return by what entries of a lane are ordered."""
    return int(entry["xid"]), entry["job_id"]
