"""What people have written into a form, field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from timeball.core.cron.written import instant_of
from timeball.core.dependencies import Rule
from timeball.errors import UsageError
from timeball.web.problems import Problem
from timeball.web.routes import strict_json

RULES: Final = tuple(rule for rule in Rule if rule is not Rule.MEMBER)
"""Of edges, as people choose them."""

_DIGITS_MAX: Final = 7
_PARENTS_MAX: Final = 100
_BETWEEN: Final = re.compile(r"[\s,]+")


class Form:
    """The fields of a form; one that is left empty is None.

    Args:
        fields: Each with what was written, as `urllib.parse.parse_qs` gives them.
    """

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str | None:
        """Return what was written, without space around it."""
        return self._fields.get(name, [""])[0].strip() or None

    def whole(self, name: str) -> int | None:
        """Return a number.

        Raises:
            Problem: It is none, or a very large one.
        """
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            raise Problem(400, f"{name}: write a number of at most {_DIGITS_MAX} digits")
        return int(text)

    def parents(self, name: str) -> list[str]:
        """Return the numbers and ids of jobs, with commas or space between them.

        Raises:
            Problem: They are more than a form takes; to leave some out would be to start too early.
        """
        found = [word for word in _BETWEEN.split(self.text(name) or "") if word]
        if len(found) > _PARENTS_MAX:
            raise Problem(
                400,
                f"{name}: write at most {_PARENTS_MAX} jobs here; the API takes a thousand, and "
                "`timeball jobs add-parents` more in several calls",
            )
        return found

    def lines(self, name: str) -> list[str] | None:
        """Return the lines of a text that hold something."""
        found = [line.strip() for line in (self.text(name) or "").splitlines()]
        return [line for line in found if line] or None

    def instant(self, name: str, tz: str) -> str | None:
        """Return an instant with its offset; one without is by the clocks of a zone.

        Raises:
            Problem: It is none, does not exist, or comes twice.
        """
        text = self.text(name)
        try:
            return None if text is None else instant_of(text, lambda: tz).isoformat()
        except UsageError as error:
            raise Problem(400, f"{name}: {error}") from None

    def arguments(self, name: str) -> dict[str, Any]:
        """Return a JSON object.

        Raises:
            Problem: It is none, or means different things to different readers.
        """
        value = strict_json(self.text(name) or "{}", name)
        if not isinstance(value, dict):
            raise Problem(400, f'{name}: write a JSON object, such as {{"user": 7}}')
        return value
