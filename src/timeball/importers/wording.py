"""Numbers of things in words, the same wherever people read them."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """Return a number of things, as in `1 day` and `1,360 times`."""
    return f"{number:,} {what}{'s' * (number != 1)}"
