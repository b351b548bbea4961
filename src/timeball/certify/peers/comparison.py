"""Plays the probes against products, one after the other, and tells what was seen of each.

A product that is not installed, fails or hangs has a row that says so: it stops nobody.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from timeball.certify.databases import Databases
from timeball.certify.peers.adapter import Broken, Hung, NotOffered
from timeball.certify.peers.bench import Bench
from timeball.certify.peers.catalogue import Peer
from timeball.certify.peers.environments import Environments
from timeball.certify.peers.probes import PROBES, Probe, Seen

_SHOWN: Final = 300

Say = Callable[[str], None]


class Standing(StrEnum):
    """What became of a probe."""

    SEEN = "seen"
    NOT_OFFERED = "not offered"  # the product has no such thing
    BROKEN = "broken"  # the product or its adapter failed
    HUNG = "hung"  # it did not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one probe came to with one product."""

    probe: Probe
    standing: Standing
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    fine: bool = False
    """Whether it is what Timeball promises of itself."""

    intended: str = ""
    """What the product's documentation says of it, where it does."""

    wall_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one product."""

    peer: Peer
    version: str = ""
    python: str = ""
    cells: Sequence[Cell] = ()
    reason: str = ""
    """Why there are none: it is not installed, or does not start."""

    installed: bool = True


def compared(
    peers: Sequence[Peer],
    environments: Environments,
    databases: Databases,
    *,
    probes: Sequence[Probe] = PROBES,
    say: Say = lambda _text: None,
) -> list[Row]:
    """Play the probes against each product, each on an empty database of its own.

    Args:
        peers: The products.
        environments: Where they are installed.
        databases: Where they get their databases.
        probes: What is played.
        say: Told a line of progress at a time.
    """
    rows = []
    for peer in peers:
        interpreter = environments.interpreter(peer)
        if interpreter is None:
            rows.append(Row(peer=peer, reason=environments.missing(peer), installed=False))
        else:
            rows.append(_Play(peer, interpreter, databases, say).row(probes))
        say(f"{peer.name}: {rows[-1].reason or rows[-1].version}")
    return rows


class _Play:
    """One product under the probes."""

    def __init__(self, peer: Peer, interpreter: Path, databases: Databases, say: Say) -> None:
        self._peer = peer
        self._interpreter = interpreter
        self._databases = databases
        self._say = say

    def row(self, probes: Sequence[Probe]) -> Row:
        about = self._cell(Probe("about", "", _about))
        if about.standing is not Standing.SEEN:
            return Row(peer=self._peer, reason=f"{about.standing}: {about.text}")
        cells = []
        for probe in probes:
            cells.append(self._cell(probe))
            self._say(f"{self._peer.name}, {probe.name}: {cells[-1].text}")
        return Row(peer=self._peer, cells=cells, **about.facts)

    def _cell(self, probe: Probe) -> Cell:
        began = time.monotonic()
        standing, text, seen = Standing.SEEN, "", None
        try:
            seen = self._played(probe)
            text = seen.text
        except NotOffered as reason:
            standing, text = Standing.NOT_OFFERED, str(reason)
        except Hung as reason:
            standing, text = Standing.HUNG, str(reason)
        except Exception as error:  # noqa: BLE001 - whatever a product does, the others go on
            known = isinstance(error, Broken)
            text = str(error) if known else traceback.format_exc().strip().rpartition("\n")[2]
            standing, text = Standing.BROKEN, text[:_SHOWN]
        return Cell(
            probe=probe, standing=standing, text=" ".join(text.split()),
            facts=seen.facts if seen else {}, fine=bool(seen and seen.fine),
            intended=dict(self._peer.intended).get(probe.name, ""),
            wall_s=time.monotonic() - began,
        )  # fmt: skip

    def _played(self, probe: Probe) -> Seen:
        folder = Path(tempfile.mkdtemp(prefix=f"timeball-{self._peer.name}-"))
        try:
            with self._databases.lent(pristine=True) as dsn:
                bench = Bench(
                    self._peer, self._interpreter, dsn=dsn, folder=folder, alone=probe.alone
                )
                try:
                    return probe.run(bench)
                finally:
                    bench.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _about(bench: Bench) -> Seen:
    return Seen(text="", facts=bench.about(), fine=True)


def kept(rows: Sequence[Row]) -> bool:
    """Return whether Timeball's own row, where there is one, is as it promises."""
    own = [row for row in rows if row.peer.own]
    return all(not row.reason and all(cell.fine for cell in row.cells) for row in own)


def block(rows: Sequence[Row], command: str) -> dict[str, Any]:
    """Return the block "peers" of results.json.

    Args:
        rows: What became of each product.
        command: By which it was seen.
    """
    probes = {cell.probe.name: cell.probe.title for row in rows for cell in row.cells}
    return {
        "command": command,
        "kept": kept(rows),
        "probes": probes,
        "rows": {row.peer.name: _record(row) for row in rows},
    }


def _record(row: Row) -> dict[str, Any]:
    status = "played" if row.cells else "broken" if row.installed else "not installed"
    return {
        "status": status,
        "reason": row.reason,
        "version": row.version,
        "python": row.python,
        "requirements": list(row.peer.requirements),
        "configuration": row.peer.configuration,
        "cells": {
            cell.probe.name: {
                "status": str(cell.standing),
                "text": cell.text,
                "facts": dict(cell.facts),
                "intended": cell.intended,
                "wall_s": round(cell.wall_s, 3),
            }
            for cell in row.cells
        },
    }


def table(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows (probe, product, seen) of a block, one probe after the other."""
    rows: Mapping[str, Any] = found["rows"]
    lines = [
        (name, _named(key, row), _told(row["cells"][name]))
        for name in found["probes"]
        for key, row in rows.items()
        if name in row["cells"]
    ]
    return lines + [("all", _named(key, row), row["reason"]) for key, row in rows.items()
                    if not row["cells"]]  # fmt: skip


def _named(name: str, row: Mapping[str, Any]) -> str:
    return f"{name} {row['version']}".strip()


def _told(cell: Mapping[str, Any]) -> str:
    status = "" if cell["status"] == Standing.SEEN else f"{cell['status']}: "
    intended = f" (as documented: {cell['intended']})" if cell["intended"] else ""
    return f"{status}{cell['text']}{intended}"
