"""Every occurrence is decided once, however many tick, crash, or mistake the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.audit import audit_schedules
from timeball.core.cron import Timetable, load_zone, parse
from timeball.core.history import ScheduleRecord
from timeball.core.misfire import BOUND
from timeball.core.records import Decision, Firing, ScheduleSpec, Standing
from timeball.core.states import State
from timeball.errors import StoreUnavailable
from timeball.store.base import JobFilter
from timeball.store.memory import MemoryStore
from timeball.worker.ticker import BATCH, Ticker

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


class Clock:
    """A clock that is set by hand, in whatever direction."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at


class Crossed(MemoryStore):
    """A store in which something happens between one ticker's reading and its writing."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.before_fire: list[Callable[[], object]] = []

    def fire(self, firings: Sequence[Firing]) -> list[list[int] | None]:
        if self.before_fire:
            self.before_fire.pop(0)()
        return super().fire(firings)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Crossed:
    return Crossed(clock)


def declare(
    store: MemoryStore, name: str = "tides", expression: str = "* * * * *", **rest: str
) -> None:
    spec = ScheduleSpec(
        **{  # type: ignore[arg-type]  # all of them texts
            "name": name,
            "kind": "tide",
            "expression": expression,
            "tz": "UTC",
            "gap": "skip",
            "overlap": "both",
            **rest,
        }
    )
    store.declare(spec, Standing(store.now(), store.now() + SECOND))


def jobs_of(store: MemoryStore) -> int:
    return sum(store.counts().values())


def assert_clean(store: MemoryStore) -> None:
    tables = {
        s.spec.name: Timetable(parse(s.spec.expression), load_zone(s.spec.tz), "skip", "both")  # type: ignore[arg-type]  # texts will do
        for s in store.schedules()
        if s.state == "active"
    }

    def expected(record: ScheduleRecord) -> Any:
        return tables[record.name].following(record.activated_at)

    records = [(s, rows) for s, rows in store.schedule_histories() if s.name in tables]
    assert list(audit_schedules(records, expected)) == []


# One ticker


def test_an_occurrence_fires_at_its_instant_and_not_before(store: Crossed, clock: Clock) -> None:
    declare(store)
    ticker = Ticker(store)
    clock.at = NOON + MINUTE - timedelta(microseconds=1)
    assert ticker.tick().jobs == 0
    clock.at = NOON + MINUTE
    assert ticker.tick().jobs == 1
    assert ticker.tick().jobs == 0
    assert store.counts() == {State.PENDING: 1}
    assert_clean(store)


def test_a_ticker_rests_until_the_next_second_of_the_stores_clock(
    store: Crossed, clock: Clock
) -> None:
    ticker = Ticker(store, monotonic=lambda: 7.0)
    clock.at = NOON + timedelta(milliseconds=250)
    assert ticker.tick().rest_s == 0.75
    spent = count(7.0, 2.0)
    assert Ticker(store, monotonic=lambda: next(spent)).tick().rest_s == 0


def test_the_job_is_the_schedules_own(store: Crossed, clock: Clock) -> None:
    declare(store)
    clock.at = NOON + MINUTE
    Ticker(store).tick()
    (job,) = store.jobs(JobFilter())
    assert job.kind == "tide"
    assert job.args["__occurrence__"]["nominal_at"] == "2026-03-08T12:01:00+00:00"
    assert job.args["__occurrence__"]["nominal_local"] == "2026-03-08T12:01:00+00:00"


# Several tickers


def test_of_two_tickers_that_read_the_same_only_one_fires(store: Crossed, clock: Clock) -> None:
    declare(store)
    clock.at = NOON + MINUTE
    other = Ticker(store)
    store.before_fire = [other.tick]
    assert Ticker(store).tick().jobs == 0
    assert jobs_of(store) == 1
    assert_clean(store)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.integers(-200, 400)), max_size=12))
def test_tickers_in_any_order_decide_each_occurrence_once(
    steps: list[tuple[int, bool, int]],
) -> None:
    """Some ticks are crossed by one of the other ticker, at clocks that go back and forth."""
    clock = Clock()
    store = Crossed(clock)
    for name, catchup in (("a", "last"), ("b", "all"), ("c", "none")):
        declare(store, name, "* * * * *", catchup=catchup)
    tickers = Ticker(store), Ticker(store)

    def crossing(other: Ticker, by: int) -> Callable[[], None]:
        def tick() -> None:
            clock.at += timedelta(seconds=by)
            other.tick()

        return tick

    for number, crossed, by in steps:
        clock.at += timedelta(seconds=by)
        store.before_fire = [crossing(tickers[1 - number], by)] if crossed else []
        tickers[number].tick()
    assert_clean(store)


def test_a_crash_between_reading_and_firing_leaves_it_due(store: Crossed, clock: Clock) -> None:
    declare(store)
    clock.at = NOON + MINUTE

    def crash() -> None:
        raise StoreUnavailable

    store.before_fire = [crash]
    with pytest.raises(StoreUnavailable):
        Ticker(store).tick()
    assert jobs_of(store) == 0
    assert Ticker(store).tick().jobs == 1
    assert_clean(store)


def test_a_schedule_changed_between_reading_and_firing_fires_nothing(
    store: Crossed, clock: Clock
) -> None:
    declare(store)
    clock.at = NOON + MINUTE
    store.before_fire = [lambda: declare(store, expression="0 0 * * *")]
    assert Ticker(store).tick().jobs == 0
    assert jobs_of(store) == 0


# Clocks


def test_a_clock_set_back_repeats_nothing_and_loses_nothing(store: Crossed, clock: Clock) -> None:
    declare(store)
    ticker = Ticker(store)
    fired = 0
    for offset in (60, 120, 30, 45, 119, 120, 180):
        clock.at = NOON + timedelta(seconds=offset)
        fired += ticker.tick().jobs
    assert fired == 3
    assert_clean(store)


def test_a_clock_set_forward_an_hour_fires_once_and_records_the_rest(
    store: Crossed, clock: Clock
) -> None:
    declare(store)
    clock.at = NOON + HOUR
    assert Ticker(store).tick().jobs == 1
    rows = [row for _, rows in store.schedule_histories() for row in rows]
    assert [row.reason for row in rows] == ["superseded"] * 59 + [None]
    clock.at = NOON + MINUTE
    assert Ticker(store).tick().jobs == 0
    assert_clean(store)


def test_ten_years_are_caught_up_in_bounded_steps(store: Crossed, clock: Clock) -> None:
    declare(store, "every day", "0 0 * * *")
    declare(store, "every year", "0 0 1 1 *")
    clock.at = NOON + timedelta(days=3650)
    ticker = Ticker(store, monotonic=lambda: 0.0)  # however slow the machine is
    first = ticker.tick()
    assert first.rest_s == 0
    decided = {s.name: len(list(rows)) for s, rows in store.schedule_histories()}
    assert decided == {"every day": BOUND, "every year": 10}
    ticks = 1
    while ticker.tick().rest_s == 0:
        ticks += 1
    assert ticks == 3650 // BOUND
    rows = [row for _, rows in store.schedule_histories() for row in rows]
    assert sum(row.decision is Decision.FIRED for row in rows) == 1
    assert_clean(store)


# Schedules that are broken


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"tz": "Atlantis/Capital"}, "Atlantis/Capital"),
        ({"expression": "61 * * * *"}, "61"),
        ({"gap": "leap"}, "leap"),
        ({"overlap": "thrice"}, "thrice"),
        ({"catchup": "some"}, "some"),
        ({"args": "[]"}, "object"),
    ],
)
def test_a_broken_schedule_is_suspended_and_stops_no_other(
    store: Crossed, clock: Clock, broken: dict[str, str], why: str
) -> None:
    declare(store, "a broken one", **broken)
    declare(store, "a good one")
    clock.at = NOON + MINUTE
    assert Ticker(store).tick().jobs == 1
    suspended, good = store.schedules()
    assert (suspended.state, good.state) == ("error", "active")
    assert why in (suspended.error or "")
    assert Ticker(store).tick().jobs == 0


def test_a_schedule_suspended_for_its_zone_goes_on_once_it_is_mended(
    store: Crossed, clock: Clock
) -> None:
    declare(store, tz="Atlantis/Capital")
    clock.at = NOON + MINUTE
    Ticker(store).tick()
    declare(store, tz="Europe/Paris")
    clock.at += MINUTE
    assert Ticker(store).tick().jobs == 1


def test_zone_data_that_cannot_be_read_suspends_nobody(store: Crossed, clock: Clock) -> None:
    declare(store, "a far one", tz="Europe/Paris")
    declare(store, "a near one")
    clock.at = NOON + MINUTE
    readable = False

    def zones(name: str) -> Any:
        if name != "UTC" and not readable:
            raise OSError(24, "too many open files")
        return load_zone(name)

    ticker = Ticker(store, zones)
    assert ticker.tick().jobs == 1
    assert ticker.tick().rest_s > 0
    readable = True
    assert ticker.tick().jobs == 1


def test_a_schedule_whose_instants_have_moved_waits_for_the_new_one(
    store: Crossed, clock: Clock
) -> None:
    declare(store, expression="0 13 * * *")  # declared as due in a second
    clock.at = NOON + MINUTE
    assert Ticker(store, monotonic=lambda: 7.0).tick() == (0, 1.0)
    (held,) = store.schedules()
    assert (held.next_at, held.cursor) == (NOON + HOUR, NOON)


def test_more_schedules_than_one_batch_are_all_decided(store: Crossed, clock: Clock) -> None:
    for number in range(BATCH + 1):
        declare(store, f"number {number}")
    clock.at = NOON + MINUTE
    ticker = Ticker(store)
    assert ticker.tick() == (BATCH, 0.0)
    assert ticker.tick().jobs == 1


# The loop


def test_the_loop_goes_on_when_the_store_comes_back(
    store: Crossed, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeball.worker.ticker._RETRY_S", 0.0)
    declare(store)
    clock.at = NOON + MINUTE
    stop = Event()

    def away() -> None:
        raise StoreUnavailable

    store.before_fire = [away, away, stop.set]
    Ticker(store).run(stop)
    assert jobs_of(store) == 1
