"""HTTP jobs carried out against a server of our own, as a worker does it."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

from tests.action.attempts import turn
from tests.action.server import Answer, Server, serving

from timeball.action.context import StopSign
from timeball.action.http_kind import KIND
from timeball.action.python import carry_out_async
from timeball.core.outcomes import Outcome, Raised, Returned
from timeball.core.payload import encode_args

UUID_TEXT = str(UUID(int=7))


async def carried_out(server: Server, timeout_s: float | None, **args: Any) -> Outcome:
    """What becomes of one request."""
    given = {"method": "GET", "url": server.url, "allow": ["127.0.0.0/8"], **args}
    asked = turn(encode_args(given), timeout_s=timeout_s)
    return await carry_out_async(KIND, asked, StopSign())


def outcome(
    *answers: Answer, certificate: str | None = None, timeout_s: float | None = None, **args: Any
) -> Outcome:
    """What becomes of one request to a server that answers like this."""

    async def main() -> Outcome:
        async with serving(*answers, certificate=certificate) as server:
            return await carried_out(server, timeout_s, **args)

    return asyncio.run(main())


def result(*answers: Answer, **args: Any) -> dict[str, Any]:
    """The result of a request that succeeds."""
    found = outcome(*answers, **args)
    assert isinstance(found, Returned), found
    value: dict[str, Any] = json.loads(found.result or "null")
    return value


def failure(*answers: Answer, **args: Any) -> Raised:
    """The failure of a request that does not."""
    found = outcome(*answers, **args)
    assert isinstance(found, Raised), found
    assert "Traceback" not in found.error
    return found
