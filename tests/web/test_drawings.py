"""Charts and words: as text, without a browser."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Agenda, load_zone
from timeball.core.records import Job
from timeball.core.states import TERMINAL, Ending, Event, State, allowed
from timeball.store.postgres.panorama import TurnRecord
from timeball.web import life, wording
from timeball.web.charts import area, bar, spark
from timeball.web.search import understood
from timeball.web.strip import FIRES_MAX, Row, drawn, strip_of

START = datetime(2026, 11, 30, 8, tzinfo=UTC)
NUMBERS = st.lists(st.floats(0, 1e9), max_size=70)


def table(expression: str, zone: str = "Europe/Berlin") -> Agenda:
    return agenda_of(schedule_spec("s", "k", cron=expression, tz=zone))


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def job(state: State = State.SUCCEEDED, **facts: Any) -> Job:
    given: dict[str, Any] = {
        "id": 1,
        "uuid": UUID(int=1),
        "kind": "k",
        "queue": "q",
        "priority": 5,
        "state": state,
        "turn": 1,
        "attempts": 1,
        "failures": 0,
        "crashes": 0,
        "max_retries": 3,
        "created_at": START,
        "run_at": None,
        "began_at": None,
        "ended_at": None,
        "worker": 1,
        "reason": None,
        "error_type": None,
        "error": None,
        **facts,
    }
    return Job(**given)


def turn(n: int, *at: float, ending: Ending | None, direct: bool = True) -> TurnRecord:
    lined, granted, began, ended = (after(seconds) for seconds in at)
    told = (None, None, None, None, direct)
    return TurnRecord(n, lined, granted, 1, began, at[3] - at[2], ended, ending, *told)


RETRIED = [
    turn(1, 0, 1, 2, 5, ending=Ending.RETRIED),
    turn(2, 9, 9.5, 9.5, 12, ending=Ending.SUCCEEDED, direct=False),
]


@given(NUMBERS, st.floats(0.1, 1e6))
def test_every_chart_is_well_formed_and_stays_in_its_frame(
    values: list[float], limit: float
) -> None:
    for chart in (
        spark(values),
        area(values, label="<&>", limit=limit),
        bar([("a", value) for value in values], label='"'),
    ):
        root = ET.fromstring(str(chart))
        left, top, width, height = map(float, root.attrib["viewBox"].split())
        for points in re.findall(r'points="([^"]*)"', str(chart)):
            for pair in points.split():
                x, y = map(float, pair.split(","))
                assert left - 1 <= x <= left + width + 1
                assert top - 1 <= y <= top + height + 1


def test_a_label_that_holds_markup_is_text() -> None:
    assert "<script>" not in area([1], label="<script>")


def test_a_life_has_a_step_for_each_thing_that_happened() -> None:
    steps = life.moments(job(), RETRIED, ())
    assert [(step.what, (step.at - START).total_seconds()) for step in steps] == [
        *[("submitted", 0), ("granted", 1), ("running", 2), ("retried", 5)],
        *[("pending", 9), ("granted", 9.5), ("running", 9.5), ("succeeded", 12)],
    ]
    root = ET.fromstring(str(life.drawn(steps, open_until=None)))
    circles = [each for each in root if each.tag == "circle"]
    assert len(circles) == len(steps)
    assert [float(c.attrib["cx"]) for c in circles] == sorted(
        float(c.attrib["cx"]) for c in circles
    )


def test_where_the_time_went_adds_up() -> None:
    spent = life.spent(job(), RETRIED, after(20))
    assert spent == (4.0, 1.5, 1.0, 5.5)
    assert sum(spent) == 12.0


def test_clocks_that_disagree_make_no_wait_negative() -> None:
    skewed = [turn(1, 3, 2, 1, 0, ending=Ending.SUCCEEDED)]
    assert min(life.spent(job(), skewed, after(1))) >= 0
    assert "NaN" not in life.drawn(life.moments(job(), skewed, ()), open_until=None)


def test_a_job_that_has_not_ended_goes_on_until_now() -> None:
    running = [
        RETRIED[0]._replace(ended_at=None, ending=None, ran_s=None),
    ]
    assert life.spent(job(State.RUNNING), running, after(10)).running == 8.0
    assert "lifeline open" in life.drawn(
        life.moments(job(State.RUNNING), running, ()), open_until=after(10)
    )


def test_a_life_of_a_thousand_turns_is_drawn_in_part() -> None:
    many = [turn(n, n, n, n, n + 0.5, ending=Ending.SNOOZED) for n in range(1, 1_000)]
    assert len(life.moments(job(), many, ())) <= 60


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_verdict(state: State) -> None:
    for reason in (None, "paused", "key", "rate", "no_worker", "lost", "exhausted"):
        head, rest = life.verdict(job(state, reason=reason), RETRIED)
        assert head
        assert "None" not in head + rest


@pytest.mark.parametrize(
    ("day", "hours", "fires", "words"),
    [
        (date(2026, 10, 24), 24, ["02:30:00"], None),
        (date(2026, 10, 25), 25, ["02:30:00"], "02:00 to 03:00 happens twice"),
        (date(2027, 3, 28), 23, ["03:00:00"], "02:00 to 03:00 does not exist"),
    ],
)
def test_a_day_is_as_long_as_it_is(
    day: date, hours: float, fires: list[str], words: str | None
) -> None:
    strip = strip_of(load_zone("Europe/Berlin"), day)
    chart = drawn(strip, [Row("s", "30 2 * * *", table("30 2 * * *"))])
    ET.fromstring(str(chart))
    assert strip.hours == hours
    assert re.findall(r"<title>([\d:]+) ·", chart) == fires
    assert re.findall(r'class="seam-t"[^>]*>([^<]*)<', chart) == ([words] if words else [])
    assert len(re.findall(r'class="tick(?: hot)?"[^>]*middle', chart)) == hours + 1


def test_what_fires_too_often_to_be_drawn_is_one_line() -> None:
    strip = strip_of(load_zone("UTC"), date(2026, 1, 1))
    chart = drawn(strip, [Row("s", "* * * * *", table("* * * * *", "UTC"))])
    assert chart.count("<circle") == 0
    assert 'class="often"' in chart
    assert FIRES_MAX < 24 * 60


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, wording.NOTHING),
        (-5, "0 ms"),
        (0.0004, "< 1 ms"),
        (0.25, "250 ms"),
        (3.744, "3.74 s"),
        (59.94, "59.9 s"),
        (61, "1 min 1 s"),
        (7_200, "2 h"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_duration_has_two_parts_at_most(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9_999_999, "9,999,999"), (10**7, "10.0 M"), (10**9, "1.0 G"), (10**13, "10.0 T")],
)
def test_a_number_fits_into_a_tile(value: int, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize("state", State)
def test_a_transition_in_words_is_that_of_the_table(state: State) -> None:
    for event in (Event.CANCEL, Event.REVIVE):
        assert wording.may(event, state) == bool(allowed(state, event))
    assert wording.may("revive", state) == (state in TERMINAL - {State.SUCCEEDED})


@pytest.mark.parametrize(
    ("text", "only", "path", "faults"),
    [
        ("", {}, None, 0),
        ("state:failed queue:mail", {"state": State.FAILED, "queue": "mail"}, None, 0),
        ("mail.welcome", {"kind": "mail.welcome"}, None, 0),
        ("41", {}, "/jobs/41", 0),
        (str(UUID(int=7)), {}, f"/jobs/{UUID(int=7)}", 0),
        ("batch:41", {}, "/jobs/41", 0),  # which leads on, if it is one
        (f"after:{UUID(int=7)}", {}, f"/dependencies/{UUID(int=7)}", 0),
        ("state:lost id:x color:red", {}, None, 3),
        ("batch:x after:", {}, None, 2),
        ("queue:", {}, None, 1),
        (str(2**70), {"kind": str(2**70)}, None, 0),
    ],
)
def test_a_search_is_understood_or_says_what_to_write(
    text: str, only: dict[str, Any], path: str | None, faults: int
) -> None:
    found = understood(text)
    assert (found.only, found.path, len(found.faults)) == (only, path, faults)
