"""New zone data while schedules run: no time of day is lost, and none runs twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.store.conftest import STORES
from tests.store.world import World, schedule

from timeball.core.audit import audit_schedules
from timeball.core.cron import Zone
from timeball.core.records import Decision, ScheduleSpec
from timeball.core.standing import standing
from timeball.errors import InvalidSchedule
from timeball.worker.agendas import Agendas
from timeball.worker.ticker import DEFERENCE, Ticker
from timeball.worker.zone_watch import EVERY_S

DAY = timedelta(days=1)
BEGINNING = -(2**62)
# In 2026 Vancouver was to leave summer time on 1 November, and then stayed on it.
LEAVES = datetime(2026, 11, 1, 9, tzinfo=UTC)
NINE_IN_SUMMER = datetime(2026, 10, 31, 16, tzinfo=UTC)
NINE_IN_WINTER = datetime(2026, 11, 1, 17, tzinfo=UTC)


def vancouver(version: str, *, leaves: bool) -> Zone:
    starts = (BEGINNING, int(LEAVES.timestamp())) if leaves else (BEGINNING,)
    offsets = (-25_200, -28_800) if leaves else (-25_200,)
    return Zone("America/Vancouver", starts, offsets, version=version)


LEAVING = vancouver("2025b", leaves=True)
STAYING = vancouver("2026f", leaves=False)


class Site:
    """A store, and nodes with the zone data of the test."""

    def __init__(self, world: World) -> None:
        self.world, self.elapsed_s, self.zone = world, 0.0, LEAVING

    def node(self, zone: Zone) -> Ticker:
        return Ticker(self.world.store, lambda _: zone, monotonic=lambda: self.elapsed_s)

    def at(self, instant: datetime) -> None:
        self.world.travel((instant - self.world.store.now()).total_seconds())

    def declare(self, zone: Zone, **fields: str) -> None:
        spec: ScheduleSpec = schedule(
            "nine", **{"expression": "0 9 * * *", "tz": "America/Vancouver", **fields}
        )
        agenda = Agendas(lambda _: zone).of(spec)
        self.world.store.declare(spec, standing(agenda, self.world.store.now()))

    def fired(self) -> list[datetime]:
        told = self.world.store.occurrences("nine", limit=100)
        return sorted(each.nominal_at for each in told if each.decision is Decision.FIRED)

    def minutes(self, ticker: Ticker, begin: datetime, end: datetime, step_s: int = 600) -> None:
        """Tick from one instant to another."""
        while begin <= end:
            self.at(begin)
            self.elapsed_s += step_s
            while ticker.tick().rest_s == 0:
                pass
            begin += timedelta(seconds=step_s)

    def audit(self, zone: Zone) -> list[str]:
        agenda = Agendas(lambda _: zone).of(self.world.store.schedule("nine").spec)
        histories = self.world.store.schedule_histories()
        found = audit_schedules(histories, lambda s: agenda.following(s.activated_at))
        return [str(violation) for violation in found]


@pytest.fixture(params=STORES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(STORES[request.param](request))
    site.at(NINE_IN_SUMMER - DAY / 2)
    yield site
    assert site.world.violations() == []
    site.world.close()


def test_a_time_of_day_that_new_data_put_earlier_is_not_lost(site: Site) -> None:
    site.declare(LEAVING)
    site.minutes(site.node(LEAVING), NINE_IN_SUMMER, NINE_IN_SUMMER)
    assert site.world.store.schedule("nine").next_at == NINE_IN_WINTER
    new = site.node(STAYING)
    site.minutes(new, LEAVES, LEAVES + 2 * DAY)
    assert site.fired() == [NINE_IN_SUMMER + n * DAY for n in range(3)]
    told = site.world.store.occurrences("nine", limit=10)
    assert all(each.decided_at - each.nominal_at < timedelta(minutes=20) for each in told)
    assert site.audit(STAYING) == []


def test_a_time_of_day_that_new_data_put_later_does_not_run_twice(site: Site) -> None:
    old, new = vancouver("2025b", leaves=False), vancouver("2026f", leaves=True)
    site.declare(old)
    site.minutes(site.node(old), NINE_IN_SUMMER, NINE_IN_SUMMER + DAY, 3_600)
    assert len(site.fired()) == 2
    site.minutes(site.node(new), NINE_IN_SUMMER + DAY, NINE_IN_SUMMER + 3 * DAY)
    assert site.fired() == [NINE_IN_SUMMER, NINE_IN_SUMMER + DAY, NINE_IN_WINTER + DAY]
    assert site.audit(new) == []


def test_data_that_come_late_run_what_they_should_have_run(site: Site) -> None:
    site.declare(LEAVING)
    site.minutes(site.node(LEAVING), NINE_IN_SUMMER, NINE_IN_SUMMER)
    late = NINE_IN_SUMMER + DAY + timedelta(minutes=30)
    site.minutes(site.node(STAYING), late, late)
    assert site.fired() == [NINE_IN_SUMMER, NINE_IN_SUMMER + DAY]
    assert site.audit(STAYING) == []


def test_data_that_say_the_same_are_only_noted(site: Site) -> None:
    site.declare(LEAVING)
    before = site.world.store.schedule("nine")
    site.minutes(site.node(vancouver("2026a", leaves=True)), LEAVES - DAY, LEAVES - DAY)
    after = site.world.store.schedule("nine")
    assert after.zone_version == "2026a"
    assert (after.cursor, after.due_at) == (before.cursor, before.due_at)
    assert site.audit(LEAVING) == []


def test_nobody_goes_back_to_older_data_while_newer_ones_are_at_hand(site: Site) -> None:
    site.declare(LEAVING)
    old, new = site.node(LEAVING), site.node(STAYING)
    site.minutes(new, NINE_IN_SUMMER, NINE_IN_SUMMER)
    nine = NINE_IN_SUMMER + DAY
    site.at(nine)
    assert old.tick().jobs == 0
    assert site.world.store.schedule("nine").zone_version == "2026f"
    assert new.tick().jobs == 1
    site.minutes(old, nine + timedelta(minutes=10), NINE_IN_WINTER + timedelta(minutes=10))
    assert site.fired() == [NINE_IN_SUMMER, nine]


def test_where_only_older_data_are_left_they_count_after_a_while(site: Site) -> None:
    site.declare(STAYING)
    old = site.node(LEAVING)
    site.at(NINE_IN_SUMMER)
    assert (old.tick().jobs, site.fired()) == (0, [])
    site.at(NINE_IN_SUMMER + DEFERENCE)
    while old.tick().rest_s == 0:
        pass
    assert site.fired() == [NINE_IN_SUMMER]


def test_an_hour_is_an_hour_whatever_the_data_say(site: Site) -> None:
    site.declare(LEAVING, expression="0 * * * *", gap="skip", overlap="both", catchup="all")
    begin = NINE_IN_SUMMER - DAY / 2
    site.minutes(site.node(LEAVING), begin, NINE_IN_SUMMER, 3_600)
    site.minutes(site.node(STAYING), NINE_IN_SUMMER, NINE_IN_SUMMER + DAY, 3_600)
    fired = site.fired()
    assert fired == [begin + timedelta(hours=n) for n in range(1, 37)]


def test_a_zone_that_new_data_no_longer_know_stops_its_schedules_only(site: Site) -> None:
    site.declare(LEAVING)
    site.world.store.declare(
        schedule("utc", expression="0 9 * * *"),
        standing(Agendas(lambda _: utc()).of(schedule("utc")), site.world.store.now()),
    )

    def zones(name: str) -> Zone:
        if name != "UTC":
            raise InvalidSchedule(f"time zone {name!r} is unknown")
        return utc()

    ticker = Ticker(site.world.store, zones, monotonic=lambda: site.elapsed_s)
    site.minutes(ticker, NINE_IN_SUMMER, NINE_IN_SUMMER + DAY, 3_600)
    nine, other = site.world.store.schedules()
    assert (nine.state, other.state) == ("error", "active")
    assert "America/Vancouver" in (nine.error or "")
    assert other.fired > 0


def utc() -> Zone:
    return Zone("UTC", (BEGINNING,), (0,), version="2026f")


def test_many_schedules_are_taken_over_and_looked_at_now_and_then(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeball.worker.zone_watch.BATCH", 2)
    for n in range(5):
        spec = schedule(f"s{n}", expression="0 9 * * *", tz="America/Vancouver")
        made = standing(Agendas(lambda _: LEAVING).of(spec), site.world.store.now())
        site.world.store.declare(spec, made)
    asked = counted(monkeypatch, site.world.store, "zones")
    ticker = site.node(STAYING)
    while ticker.tick().rest_s == 0:
        pass
    assert {use.zone_version for use in site.world.store.zones()} == {"2026f"}
    asked.clear()
    for _ in range(3):
        ticker.tick()
    assert asked == []
    site.elapsed_s += EVERY_S
    ticker.tick()
    assert asked == ["zones"]


def counted(monkeypatch: pytest.MonkeyPatch, store: object, verb: str) -> list[str]:
    """Notes each call of a verb."""
    calls: list[str] = []
    real: Callable[[], object] = getattr(store, verb)

    def noted() -> object:
        calls.append(verb)
        return real()

    monkeypatch.setattr(store, verb, noted)
    return calls
