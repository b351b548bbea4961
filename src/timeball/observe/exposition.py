"""The text that Prometheus reads: exposition format 0.0.4.

See "Text-based format" in the documentation of Prometheus.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from timeball.observe.board import Samples
from timeball.observe.families import FAMILIES, Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(samples: Samples, families: Iterable[Family] = FAMILIES) -> str:
    """Return all samples as text, by family and then by label; families without any are left out.

    Args:
        samples: The numbers of each series.
        families: What there is to tell.
    """
    series = defaultdict(list)
    for (name, labels), numbers in samples.items():
        series[name].append((labels, numbers))
    lines: list[str] = []
    for family in families:
        if series[family.name]:
            lines.append(f"# HELP {family.name} {family.says.translate(_HELP)}")
            lines.append(f"# TYPE {family.name} {family.form}")
        for labels, numbers in sorted(series[family.name]):
            pairs = [*zip(family.labels, labels, strict=True)]
            lines += _lines(family, pairs, numbers)
    return "".join(f"{line}\n" for line in lines)


def _lines(
    family: Family, pairs: Sequence[tuple[str, str]], numbers: Sequence[int]
) -> Iterator[str]:
    name, labels, first = family.name, _labels(pairs), _scaled(numbers[0], family.scale)
    if family.cells == 1:
        yield f"{name}{labels} {first}"
        return
    counts = list(accumulate(numbers[1 : family.cells]))
    if family.bounds:
        bounds = [*(_scaled(bound, family.scale) for bound in family.bounds), "+Inf"]
        for bound, count in zip(bounds, counts, strict=True):
            yield f"{name}_bucket{_labels([*pairs, ('le', bound)])} {count}"
    yield f"{name}_sum{labels} {first}"
    yield f"{name}_count{labels} {counts[-1]}"


def _labels(pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_VALUE)}"' for name, value in pairs) + "}"


def _scaled(number: int, scale: int) -> str:
    return str(number) if scale == 1 else repr(number / scale)
