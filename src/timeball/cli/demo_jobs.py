"""The jobs of `timeball demo`."""

from __future__ import annotations

import time

from timeball.action.context import Context
from timeball.action.registry import job
from timeball.core.retry import PermanentError, Retry

QUEUE = "demo"
HOPELESS = 123
"""The letter that can never be sent."""

_TROUBLE_EVERY = 30
_TROUBLES = 2
_SEND_S = 0.1
_SPREAD = 7


def troubled(number: int) -> bool:
    """Return whether the first two attempts to send a letter fail."""
    return number % _TROUBLE_EVERY == 0


@job(name="demo.send", queue=QUEUE, retry=Retry(3, base_s=0.2, cap_s=0.5))
def send(number: int, context: Context) -> str:
    """Send a letter, or pretend to."""
    time.sleep(_SEND_S + number % _SPREAD * _SEND_S / _SPREAD)
    if number == HOPELESS:
        raise PermanentError("no such address")
    if troubled(number) and context.attempt <= _TROUBLES:
        raise ConnectionError("the mail server hung up")
    return f"letter {number} sent"


@job(name="demo.tick", queue=QUEUE)
def tick() -> None:
    """Be run by a schedule."""
