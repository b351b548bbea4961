"""What a schedule runs, as it may be shown."""

from __future__ import annotations

from dataclasses import replace

from timeball.core.redaction import redacted, redacted_value
from timeball.importers.found import CommandCall, KindCall


def redacted_call(call: KindCall | CommandCall) -> str:
    """Return what a schedule runs, as one would type it, without its secrets."""
    if isinstance(call, KindCall):
        return str(replace(call, args=redacted_value("", call.args)))
    return redacted(str(call)) + (f" (as {call.user})" if call.user else "")
