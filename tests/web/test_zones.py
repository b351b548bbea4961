"""In which zone pages tell times, and what they say of a zone's months and jumps."""

from __future__ import annotations

from datetime import UTC, date, datetime
from xml.etree import ElementTree as ET

import pytest
from tests.web.asgi import Browser
from tests.web.test_pages import NAME, seen

from timeball.client import Client
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Agenda, load_zone
from timeball.core.cron.months import days
from timeball.web import month
from timeball.web.wording import clock, instant
from timeball.web.zones import wall

AT = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)


def table(expression: str) -> Agenda:
    return agenda_of(schedule_spec("s", "k", cron=expression, tz="Europe/Berlin"))


def test_an_instant_is_told_by_the_clocks_of_a_zone_with_its_offset() -> None:
    berlin, text = load_zone("Europe/Berlin"), str(instant(AT, zone=load_zone("Europe/Berlin")))
    assert ">2026-07-01 14:00:00<" in text
    assert "2026-07-01 14:00:00+02:00 Europe/Berlin" in text
    assert 'datetime="2026-07-01T12:00:00Z"' in text
    assert clock(AT, berlin) == "14:00:00.000"
    assert "2026-07-01 12:00:00 UTC" in str(instant(AT))
    lima = str(instant(AT, AT, zone=load_zone("America/Lima")))
    assert "2026-07-01 07:00:00-05:00 America/Lima" in lima


def test_the_end_of_all_calendars_has_no_other_zone() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    assert wall(last, load_zone("Asia/Tokyo")) == last


def test_the_zone_is_what_one_chose_and_one_comes_back_to_where_that_was(
    client: Client, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    client.submit("k")
    client.schedule("s", "k", cron="0 9 * * *", tz="Europe/Berlin")
    begin = 'title="Times in {}"'.format
    assert begin("UTC") in local.get("/jobs/1").text
    assert begin("Europe/Berlin") in local.get("/schedules/s").text
    for choice, zone in (("local", "Asia/Tokyo"), ("America/Lima", "America/Lima"), ("UTC", "UTC")):
        there = local.form("/zone", zone=choice, next="/jobs/1?x=%20")
        assert (there.status, there.header("location")) == (303, "/jobs/1?x=%20")
        for path in ("/jobs/1", "/schedules/s"):
            assert begin(zone) in local.get(path).text
    local.form("/zone", zone="schedule")
    assert begin("Europe/Berlin") in local.get("/schedules/s").text


def test_the_schedules_zone_is_a_choice_where_there_is_a_schedule_and_only_there(
    client: Client, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    client.schedule("s", "k", cron="@daily", tz="Europe/Berlin")

    def choices(path: str) -> dict[str, bool]:
        found = seen(local.get(path)).of("option")
        return {str(each["value"]): "selected" in each for each in found if "value" in each}

    for path in ("/", "/jobs", "/schedules", "/settings"):
        assert choices(path) == {"UTC": True, "Asia/Tokyo": False}, path
    for path in ("/schedules/s", "/backfill/s"):
        assert choices(path) == {"schedule": True, "UTC": False, "Asia/Tokyo": False}, path
    local.form("/zone", zone="local")
    assert choices("/") == {"UTC": False, "Asia/Tokyo": True}
    assert choices("/schedules/s") == {"schedule": False, "UTC": False, "Asia/Tokyo": True}


@pytest.mark.parametrize(
    "zone", ["Nowhere/Land", "../../etc/passwd", "", "<b>", "a\r\nb", "x" * 900]
)
def test_no_zone_but_one_that_there_is_can_be_chosen(local: Browser, zone: str) -> None:
    assert local.form("/zone", zone=zone, next="//evil.example").header("location") == "/"
    assert "timeball_zone" not in local.cookies
    local.cookies["timeball_zone"] = zone.replace("\r\n", "")
    assert 'title="Times in UTC"' in local.get("/").text


def test_a_month_shows_each_day_with_its_runs_and_days_of_other_lengths() -> None:
    found = days(table("*/30 * * * *"), date(2026, 10, 1), date(2026, 10, 31), count_max=49)
    chart = str(month.drawn(found, "/schedules/s?day=", shown=date(2026, 10, 9)))
    root = ET.fromstring(chart)
    links = [each.get("href") for each in root.iter("a")]
    assert links[0] == "/schedules/s?day=2026-10-01"
    assert len(links) == 31
    titles = [each.text for each in root.iter("title")]
    assert titles[0] == "Thursday, 1 October 2026: 48"
    assert titles[24] == "Sunday, 25 October 2026: 49+, a day of 25 h"
    assert [each.get("class") for each in root.iter("a")][8] == "day h4 on"
    assert month.total(found) == "1,489 or more occurrences"
    seldom = days(table("0 0 7 * *"), date(2026, 2, 1), date(2026, 2, 28), count_max=100)
    assert month.total(seldom) == "1 occurrence"
    drawn = ET.fromstring(str(month.drawn(seldom, "?", shown=date(2026, 2, 1))))
    assert [each.get("class") for each in drawn.iter("a")].count("day h4") == 1


def test_a_schedule_says_what_the_next_jumps_of_its_clocks_will_do(
    client: Client, local: Browser
) -> None:
    client.schedule("s", "k", cron="30 2 * * *", tz="Europe/Berlin")
    said = " ".join(seen(local.get("/schedules/s")).said)
    assert "a day of 23 hours" in said
    assert "a day of 25 hours" in said
    for word in ("next_valid", "shift", "skip", "prev_valid", "first", "second", "both"):
        assert word in said
    assert " in Europe/Berlin" in said
    client.schedule("u", "k", cron="30 2 * * *", tz="UTC")
    assert "change no more" in local.get("/schedules/u").text


@pytest.mark.parametrize(
    "day", ["1900-01-01", "0001-01-01", "9999-12-31", "x", "2026-02-30", "2999-12-31"]
)
def test_a_month_beyond_all_calendars_is_no_defect(
    client: Client, local: Browser, day: str
) -> None:
    client.schedule(NAME, "k", cron="* * * * *", tz="Europe/Berlin")
    path = next(
        str(link["href"])
        for link in seen(local.get("/schedules")).of("a")
        if str(link.get("href")).startswith("/schedules/")
    )
    assert local.get(f"{path}?day={day}").status == 200
