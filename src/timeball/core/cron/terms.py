"""Everything that says when a schedule comes due, besides its zone and what clock jumps do to it.

Written as one JSON text (the expression has a place of its own), with nothing in it that is as
usual, keys in order: equal terms have equal texts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from timeball.core.cron.fields import DayRule
from timeball.core.cron.parse import one_of, plain_text, shown
from timeball.core.cron.walltime import FIRST_YEAR, LAST_YEAR
from timeball.errors import InvalidSchedule

TERMS_BYTES_MAX: Final = 64 * 1024
ANY_OF_MAX: Final = 32
EXCLUDE_MAX: Final = 2_000
JITTER_S_MAX: Final = 86_400
RUNS_MAX: Final = 2**53


class OnExcluded(StrEnum):
    """What becomes of an occurrence on an excluded day."""

    SKIP = "skip"
    NEXT = "next"  # at the same time of the next day that is not excluded
    PREV = "prev"  # at the same time of the last day before that is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When a schedule comes due.

    What is not text, a number or an instant of the right kind is refused here; what an
    expression or an exclusion means is looked at by `agenda`.
    """

    expression: str
    """Cron text, `@every …`, `@calendar …` or `@rrule …`."""

    any_of: tuple[str, ...] = ()
    """More expressions: it comes due when any of them does, once where several do."""

    exclude: tuple[str, ...] = ()
    """Dates (`2026-12-25`), ranges of dates (`2026-12-24/2027-01-01`), cron expressions (the wall
    times that they name, so `* * 25 12 *` is all of Christmas) and names of calendars
    (`holidays:DE-BY`)."""

    on_excluded: OnExcluded = OnExcluded.SKIP
    start_at: datetime | None = None
    """Nothing comes due before it, aware."""

    end_at: datetime | None = None
    """Nothing comes due after it, aware."""

    max_runs: int | None = None
    """The schedule ends after so many runs."""

    jitter_s: int = 0
    """Each occurrence falls due up to so many seconds late, but before the next one."""

    day_rule: DayRule = DayRule.CRON

    def __post_init__(self) -> None:
        put = object.__setattr__
        plain_text(self.expression)
        put(self, "any_of", _texts("any_of", self.any_of, ANY_OF_MAX))
        put(self, "exclude", _texts("exclude", self.exclude, EXCLUDE_MAX))
        put(self, "on_excluded", one_of(OnExcluded, self.on_excluded))
        put(self, "day_rule", one_of(DayRule, self.day_rule))
        put(self, "start_at", _instant("start_at", self.start_at))
        put(self, "end_at", _instant("end_at", self.end_at))
        if self.max_runs is not None:
            _whole("max_runs", self.max_runs, 1, RUNS_MAX)
        _whole("jitter_s", self.jitter_s, 0, JITTER_S_MAX)
        if self.start_at and self.end_at and self.end_at < self.start_at:
            raise InvalidSchedule("end_at is before start_at; exchange them")

    def to_json(self) -> str:
        """Return all but the expression as the text of a JSON object; `{}` for usual terms."""
        written = {
            name: _written(value)
            for name, usual in _USUAL.items()
            if (value := getattr(self, name)) != usual
        }
        return msgspec.json.encode(written, order="sorted").decode()

    @classmethod
    def from_json(cls, text: str, *, expression: str) -> Terms:
        """Return the terms that `to_json` wrote.

        Raises:
            InvalidSchedule: The text is no JSON object of such terms.
        """
        if not isinstance(text, str) or len(text) > TERMS_BYTES_MAX:
            raise InvalidSchedule(f"the terms of a schedule take at most {TERMS_BYTES_MAX} bytes")
        try:
            given = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise InvalidSchedule(f"the terms of a schedule are no JSON object: {error}") from None
        unknown = given.keys() - _USUAL.keys()
        if unknown:
            raise InvalidSchedule(
                f"terms {shown(min(unknown))} are unknown; there are {', '.join(_USUAL)}"
            )
        for name in ("start_at", "end_at"):
            if given.get(name) is not None:
                given[name] = _read_instant(name, given[name])
        return cls(expression=expression, **given)


_USUAL: Final = {each.name: each.default for each in fields(Terms) if each.name != "expression"}


def _written(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _read_instant(name: str, value: object) -> datetime:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidSchedule(
            f"{name} is {shown(value)}; write an instant such as 2026-01-05T09:00:00+00:00"
        ) from None


def _instant(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidSchedule(f"{name} is {shown(value)}; pass an aware datetime")
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise InvalidSchedule(f"{name} lies outside the years 1900 to 2999")
    return value.astimezone(UTC)


def _texts(name: str, values: object, most: int) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, list | tuple):
        raise InvalidSchedule(f"{name} is {shown(values)}; write a list of texts")
    if len(values) > most:
        raise InvalidSchedule(f"{name} holds {len(values)} texts; write at most {most}")
    return tuple(map(plain_text, values))


def _whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidSchedule(
            f"{name} is {shown(value)}; write a whole number from {least} to {most:,}"
        )
