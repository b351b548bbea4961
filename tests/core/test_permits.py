"""Permits for a fleet: whatever the workers do with them, the starts keep to the rate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.permits import Law, Permits, Start, proofs, rate_violations
from timeball.core.rate import Rate
from timeball.errors import UsageError

TTL_US, AHEAD_US = 1_000_000, 200_000
S = 1_000_000


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    count, per_s = draw(st.integers(1, 7)), draw(st.sampled_from([0.1, 1, 3]))
    shape = draw(st.sampled_from([{}, {"spread": True}, {"burst": 1}, {"burst": 4}]))
    return Rate(count, per_s, **shape)


# One question of a worker: the time since the one before, how many permits it wants, how late
# each is used (beyond the use-by: never), and whether and when it tells.
ASKS = st.lists(
    st.tuples(
        st.integers(0, 600_000),
        st.integers(1, 6),
        st.lists(st.integers(0, 1_300_000), min_size=6, max_size=6),
        st.none() | st.integers(0, 2_500_000),
    ),
    max_size=40,
)


def starts_of(rate: Rate, asks: list) -> list[int]:
    """Every start of a story, by time; whoever does not tell may be dead, or slow."""
    law, permits, now, starts = Law.of(rate), Permits(), 10**15, []
    told: list[tuple[int, int, int, int]] = []
    for wait_us, want, lates, tells_us in asks:
        now += wait_us
        for _, number, used, late_us in sorted(t for t in told if t[0] <= now):
            permits.spend(law, number, used, late_us)
        told = [each for each in told if each[0] > now]
        assert (permits.opens_us(law, now) == now) == (permits.room(law, now) > 0)
        left = want
        while left > 0:  # in parts, of later and later instants
            at, got = permits.offer(law, now, left)
            assert now <= at <= now + AHEAD_US
            if not got:
                break
            left -= got
            number = permits.take(law, now, got, at)
            used = [late for late in lates[:got] if late < TTL_US]
            starts += [at + late for late in used]
            if tells_us is not None:
                last = max(used, default=0)
                told.append((at + max(last, tells_us), number, len(used), last))
    return sorted(starts)


@given(rate=rates(), asks=ASKS)
@settings(max_examples=300, deadline=None)
def test_whatever_workers_do_with_permits_their_starts_keep_the_law(rate: Rate, asks: list) -> None:
    starts = starts_of(rate, asks)
    rows = [Start("queue:q", rate, at) for at in starts]
    assert list(rate_violations(rows)) == []
    assert all(proof.most <= rate.count for proof in proofs(rows) if rate.burst is None)


@given(rate=rates(), asks=ASKS)
@settings(max_examples=100, deadline=None)
def test_when_it_opens_there_is_room(rate: Rate, asks: list) -> None:
    law, permits, now = Law.of(rate), Permits(), 10**15
    for wait_us, want, *_ in asks:
        now += wait_us
        got = min(want, permits.room(law, now))
        if got:
            permits.take(law, now, got)
        for more in range(law.at_once):
            opens = permits.opens_us(law, now, more + 1)
            assert permits.room(law, opens) > more
            assert opens == now or permits.room(law, opens - 1) <= more
        for more in range(law.at_most):
            soon = permits.soon_us(law, now, more)
            assert soon is not None
            assert permits.soon(law, soon) > more
        assert permits.soon_us(law, now, law.at_most) is None


@given(rate=rates().filter(lambda rate: rate.burst is None), asks=ASKS)
@settings(max_examples=100, deadline=None)
def test_as_many_are_expected_as_those_who_ask_are_given(rate: Rate, asks: list) -> None:
    law, permits, now = Law.of(rate), Permits(), 10**15
    for wait_us, want, *_ in asks:
        now += wait_us
        expected, given_ = permits.soon(law, now), 0
        while given_ < want:  # one at a time, as small questions would
            at, got = permits.offer(law, now, 1)
            if not got:
                break
            permits.take(law, now, got, at)
            given_ += got
        assert given_ == min(want, expected)


@given(before=rates(), rate=rates(), asks=ASKS)
@settings(max_examples=200, deadline=None)
def test_a_changed_rate_owes_no_more_than_what_was_granted(
    before: Rate, rate: Rate, asks: list
) -> None:
    law, permits, now = Law.of(before), Permits(), 10**15
    for wait_us, want, *_ in asks:
        now += wait_us
        got = min(want, permits.room(law, now))
        if got:
            permits.take(law, now, got)
    law = Law.of(rate)
    owed = sum(grant.permits for grant in permits.grants) + law.at_once
    assert permits.opens_us(law, now) <= now + 2 * S + (owed // law.starts + 2) * law.window_us
    assert 0 <= permits.room(law, now) <= law.at_once


def test_permits_do_not_pile_up_while_nobody_asks() -> None:
    for rate in (Rate(5), Rate(5, spread=True), Rate(5, burst=3)):
        law, permits = Law.of(rate), Permits()
        permits.take(law, 10 * S, 1)
        assert permits.room(law, 10_000 * S) == law.at_once <= 5


def test_permits_of_a_dead_worker_run_out_and_never_before() -> None:
    law, permits = Law.of(Rate(5)), Permits()
    permits.take(law, 0, 5)
    assert permits.room(law, 2 * S) == 0
    assert permits.opens_us(law, 0) == 2 * S + 21_000
    assert permits.room(law, 2 * S + 21_000) == 5


def test_what_was_not_used_is_given_out_again_at_once() -> None:
    law, permits = Law.of(Rate(5)), Permits()
    number = permits.take(law, 0, 5)
    permits.spend(law, number, 2, 10_000)
    assert permits.room(law, 20_000) == 3
    permits.spend(law, number, 0, 0)  # told again: the first word counts
    assert permits.room(law, 20_000) == 3


def test_a_clock_that_was_set_back_waits() -> None:
    law, permits = Law.of(Rate(5)), Permits()
    permits.take(law, 100 * S, 1)
    assert permits.room(law, 99 * S) == 0
    assert permits.opens_us(law, 99 * S) == 100 * S


@pytest.mark.parametrize("spread", [False, True])
def test_four_workers_that_stall_get_95_of_a_hundred(*, spread: bool) -> None:
    """In virtual time: each asks when it may, stalls up to 100 ms in every tenth round."""
    rate = Rate(500, spread=spread)
    law, permits = Law.of(rate), Permits()
    due, told, starts, draw = [0, 1, 2, 3], [(), (), (), ()], [], 7
    while (now := min(due)) < 20 * S:
        worker = due.index(now)
        for grant in told[worker]:
            permits.spend(law, *grant)
        told[worker] = ()
        draw = draw * 1_103_515_245 + 12_345 & 0x7FFFFFFF
        late = 2_000 + (draw >> 8) % 100_000 * (draw % 10 == 0)
        got = min(60, permits.room(law, now))
        if got:
            told[worker] = ((permits.take(law, now, got), got, late),)
            starts += [now + late] * got
        due[worker] = max(now + late + 10_000, min(permits.opens_us(law, now), now + 50_000))
    (proof,) = proofs([Start("queue:q", rate, at) for at in starts])
    assert proof.most <= 500
    assert len(starts) >= 0.95 * 500 * 20


def test_a_long_window_is_kept_in_few_grants() -> None:
    law, permits = Law.of(Rate(10_000, per_s=86_400)), Permits()
    for n in range(3_000):
        number = permits.take(law, n * 5 * S, 1)
        permits.spend(law, number, 1, 1_000)
    assert len(permits.grants) < 600


@given(before=rates(), rate=rates() | st.none(), asks=ASKS, rest_us=st.integers(0, 90_000 * S))
@settings(max_examples=200, deadline=None)
def test_what_is_idle_is_as_good_as_new(
    before: Rate, rate: Rate | None, asks: list, rest_us: int
) -> None:
    law, permits, now = Law.of(before), Permits(), 10**15
    for wait_us, want, *_ in asks:
        now += wait_us
        got = min(want, permits.room(law, now))
        if got:
            permits.take(law, now, got)
    now += rest_us
    law = None if rate is None else Law.of(rate)
    if permits.is_idle(law, now):
        assert rest_us >= 86_400 * S or not permits.grants
        assert law is None or permits.room(law, now) == law.at_once
    assert permits.is_idle(law, now + 2 * 86_400 * S)


def test_a_start_too_many_is_found() -> None:
    rows = [Start("queue:q", Rate(2), at) for at in (0, 1, 999_999)]
    (violation,) = rate_violations(rows)
    assert (violation.invariant, violation.subject) == ("I8", "queue q")
    assert list(rate_violations([*rows[:2], rows[2]._replace(at_us=S)])) == []


def test_windows_are_whole_microseconds() -> None:
    with pytest.raises(UsageError, match="whole microseconds"):
        Law.of(Rate(1, per_s=1e-8))
    assert Law.of(Rate(3, burst=2)).rate == Rate(3, burst=2)
