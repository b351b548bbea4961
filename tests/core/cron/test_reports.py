"""Public reports about other schedulers, and what is right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from timeball.core.cron import Timetable, load_zone, parse, resolve

REPORTS = [
    # report, expression, zone, asked at, the next runs
    (
        "apscheduler 1021",
        "30 * * * *",
        "Europe/Helsinki",
        "2017-10-29T01:45Z",
        ["2017-10-29T02:30Z"],
    ),
    (
        "apscheduler 606",
        "0 0 * * *",
        "US/Pacific",
        "2022-03-13T00:00:07-08:00",
        ["2022-03-14T07:00Z"],
    ),
    (
        "celery 1604",
        "0 12 * * 1",
        "America/New_York",
        "2013-11-03T00:00-04:00",
        ["2013-11-04T17:00Z", "2013-11-11T17:00Z"],
    ),
    (
        "croniter 91",
        "0 6 * * *",
        "America/New_York",
        "2024-03-10T00:00-05:00",
        ["2024-03-10T10:00Z", "2024-03-11T10:00Z"],
    ),
    (
        "croniter 56",
        "*/5 * * * *",
        "Europe/Zurich",
        "2023-10-29T02:55+02:00",
        ["2023-10-29T01:00Z"],
    ),
    (
        "kubernetes 121594",
        "0 2 * * *",
        "Europe/Berlin",
        "2023-10-28T12:00Z",
        ["2023-10-29T00:00Z", "2023-10-30T01:00Z"],
    ),
    ("cron-parser 404", "0 5 * * 7", "Europe/Rome", "2025-03-29T12:00Z", ["2025-03-30T03:00Z"]),
    ("node-cron 919", "0 1 30 3 *", "Europe/Lisbon", "2025-03-01T00:00Z", ["2025-03-30T01:00Z"]),
    (
        "node-cron 881",
        "*/30 * * * *",
        "Australia/Melbourne",
        "2024-04-06T15:00Z",
        ["2024-04-06T15:30Z", "2024-04-06T16:00Z", "2024-04-06T16:30Z"],
    ),
    ("pg_cron 329", "@monthly", "UTC", "2024-01-01T00:00Z", ["2024-02-01T00:00Z"]),
    ("cronie 218", "0 12 * * 0", "Europe/Berlin", "2022-03-24T00:00Z", ["2022-03-27T10:00Z"]),
    (
        "prefect 10472",
        "10 0 * * *",
        "America/Montreal",
        "2023-03-12T05:10:02Z",
        ["2023-03-13T04:10Z"],
    ),
    (
        "cronsim in the second pass",
        "45 1 * * *",
        "America/New_York",
        "2026-11-01T06:10Z",
        ["2026-11-02T06:45Z"],
    ),
    (
        "robfig at the missing day",
        "0 0 30 12 *",
        "Pacific/Apia",
        "2011-12-29T00:00Z",
        ["2011-12-30T10:00Z"],
    ),
]


def timetable(text: str, zone: str) -> Timetable:
    cron = parse(text)
    policy = resolve(cron)
    return Timetable(cron, load_zone(zone), policy.gap, policy.overlap)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report[0])
def test_a_reported_fault_is_none_of_ours(report: tuple) -> None:
    _, text, zone, asked, expected = report
    runs = timetable(text, zone).between(
        datetime.fromisoformat(asked), datetime.max.replace(tzinfo=UTC), len(expected)
    )
    assert runs == [datetime.fromisoformat(each) for each in expected]


def test_an_hourly_job_runs_in_the_repeated_hour_too() -> None:
    # celery 10107: seven runs in the six hours around, where it kept silent
    runs = timetable("0 * * * *", "Europe/Berlin").between(
        datetime.fromisoformat("2023-10-29T00:00+02:00"),
        datetime.fromisoformat("2023-10-29T06:00+01:00"),
    )
    assert len(runs) == 7
    assert {later - at for at, later in pairwise(runs)} == {timedelta(hours=1)}


def test_a_restart_in_the_repeated_hour_does_not_make_it_due_at_every_call() -> None:
    table = timetable("30 1 * * *", "America/New_York")
    second_pass = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)
    asked = {table.next(second_pass + timedelta(seconds=s)) for s in range(0, 1800, 7)}
    assert asked == {datetime(2026, 11, 2, 6, 30, tzinfo=UTC)}
