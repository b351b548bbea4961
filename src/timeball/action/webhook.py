"""Signatures of requests by the Standard Webhooks specification 1.0, symmetric form.

Three headers: ``webhook-id``, ``webhook-timestamp`` in seconds, and ``webhook-signature``, a list
of ``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body``. While a key is being replaced,
the list holds a signature by each of them.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

PREFIX: Final = "whsec_"
TOLERANCE_S: Final = 300.0
KEY_MIN, KEY_MAX = 24, 64
_DIGITS_MAX: Final = 20


class SignatureInvalid(ValueError):
    """A request is not from whom it says, was changed, or is too old; the text says which."""


def signed_headers(keys: Iterable[str], *, id_: str, at_s: float, body: bytes) -> dict[str, str]:
    """Return the headers that sign a request.

    Args:
        keys: One, or during a rotation several, as ``whsec_`` and base64.
        id_: The same for all attempts, so that a receiver knows a repetition.
        at_s: Now, in epoch seconds.
        body: As it is sent.

    Raises:
        ValueError: A key is no key.
    """
    stamp = str(int(at_s))
    signatures = (_signature(key_of(key), id_, stamp, body) for key in keys)
    return {
        "webhook-id": id_,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(signatures),
    }


def verify(keys: Iterable[str], headers: Mapping[str, str], body: bytes, *, now_s: float) -> None:
    """Return if one of the keys has signed a request; what a receiver written in Python calls.

    Args:
        keys: Those that are valid now, as ``whsec_`` and base64.
        headers: Of the request, with names in any case.
        body: As it was received.
        now_s: Now, in epoch seconds; a signature holds for five minutes to both sides.

    Raises:
        SignatureInvalid: None has, or the request is too old or too new.
        ValueError: A key is no key.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id_, stamp = given["webhook-id"], given["webhook-timestamp"]
        signatures = given["webhook-signature"].split(" ")
    except KeyError as error:
        raise SignatureInvalid(f"the header {error.args[0]} is missing") from None
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= _DIGITS_MAX):
        raise SignatureInvalid("webhook-timestamp is no number of seconds")
    if abs(now_s - int(stamp)) > TOLERANCE_S:
        raise SignatureInvalid(f"it was signed more than {TOLERANCE_S:g} s from now")
    wanted = [_signature(key_of(key), id_, stamp, body) for key in keys]
    # Every pair is compared, so that the time taken says nothing about which one is right.
    matches = [
        hmac.compare_digest(one.encode(), other.encode("utf-8", "replace"))
        for one in wanted
        for other in signatures
    ]
    if not any(matches):
        raise SignatureInvalid("no signature is by one of the keys")


def _signature(key: bytes, id_: str, stamp: str, body: bytes) -> str:
    signed = b".".join((id_.encode(), stamp.encode(), body))
    return f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}"


def key_of(text: str) -> bytes:
    """Return the bytes of a key that is given as ``whsec_`` and base64.

    Raises:
        ValueError: It is no key.
    """
    try:
        key = b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # Not named: what is wrong here is a secret.
    if not KEY_MIN <= len(key) <= KEY_MAX:
        raise ValueError(
            f"a signing key is {PREFIX} and the base64 of {KEY_MIN} to {KEY_MAX} random bytes"
        )
    return key
