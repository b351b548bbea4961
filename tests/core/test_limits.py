"""Limits on what is under way at once, read from the record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from timeball.core.concurrency import most_at_once
from timeball.core.limits import Holding, Scope, fitting, limit_violations


def holding(at: float, until: float | None, at_once: int, name: str = "k", job: int = 1) -> Holding:
    return Holding(Scope.KEY, name, at, until, job, at_once)


SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9)).map(lambda t: (t[0], t[0] + t[1])), max_size=12
)


@given(spans=SPANS, at_once=st.integers(1, 4))
def test_there_is_a_violation_exactly_where_more_were_at_once(
    spans: list[tuple[int, int]], at_once: int
) -> None:
    rows = [holding(float(a), float(b), at_once) for a, b in sorted(spans)]
    assert bool(list(limit_violations(rows))) == (most_at_once(spans) > at_once)


def test_who_comes_when_another_goes_is_not_at_once_with_him() -> None:
    assert list(limit_violations([holding(0, 1, 1), holding(1, None, 1)])) == []


def test_names_are_counted_apart() -> None:
    rows = [holding(0, None, 1, "a"), holding(0, None, 1, "b")]
    assert list(limit_violations(rows)) == []


def test_who_was_let_in_by_a_higher_limit_may_stay_when_it_is_lowered() -> None:
    rows = [holding(0, 9, 2), holding(1, None, 2), holding(9, None, 1), holding(10, None, 1)]
    found = list(limit_violations(rows[:3]))
    assert found == []  # the one of the higher limit is still there
    (violation,) = limit_violations(rows)
    assert (violation.invariant, violation.subject) == ("I9", "key k")


def test_the_most_particular_name_fits() -> None:
    names = ["*", "tenant-*", "tenant-vip-*", "tenant-7"]
    keys = ("tenant-7", "tenant-8", "tenant-vip-1", "else")
    assert [fitting(names, key) for key in keys] == ["tenant-7", "tenant-*", "tenant-vip-*", "*"]
    assert fitting(["tenant-7"], "else") is None
