"""Runs one adapter on the product's own interpreter, and speaks JSON lines for it.

``python host.py with_NAME about|fires|serve|work``: the first line of stdin has the terms, each
line of stdout is an answer. When stdin ends, so does this process with all that it has started.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import signal
import sys
from importlib import import_module, metadata
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timeball.certify.peers.adapters import bodies
else:
    import bodies


def main() -> None:
    """Carry out what the command says, for the adapter that it names."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a product prints is no answer

    def tell(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    _, name, verb = sys.argv
    logging.basicConfig(level=logging.WARNING)
    brief = json.loads(sys.stdin.readline())
    try:
        adapter = import_module(name)
        _carry_out(adapter, verb, brief, tell)
    except bodies.NotOffered as reason:
        tell(not_offered=str(reason))
    except Exception as error:
        tell(error=f"{type(error).__name__}: {error}"[:300])
        raise SystemExit(1) from error


def _carry_out(adapter: Any, verb: str, brief: dict[str, Any], tell: Any) -> None:
    if verb == "about":
        version = metadata.version(adapter.DISTRIBUTION)
        tell(version=version, python=platform.python_version())
    elif verb == "fires":
        tell(fires=[adapter.fires(**case) for case in brief["cases"]])
    else:
        terms = bodies.Terms(**brief)
        os.environ[bodies.FOLDER] = terms.folder
        asyncio.run(
            _serve(adapter, terms, tell) if verb == "serve" else _work(adapter, terms, tell)
        )


async def _serve(adapter: Any, terms: bodies.Terms, tell: Any) -> None:
    """Make the schema, then answer requests until stdin ends."""
    await adapter.prepare(terms)
    async with adapter.client(terms) as client:
        tell(ready=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            request = json.loads(line)
            verb = getattr(client, request.pop("verb"))
            tell(answer=await verb(**request))


async def _work(adapter: Any, terms: bodies.Terms, tell: Any) -> None:
    Thread(target=_end_with_stdin, daemon=True).start()
    await adapter.work(terms, lambda: tell(ready=True))


def _end_with_stdin() -> None:
    """End with the harness, whatever became of it."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
