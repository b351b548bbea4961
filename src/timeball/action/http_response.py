"""What a response means: its beginning is kept, in bounds, and made a result or a failure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from timeball.action.failed import ActionFailed
from timeball.action.http_request import HttpRequest
from timeball.chance import now
from timeball.core.payload import storable
from timeball.errors import InvalidPayload
from timeball.observe.concealment import concealed, concealed_start

RETRY_AFTER_MAX_S: Final = 86_400.0
"""The longest wait that a server can ask for."""

_KEPT_HEADERS: Final = frozenset(
    {"content-type", "content-length", "content-encoding", "date", "etag", "location"}
    | {"retry-after", "x-request-id"}
)
_HEADER_MAX: Final = 500
_TEXTS: Final = frozenset({"utf-8", "iso-8859-1", "us-ascii", "windows-1252", "utf-16"})
_SHOWN_MAX: Final = 500
_REDIRECTS: Final = range(300, 400)


class Capture:
    """The beginning of a body, of at most so many bytes, decompressed as far as that."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], limit: int) -> None:
        self.headers = {
            name.decode("latin-1").lower(): _header(value.decode("latin-1"))
            for name, value in headers
            if name.decode("latin-1").lower() in _KEPT_HEADERS
        }
        self.whole = True
        self._limit = limit
        self._body = bytearray()
        self._zip: Any = None
        encoding = self.headers.get("content-encoding", "identity").lower()
        if encoding in {"gzip", "x-gzip", "deflate"}:
            self._zip = zlib.decompressobj(wbits=47)

    def add(self, chunk: bytes) -> bool:
        """Take in what came; return whether there is room for more."""
        room = self._limit - len(self._body)
        if self._zip is not None:
            # One byte more than fits: whether there is more is all that has to be known.
            chunk = self._zip.decompress(chunk, room + 1)
        self._body += chunk[:room]
        # What comes behind the end of what is compressed would only pile up.
        beyond = len(chunk) > room or (self._zip is not None and self._zip.unused_data)
        self.whole = not beyond
        return self.whole

    def text(self) -> str:
        """Return what was kept as text that can be stored."""
        charset = "utf-8"
        for part in self.headers.get("content-type", "").lower().split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip() == "charset" and value.strip(" \"'") in _TEXTS:
                charset = value.strip(" \"'")
        text = self._body.decode(charset, "replace")
        shown = concealed(text) if self.whole else concealed_start(text)
        return storable(shown, len(shown))

    def value(self) -> Any:
        """Return the body as JSON.

        Raises:
            ValueError: It is none, or not all of it was kept.
        """
        if not self.whole:
            raise ValueError(f"it is longer than the {self._limit:,} bytes of capture_bytes")
        return msgspec.json.decode(bytes(self._body))


def _header(text: str) -> str:
    return text if len(text) <= _HEADER_MAX else concealed_start(text[:_HEADER_MAX])


def result_of(request: HttpRequest, status: int, capture: Capture) -> dict[str, Any]:
    """Return what a response gives, where it is a success.

    Raises:
        ActionFailed: It is none.
    """
    if status not in request.success:
        raise _not_wanted(request, status, capture)
    if request.expect:
        _check(request.expect, status, capture)
    return {
        "status": status,
        "headers": capture.headers,
        "body": capture.text(),
        "truncated": not capture.whole,
    }


def _not_wanted(request: HttpRequest, status: int, capture: Capture) -> ActionFailed:
    again = status in request.retry_on
    text = f"the server answered {status}"
    if status in _REDIRECTS and "location" in capture.headers:
        text += f", a redirect to {capture.headers['location']}, which is not followed: call that"
    return ActionFailed(
        f"{text}\n\n{capture.text()[:_SHOWN_MAX]}".rstrip(),
        error_type="HttpStatus",
        again=again,
        retry_after_s=_retry_after_s(capture.headers.get("retry-after")) if again else None,
    )


def _retry_after_s(text: str | None) -> float | None:
    """Return the wait that a server asks for, in seconds or up to a date; None if in neither."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), RETRY_AFTER_MAX_S)
    try:
        at = parsedate_to_datetime(text)
        left_s = (at - now()).total_seconds()
    except (ValueError, TypeError, OverflowError):  # no date, or one without its zone
        return None
    return min(max(0.0, left_s), RETRY_AFTER_MAX_S)


def _check(expect: Mapping[str, Any], status: int, capture: Capture) -> None:
    try:
        value = capture.value()
    except (ValueError, RecursionError, InvalidPayload) as error:
        raise _unexpected(f"the body of the {status} cannot be read as JSON: {error}") from None
    for pointer, wanted in expect.items():
        try:
            found = _at(pointer, value)
        except (LookupError, ValueError, TypeError):
            raise _unexpected(f"the body has nothing at {pointer!r}") from None
        if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
            shown = concealed(str(found))[:_SHOWN_MAX]
            raise _unexpected(f"the body has {shown!r} at {pointer!r}, and not {wanted!r}")


def _unexpected(text: str) -> ActionFailed:
    return ActionFailed(text, error_type="HttpUnexpected", again=False)


def _at(pointer: str, value: Any) -> Any:
    """Return what a JSON pointer (RFC 6901) points to."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            if not (key.isascii() and key.isdigit()):
                raise LookupError(key)
            value = value[int(key)]
        else:
            value = value[key] if isinstance(value, dict) else value[()]
    return value
