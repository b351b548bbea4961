"""A product made of files: its queue is the folder of the probe, and it never recovers a job."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import bodies

DISTRIBUTION = "pytest"
MODE = os.environ.get("FAKE_MODE", "")

if MODE == "import":
    raise RuntimeError("it does not start,\nin two lines")


async def prepare(_: Any) -> None:
    if MODE == "hang":
        print("no answer, whatever it prints", flush=True)
        await asyncio.sleep(3600)


class _Client:
    def __init__(self, terms: Any) -> None:
        self._terms = terms

    async def submit(self, tags: list[str], what: str) -> list[str]:
        if self._terms.alone:
            raise bodies.NotOffered("it knows no limit")
        for tag in tags:
            place = Path(self._terms.folder, f"new-{tag}")
            place.with_name(f"draft-{tag}").write_text(json.dumps([tag, what]))
            place.with_name(f"draft-{tag}").rename(place)
        return tags

    async def states(self, refs: list[str]) -> list[str]:
        places = [Path(self._terms.folder, f"state-{ref}") for ref in refs]
        return [each.read_text() if each.exists() else "waiting" for each in places]


@asynccontextmanager
async def client(terms: Any) -> AsyncIterator[_Client]:
    yield _Client(terms)


async def work(terms: Any, ready: Any) -> None:
    if MODE == "work":
        raise RuntimeError("no worker")
    ready()
    tasks = set()
    while True:
        for place in Path(terms.folder).glob("new-*"):
            tag, what = json.loads(place.read_text())
            place.unlink()
            tasks.add(asyncio.create_task(_run(Path(terms.folder, f"state-{tag}"), tag, what)))
        await asyncio.sleep(0.01)


async def _run(state: Path, tag: str, what: str) -> None:
    try:
        await bodies.carry_out(tag, what)
    except RuntimeError:
        state.write_text("failed")
    else:
        state.write_text("succeeded")


def fires(**_: str) -> list[str]:
    if MODE == "silent":
        os._exit(7)
    return []
