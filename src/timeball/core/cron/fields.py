"""What a cron expression is made of, and the text that says the same again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

LAST = -1
_FIRST_OF = {5: 1, 6: 0, 7: 0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """What a field may hold: values from `low` to `high`, which repeat after `size`."""

    name: str
    low: int
    high: int
    size: int
    names: tuple[str, ...] = ()


SECOND = Kind(name="second", low=0, high=59, size=60)
MINUTE = Kind(name="minute", low=0, high=59, size=60)
HOUR = Kind(name="hour", low=0, high=23, size=24)
DAY = Kind(name="day-of-month", low=1, high=31, size=31)
MONTH = Kind(
    name="month",
    low=1,
    high=12,
    size=12,
    names=("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
# Sunday is 0 and 7, so eight numbers name seven days
WEEKDAY = Kind(
    name="day-of-week",
    low=0,
    high=7,
    size=7,
    names=("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
)
YEAR = Kind(name="year", low=1970, high=2999, size=1030)


@dataclass(frozen=True, slots=True)
class Span:
    """Every `step`-th value from `first` to `last`, past the end of the field if need be."""

    first: int
    last: int
    step: int = 1
    star: bool = False

    def __str__(self) -> str:
        step = f"/{self.step}" if self.step > 1 else ""
        if self.star:
            return f"*{step}"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}{step}"

    def values(self, kind: Kind) -> range:
        """Return the values, wrapped ones still above `high`."""
        last = self.last if self.first <= self.last else self.last + kind.size
        return range(self.first, last + 1, self.step)


@dataclass(frozen=True, slots=True)
class FromEnd:
    """The day `back` days before the last of the month: `L`, `L-3`."""

    back: int

    def __str__(self) -> str:
        return f"L-{self.back}" if self.back else "L"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The Monday to Friday nearest to a day, in the same month: `15W`, `LW`."""

    day: int

    def __str__(self) -> str:
        return "LW" if self.day == LAST else f"{self.day}W"


@dataclass(frozen=True, slots=True)
class Nth:
    """The n-th or the last of a weekday in the month: `5#3`, `5L`."""

    weekday: int
    nth: int

    def __str__(self) -> str:
        return f"{self.weekday}L" if self.nth == LAST else f"{self.weekday}#{self.nth}"


@dataclass(frozen=True, slots=True)
class Hashed:
    """A value, or every `step`-th one, that the schedule's name picks: `H`, `H(1-5)`, `H/15`."""

    first: int
    last: int
    step: int
    start: int
    bounded: bool

    def __str__(self) -> str:
        bounds = f"({self.first}-{self.last})" if self.bounded else ""
        return f"H{bounds}{f'/{self.step}' if self.step else ''}"

    def values(self) -> range:
        """Return the values that were picked."""
        return range(self.start, self.last + 1 if self.step else self.start + 1, self.step or 1)


Item = Span | FromEnd | Nearest | Nth | Hashed


def spread(name: str, salt: str, size: int) -> int:
    """Return a number below `size` that depends on a schedule's name and nothing of this machine.

    The salt keeps two uses of one name apart.
    """
    digest = hashlib.sha256(f"{salt}\0{name}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % size


class DayRule(StrEnum):
    """Whether a day must fit both day fields or one of them, where both are restricted."""

    CRON = "cron"  # both where either begins with `*`, else one: what Vixie's cron does
    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its list items as written, and the plain values among them in order."""

    items: tuple[Item, ...]
    values: tuple[int, ...] = field(repr=False)

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    @property
    def star(self) -> bool:
        """Whether the text begins with `*`: what Vixie's cron goes by."""
        first = self.items[0]
        return isinstance(first, Span) and first.star

    @property
    def everything(self) -> bool:
        """Whether the field is a plain `*`."""
        return str(self) == "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A parsed expression. Two are equal when their canonical texts, and what `H` picks, are.

    `arity` is the number of fields written: seconds come first in 6, and the year last in 7.
    """

    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    year: Field
    arity: int = 5
    day_rule: DayRule = DayRule.CRON

    def __str__(self) -> str:
        return self.canonical()

    def canonical(self) -> str:
        """Return the expression in its plainest text; parsing it gives an equal `Cron`."""
        fields = (self.minute, self.hour, self.day, self.month, self.weekday)
        texts = [str(self.second), *map(str, fields), str(self.year)]
        return " ".join(texts[_FIRST_OF[self.arity] :][: self.arity])

    @property
    def both_days(self) -> bool:
        """Whether a day must fit both day fields, and not just one of them."""
        if self.day.everything or self.weekday.everything:
            return True  # a field that takes every day restricts nothing under any rule
        if self.day_rule is DayRule.CRON:
            return self.day.star or self.weekday.star
        return self.day_rule is DayRule.AND

    @property
    def unit_s(self) -> int:
        """The seconds between two neighbouring times that the expression can tell apart."""
        return 60 if self.arity == min(_FIRST_OF) else 1
