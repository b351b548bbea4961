"""Sessions of people who have shown a token in a browser: in memory, rotated, and soon over."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from timeball.web.tokens import Token, hashed

COOKIE: Final = "timeball_session"
AGE_MAX_S: Final = 12 * 3600.0
IDLE_MAX_S: Final = 3600.0
SESSIONS_MAX: Final = 1_000
"""The oldest ends when there are more."""


class _Session(NamedTuple):
    token: Token
    begun_s: float
    seen_s: float


class Sessions:
    """Who is signed in. Any thread.

    Args:
        clock: Seconds that only go forwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._open: OrderedDict[str, _Session] = OrderedDict()

    def begin(self, token: Token, *, old: str | None = None) -> str:
        """Return the secret of a new session; the one with the secret `old` is over by it."""
        secret, now_s = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._open.pop(hashed(old or ""), None)
            self._open[hashed(secret)] = _Session(token, now_s, now_s)
            while len(self._open) > SESSIONS_MAX:
                self._open.popitem(last=False)
        return secret

    def token(self, secret: str) -> Token | None:
        """Return for whom a session speaks; None where there is none, or it is over."""
        key, now_s = hashed(secret), self._clock()
        with self._lock:
            found = self._open.get(key)
            if found is None:
                return None
            if now_s - found.begun_s > AGE_MAX_S or now_s - found.seen_s > IDLE_MAX_S:
                del self._open[key]
                return None
            self._open[key] = found._replace(seen_s=now_s)
        return found.token

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._lock:
            self._open.pop(hashed(secret), None)
