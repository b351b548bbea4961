"""Requests and answers on one connection, one after the other, by the rules of HTTP/1.1.

A connection is used again only if the last exchange on it has an end that both sides see at the
same place: what a server says beyond its answer would be taken for the answer to the next job.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final

import h11

from timeball.action.http_wire import Broken, Wire

HEAD_MAX: Final = 64 * 1024
"""Bytes of one head of an answer."""

INTERIM_MAX: Final = 20
"""Answers such as 100 and 103 that may come before the one that counts."""

_ANSWERS: Final = 300  # from this status on a server may have left the content unread


class Connection:
    """One connection, lent to one request at a time."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self._read_s = 0.0
        self._content_left_unread = False

    async def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        read_s: float,
    ) -> h11.Response:
        """Send a request and return the head of its answer.

        Args:
            method: Of the request.
            path: With the query.
            headers: Without the length of the content.
            body: The content.
            read_s: Seconds for each wait, here and in `chunks`.

        Raises:
            Broken: The connection was lost, or the answer is none by the rules.
            TooSlow: Nothing came for so long.
        """
        self._read_s = read_s
        sent = [(name, value) for name, value in headers.items()]
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            sent.append(("Content-Length", str(len(body or b""))))
        request = h11.Request(method=method, target=path, headers=sent)
        events = (request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())
        self.wire.write(b"".join(self._talk.send(event) or b"" for event in events))
        for _ in range(INTERIM_MAX + 1):
            event = await self._next()
            if isinstance(event, h11.Response):
                self._content_left_unread = bool(body) and event.status_code >= _ANSWERS
                return event
        raise Broken(f"the server has sent more than {INTERIM_MAX} answers that only announce one")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the content of the answer as it comes.

        Raises:
            Broken, TooSlow: As of `ask`.
        """
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    def rest(self) -> bool:
        """Return whether it can be used again; else it has to be ended."""
        talk = self._talk
        if (
            (talk.our_state, talk.their_state) != (h11.DONE, h11.DONE)
            or talk.trailing_data != (b"", False)
            or self._content_left_unread
            or not self.wire.rest()
        ):
            return False
        talk.start_next_cycle()
        return True

    async def _next(self) -> h11.Event:
        while True:
            try:
                event = self._talk.next_event()
            except h11.RemoteProtocolError as error:
                raise Broken(str(error)) from None
            if isinstance(event, h11.Event):
                return event
            data = await self.wire.take(self._read_s)
            if not data and self._talk.their_state is h11.SEND_RESPONSE:
                raise Broken("the server has ended the connection without an answer")
            self._talk.receive_data(data)
