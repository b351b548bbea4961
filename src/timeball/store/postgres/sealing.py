"""Payloads that only those can read who have the key: a hook for encryption of one's own.

`TIMEBALL_SEAL` names an entry point of the group ``timeball.seals``: a function without
parameters that returns a `Seal`. From then on what this process writes as arguments, results and
error texts of jobs is sealed, and what it reads is opened. What was written before, or by others
without a seal, stays as it is and is read as it is.
"""

from __future__ import annotations

import logging
import os
from base64 import b64decode, b64encode
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from timeball.core.payload import SEALED, decode_value, storable
from timeball.errors import UsageError

VARIABLE: Final = "TIMEBALL_SEAL"
GROUP: Final = "timeball.seals"

_log = logging.getLogger(__name__)
_START: Final = f'{{"{SEALED}":'


@runtime_checkable
class Seal(Protocol):
    """What a program brings to have payloads encrypted. Called from any thread."""

    def close(self, text: bytes, about: bytes) -> bytes:
        """Return `text` so that only `open` with the same `about` can read it.

        Args:
            text: What is to be kept secret.
            about: What it is, such as ``b"args:<uuid of the job>"``, to be authenticated with it:
                so nobody can have a worker open the arguments of another job.
        """
        ...

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Return what `close` was given; raise any exception where it was not by this key."""
        ...


def chosen() -> Seal | None:
    """Return the seal of this process; None where it has none.

    Raises:
        UsageError: `TIMEBALL_SEAL` names none that is installed, or it cannot be made.
    """
    name = os.environ.get(VARIABLE)
    return _made(name) if name else None


@cache
def _made(name: str) -> Seal:
    for found in entry_points(group=GROUP, name=name):
        try:
            seal = found.load()()
        except Exception as error:
            raise UsageError(f"{VARIABLE}={name}: {found.value} has failed: {error!r}") from error
        if not isinstance(seal, Seal):
            raise UsageError(f"{VARIABLE}={name}: {found.value} returns no seal: see {__name__}")
        return seal
    raise UsageError(
        f"{VARIABLE}={name}: no installed package has an entry point of that name in {GROUP}"
    )


def closed(text: str, about: str) -> str:
    """Return a JSON text as it is stored: sealed, as a JSON object, if this process has a seal.

    Raises:
        UsageError: The seal has failed; nothing must be stored then.
    """
    seal = chosen()
    if seal is None or text == "{}" or text.startswith(_START):
        return text  # sealed by whoever knew more than this process, or nothing to hide
    name = os.environ[VARIABLE]
    try:
        sealed = b64encode(seal.close(text.encode(), about.encode())).decode()
    except Exception as error:
        raise UsageError(f"the seal {name} has failed: {error!r}") from error
    return msgspec.json.encode({SEALED: f"{name}:{sealed}"}).decode()


def closed_end(text: str | None, about: str) -> str | None:
    """Return a result or error as it is stored. Where the seal fails, it is not kept at all."""
    if text is None:
        return None
    try:
        return closed(text, about)
    except UsageError as error:
        _log.error("%s of a job is not kept: %s", about, error)
        reason = {"unstorable": about, "reason": storable(str(error), 500)}
        return msgspec.json.encode(reason).decode()


def opened(text: str, about: str) -> str:
    """Return what was stored as it was before it was sealed; unchanged where that cannot be."""
    if SEALED not in text:
        return text
    value = decode_value(text)
    seal = chosen()
    if seal is None or not (isinstance(value, dict) and value.keys() == {SEALED}):
        return text
    try:
        name, _, sealed = value[SEALED].partition(":")
        if name != os.environ[VARIABLE]:
            return text
        return seal.open(b64decode(sealed, validate=True), about.encode()).decode()
    except Exception as error:  # noqa: BLE001 - whatever the seal raises; a reader shows many jobs
        _log.warning("%s of a job cannot be opened: %r", about, error)
        return text


def opened_value(text: str | None, about: str) -> Any:
    """Return the value of a stored JSON text, opened."""
    return decode_value(None if text is None else opened(text, about))


def opened_text(text: str | None, about: str) -> str | None:
    """Return a stored text that is no JSON unless it is sealed."""
    return text if text is None or not text.startswith(_START) else opened(text, about)
