"""Names as parts of an address, whatever they hold."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Path
from pydantic import AfterValidator

_DOTS: Final = re.compile(r"\.{1,2}/*")


def segment(name: object) -> str:
    """Return a name as one part of an address.

    Browsers take the parts . and .. away, also where they are written as %2E, so such names get a
    slash at their end.
    """
    text = str(name)
    return quote(f"{text}/" if _DOTS.fullmatch(text) else text, safe="")


def named(part: str) -> str:
    """Return the name of a part of an address that `segment` has made."""
    return part[:-1] if part.endswith("/") and _DOTS.fullmatch(part) else part


Name = Annotated[
    str,
    Path(
        min_length=1,
        max_length=256,
        description="As one part of the address; of the names . and .. with a slash (%2F) after it",
    ),
    AfterValidator(named),
]
"""The name of a queue or schedule in a route's path."""
