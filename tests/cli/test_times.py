"""Durations, instants and zones as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball import chance
from timeball.chance import system_zone
from timeball.cli.times import instant, seconds
from timeball.core.cron import load_zone
from timeball.errors import InvalidSchedule, UsageError

DURATIONS = {
    "0": 0,
    "90": 90,
    "1.5": 1.5,
    "90s": 90,
    "5m": 300,
    "1h30m": 5_400,
    "2d": 172_800,
    "1.5h": 5_400,
}


@pytest.mark.parametrize(("text", "value"), DURATIONS.items())
def test_a_duration_is_its_seconds(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    "text", ["", "m", "5 m", "-5m", "5w", "1h-3m", "1e3", "nan", "٣m", "1..5s5"]
)
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="write for example 90s"):
        seconds(text)


INSTANTS = {
    "2026-03-07T12:00Z": (2026, 3, 7, 12),
    "2026-03-07T12:00:00+02:00": (2026, 3, 7, 10),
    "2026-12-24T09:00[Europe/Berlin]": (2026, 12, 24, 8),
    "2026-07-24T09:00[Europe/Berlin]": (2026, 7, 24, 7),
    "2026-12-24T09:00+01:00[Europe/Berlin]": (2026, 12, 24, 8),
    "2026-12-24 09:00": (2026, 12, 24, 0),
    "2026-12-24": (2026, 12, 23, 15),
}


@pytest.mark.parametrize(("text", "utc"), INSTANTS.items())
def test_an_instant_is_read_in_its_own_zone_or_the_one_given(text: str, utc) -> None:
    assert instant(text, "Asia/Seoul") == datetime(*utc, tzinfo=UTC)


REFUSED = {
    "tomorrow": "is no instant",
    "": "is no instant",
    "[Europe/Berlin]": "is no instant",
    "2026-02-30T00:00": "is no instant",
    "2026-12-24T09:00+02:00[Europe/Berlin]": "another offset",
    "2026-03-29T02:30[Europe/Berlin]": "does not exist",
    "2026-10-25T02:30[Europe/Berlin]": "comes twice",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_an_instant_that_is_not_exactly_one_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        instant(text, "UTC")


def test_an_unknown_zone_is_told() -> None:
    with pytest.raises(InvalidSchedule, match="unknown"):
        instant("2026-12-24T09:00[Mars/Olympus]")


@given(
    st.sampled_from(["Europe/Berlin", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"]),
    st.datetimes(datetime.fromisoformat("1990-01-01"), datetime.fromisoformat("2050-01-01")),
)
def test_a_wall_time_gives_the_instant_at_which_the_clock_shows_it(name: str, wall) -> None:
    try:
        found = instant(f"{wall.isoformat()}[{name}]")
    except UsageError as error:
        assert "does not exist" in str(error) or "comes twice" in str(error)  # noqa: PT017 - either will do
        return
    offset = load_zone(name).offset(int(found.timestamp() // 1))
    assert (found.replace(tzinfo=None) - wall).total_seconds() == -offset


def test_the_zone_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Seoul")
    assert system_zone() == "Asia/Seoul"


def test_a_zone_of_the_environment_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Nowhere/Land")
    with pytest.raises(UsageError, match="pass --tz"):
        system_zone()


LINKS = {
    "usr/share/zoneinfo/Europe/Paris": "Europe/Paris",
    "usr/share/zoneinfo/Nowhere/Land": "UTC",
    "somewhere/else": "UTC",
}


@pytest.mark.parametrize(("target", "zone"), LINKS.items())
def test_else_the_link_of_the_machine_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path, target: str, zone: str
) -> None:
    link = tmp_path / "localtime"
    link.symlink_to(tmp_path / target)
    monkeypatch.setattr(chance, "_LOCALTIME", link)
    monkeypatch.delenv("TZ", raising=False)
    assert system_zone() == zone
