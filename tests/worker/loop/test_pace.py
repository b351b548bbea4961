"""Batches follow the work: long jobs are not hoarded, short ones come in time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.store.base import CLAIM_MAX
from timeball.worker.pace import Load, Pace

PREFETCH_S = 0.05


def pace_at(rate: int, slots: int = 8) -> Pace:
    """A pace that has seen attempts end at some rate for a second."""
    pace = Pace(slots, PREFETCH_S, 0.0)
    pace.lacking(Load(slots, 0, rate), 1.0)
    return pace


def test_at_first_only_the_slots_are_filled() -> None:
    assert Pace(8, PREFETCH_S, 0.0).lacking(Load(0, 0, 0), 0.0) == 8


def test_long_jobs_are_claimed_only_for_free_slots() -> None:
    pace = pace_at(rate=2)
    assert pace.lacking(Load(8, 0, 2), 1.0) == 0
    assert pace.lacking(Load(7, 0, 3), 1.0) == 1


def test_what_will_begin_soon_is_claimed_ahead() -> None:
    pace = pace_at(rate=2_000)
    assert pace.lacking(Load(8, 0, 2_000), 1.0) == 100
    assert pace.low_water == 50


def test_more_is_claimed_only_once_it_is_worth_a_claim() -> None:
    pace = pace_at(rate=2_000)
    assert pace.lacking(Load(8, 51, 2_000), 1.0) == 0
    assert pace.lacking(Load(8, 50, 2_000), 1.0) == 50
    assert pace.lacking(Load(7, 0, 2_000), 1.0) == 101


def test_many_that_end_in_one_instant_do_not_look_like_a_rate() -> None:
    pace = Pace(8, PREFETCH_S, 0.0)
    pace.lacking(Load(8, 0, 0), 60.0)
    assert pace.lacking(Load(0, 0, 8), 60.0001) == 8


def test_a_rate_of_long_ago_is_forgotten() -> None:
    pace = pace_at(rate=2_000)
    assert pace.lacking(Load(0, 0, 2_000), 2.0) == 8


@settings(max_examples=30)
@given(
    slots=st.integers(1, 100),
    running=st.integers(0, 100),
    waiting=st.integers(0, 2_000),
    finished=st.integers(0, 10**9),
    now_s=st.floats(0, 1e6),
)
def test_no_load_leads_to_more_than_a_claim_may_ask_for(
    slots: int, running: int, waiting: int, finished: int, now_s: float
) -> None:
    pace = Pace(slots, PREFETCH_S, 0.0)
    lacking = pace.lacking(Load(min(running, slots), waiting, finished), now_s)
    assert 0 <= lacking <= CLAIM_MAX
    if lacking:
        assert min(running, slots) + waiting + lacking <= slots + CLAIM_MAX


def test_without_prefetch_only_free_slots_count() -> None:
    pace = Pace(2, 0.0, 0.0)
    assert pace.lacking(Load(2, 0, 10_000), 0.0) == 0
    assert pace.lacking(Load(1, 0, 10_001), 1.0) == 1
