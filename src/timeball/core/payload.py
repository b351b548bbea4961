"""What may be stored: arguments are refused where they cannot be, results are made to fit.

PostgreSQL's jsonb takes neither U+0000 nor a lone surrogate, and JSON has no NaN.
Arguments come from a caller who can be told, so they are refused with the path
to the offending value. Results and error texts come at a time when nobody can
be told, so they are always made storable and marked as changed: one job must
never poison the batch that it is settled with.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from timeball.errors import InvalidPayload

ARGS_MAX: Final = 256 * 1024
"""Bytes of encoded arguments."""

RESULT_MAX: Final = 256 * 1024
"""Bytes of an encoded result."""

ERROR_MAX: Final = 16 * 1024
"""Characters of an error text."""

DEPTH_MAX: Final = 64

INTEGER_BITS_MAX: Final = 1024
"""Reading a longer one costs time that grows with the square of its length."""

SEALED: Final = "$sealed"
"""The one name in the JSON object that stands for a payload that was encrypted."""

_UNDECODABLE_KEPT: Final = 500

_BINARY: Final = (bytes, bytearray, memoryview)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_args(args: dict[str, Any]) -> str:
    """Return `args` as the text of a JSON object.

    Raises:
        InvalidPayload: A value that JSON or PostgreSQL cannot hold, with its path and
            what to pass instead; or more than 256 KiB, or more than 64 levels.
    """
    if not all(isinstance(name, str) for name in args):
        raise InvalidPayload("the arguments of a job are named: every key must be a str")
    text = _encode_or_explain(args)
    if len(text) > ARGS_MAX:
        raise InvalidPayload(
            f"the arguments take {len(text):,} bytes and at most {ARGS_MAX:,} fit: "
            "store the data elsewhere and pass its address"
        )
    return text


def encode_said(value: Any) -> str:
    """Return the JSON text of a result that somebody outside has given.

    Raises:
        InvalidPayload: As in `encode_args`.
    """
    text = _encode_or_explain(value)
    if len(text) > RESULT_MAX:
        raise InvalidPayload(f"it takes {len(text):,} bytes and at most {RESULT_MAX:,} fit")
    return text


def decode_args(text: str) -> dict[str, Any]:
    """Return the arguments of a job as a dictionary.

    Raises:
        InvalidPayload: The text is not that of a JSON object.
    """
    try:
        args = _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidPayload(f"the stored arguments cannot be decoded: {error}") from None
    if not isinstance(args, dict):
        raise InvalidPayload(f"the stored arguments are a {type(args).__name__}, not an object")
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _explain(args, "args", 0)  # how deep a reader can go depends on the version of Python
    return args


def decode_value(text: str | None) -> Any:
    """Return the value whose JSON text is `text`; None for None.

    For readers, who show many jobs at once and must not fail for one: what cannot be decoded
    comes back as ``{"undecodable": "<its beginning>", "reason": "..."}``.
    """
    if text is None:
        return None
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return {"undecodable": text[:_UNDECODABLE_KEPT], "reason": str(error)}


def encode_result(value: Any) -> str | None:
    """Return the JSON text of what a job returned, None for None.

    Whatever JSON or PostgreSQL cannot hold is written as a marked text in place of
    the result: ``{"unstorable": "<what it was>", "reason": "..."}``.
    """
    if value is None:
        return None
    try:
        text = _encode_or_explain(value)
    except InvalidPayload as error:
        return _unstorable(value, str(error))
    if len(text) > RESULT_MAX:
        kept = f"{len(text):,} bytes, and at most {RESULT_MAX:,} are kept"
        return _unstorable(value, f"{kept}: store it elsewhere, and return where it is")
    return text


def storable(text: str, limit: int = ERROR_MAX) -> str:
    """Return `text` so that PostgreSQL can hold it: NUL and lone surrogates spelt out, cut."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n… {len(text) - limit:,} characters left out …\n{text[-half:]}"
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _unstorable(value: Any, reason: str) -> str:
    return _encode({"unstorable": type(value).__name__, "reason": storable(reason, 500)}).decode()


def _encode_or_explain(value: Any) -> str:
    try:
        # Dates, enums, dataclasses and the like become what JSON has; bytes stay, to be refused.
        plain = msgspec.to_builtins(value, builtin_types=_BINARY)
        _explain(plain, "args", 0)
        return _encode(plain).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, InvalidPayload):
            raise
        _explain(value, "args", 0)
        raise InvalidPayload(f"not storable as JSON: {error}") from None


def _explain(value: Any, path: str, depth: int) -> None:
    """Raise `InvalidPayload` for the first value in it that cannot be stored."""
    if depth > DEPTH_MAX:
        raise InvalidPayload(f"nested deeper than {DEPTH_MAX} levels at {path[:80]}: flatten it")
    if isinstance(value, dict):
        for key, item in value.items():
            _explain_leaf(key, f"{path} (a key)")
            _explain(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for n, item in enumerate(value):
            _explain(item, f"{path}[{n}]", depth + 1)
    else:
        _explain_leaf(value, path)


def _explain_leaf(value: Any, path: str) -> None:
    match value:
        case str():
            _explain_text(value, path)
        case float() if not math.isfinite(value):
            raise InvalidPayload(f"{path} is {value}, which JSON cannot hold: pass null or a text")
        case bytes() | bytearray() | memoryview():
            raise InvalidPayload(f"{path} is binary: pass base64 text, or its address")
        case int() if value.bit_length() > INTEGER_BITS_MAX:
            raise InvalidPayload(f"{path} has more than {INTEGER_BITS_MAX} bits: pass it as a text")
        case _:
            pass


def _explain_text(value: str, path: str) -> None:
    if "\0" in value:
        raise InvalidPayload(f"{path} contains U+0000, which PostgreSQL cannot hold: remove it")
    if not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
        raise InvalidPayload(f"{path} contains a lone surrogate: decode the text properly first")
