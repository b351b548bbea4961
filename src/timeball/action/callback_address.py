"""Addresses of callbacks: each holds a proof that only who has the key can have made it.

The proof is HMAC-SHA256 over the callback's uuid, by a key in the form of Standard Webhooks. It is
computed when it is needed and stored nowhere. What is signed holds no dot, and what the standard
signs holds two, so that neither is ever a proof of the other.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from timeball.action.webhook import key_of
from timeball.errors import UsageError

PATH: Final = "/api/v1/callbacks"
"""Where `timeball serve` takes calls."""

BASE_MAX: Final = 180
"""Characters of what comes before that."""


def shown_address(base: str, callback: UUID) -> str:
    """Return the address of a callback without its proof.

    Args:
        base: Where `timeball serve` can be reached by who is to call: ``https://jobs.example``.
        callback: Which.

    Raises:
        UsageError: `base` is no such address.
    """
    base = base.rstrip("/")
    try:
        parts = urlsplit(base)
        fits = parts.scheme in {"http", "https"} and parts.hostname and not parts.username
    except ValueError:  # half an address
        fits = False
    plain = base.isascii() and base.isprintable() and not set(base) & set(' "\\?#')
    if not (fits and plain and len(base) <= BASE_MAX):
        raise UsageError(
            f"{base[:80]!r} is no address of `timeball serve`: write where others reach it, such "
            "as https://jobs.example"
        )
    return f"{base}{PATH}/{callback}"


def proof(key: str, callback: UUID) -> str:
    """Return what the address of a callback ends in.

    Raises:
        ValueError: The key is no key.
    """
    found = hmac.digest(key_of(key), f"timeball callback {callback}".encode(), sha256)
    return urlsafe_b64encode(found).decode().rstrip("=")


def is_proof(keys: Iterable[str], callback: UUID, given: str) -> bool:
    """Return whether one of the keys has made the address; the time taken says nothing else.

    Raises:
        ValueError: A key is no key.
    """
    said = given.encode("utf-8", "replace")
    matches = [hmac.compare_digest(proof(key, callback).encode(), said) for key in keys]
    return any(matches)
