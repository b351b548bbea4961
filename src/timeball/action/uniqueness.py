"""Unique keys as a caller writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from timeball.action.words import word
from timeball.core.uniqueness import OnClash, Unique, UniqueScope, UniqueUntil
from timeball.errors import UsageError

KEY_MAX: Final = 1_000
"""Bytes of a unique key: it must fit into an index."""


def unique_of(options: Mapping[str, Any]) -> Unique | None:
    """Return the unique key among the options of a submit, None if there is none.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    key = options.get("unique")
    if key is None:
        given = sorted({"unique_scope", "unique_until", "on_clash"} & options.keys())
        if given:
            raise UsageError(f"{', '.join(given)} says how a job is unique: pass unique= too")
        return None
    fits = isinstance(key, str) and key.isprintable()
    if not fits or not 0 < len(key.encode(errors="replace")) <= KEY_MAX:
        raise UsageError(f"unique is {key!r:.80}: write 1 to {KEY_MAX:,} bytes of printable text")
    return Unique(
        key=key,
        scope=word(UniqueScope, "unique_scope", options.get("unique_scope", "kind")),
        until=word(UniqueUntil, "unique_until", options.get("unique_until", "ended")),
        on_clash=word(OnClash, "on_clash", options.get("on_clash", "ignore")),
    )
