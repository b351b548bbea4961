"""What is kept of the output of a command: its two ends, in bounded memory."""

from __future__ import annotations

from typing import Final

CHUNK: Final = 1 << 16
"""Bytes that are read at a time."""

# PostgreSQL stores no NUL, and a terminal should not obey the rest; tab and line ends stay.
_STORABLE: Final = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


def readable(output: bytes) -> str:
    """Return output as text that any database can store and no terminal obeys."""
    return output.decode("utf-8", "replace").translate(_STORABLE)


class Output:
    """The first and the last part of an output of any length, in bounded memory."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._head_max = keep // 2
        self._tail_max = keep - self._head_max
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append to the output."""
        self.total += len(chunk)
        room = self._head_max - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Trimmed at twice its size, so that each byte is moved once on average.
        if len(self._tail) > 2 * self._tail_max + CHUNK:
            self._trim()

    def text(self) -> str:
        """What was kept, as text any database can store, and a line about what was not."""
        self._trim()
        left_out = self.total - len(self._head) - len(self._tail)
        gap = f"\n[timeball: {left_out} bytes left out]\n" if left_out else ""
        kept = bytes(self._head) + gap.encode() + bytes(self._tail)
        return readable(kept)

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_max)]
