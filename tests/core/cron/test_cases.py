"""596 cases whose right answers three independent engines agree on."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from timeball.core.cron import Timetable, load_zone, parse, resolve
from timeball.errors import InvalidSchedule

FILE = Path(__file__).parents[2] / "data" / "cron_cases.json"
DATA = json.loads(FILE.read_text())
CASES = [dict(zip(DATA["columns"], row, strict=True)) for row in DATA["cases"]]
REFUSED = [case for case in CASES if case["expected"] is None]
KEPT = [case for case in CASES if case["expected"] is not None]
SECOND = timedelta(seconds=1)


def name(case: dict) -> str:
    return case["id"]


def timetable(case: dict) -> Timetable:
    cron = parse(case["expr"])
    if case["policy"] in ("auto", "cron"):
        policy = resolve(cron, case["policy"])
    else:
        policy = resolve(cron, gap=case["gap"], overlap=case["overlap"])
    assert (policy.gap, policy.overlap) == (case["gap"], case["overlap"])
    return Timetable(cron, load_zone(case["tz"]), policy.gap, policy.overlap)


def test_no_case_was_lost() -> None:
    assert len(KEPT) == 595
    assert len(REFUSED) == 1
    assert sum(case["tzdata"] == ">=2026f" for case in CASES) == 28


@pytest.mark.parametrize("case", KEPT, ids=name)
def test_a_case_comes_due_exactly_then_asked_forwards_and_backwards(case: dict) -> None:
    table = timetable(case)
    start, until = (datetime.fromisoformat(case[key]) for key in ("start", "until"))
    expected = [datetime.fromisoformat(text) for text in case["expected"]]
    assert table.between(start, until) == expected
    backwards, at = [], table.previous(until)
    while at is not None and at > start:
        backwards.append(at)
        at = table.previous(at - SECOND)
    assert backwards[::-1] == expected


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_never_comes_due_is_refused(case: dict) -> None:
    with pytest.raises(InvalidSchedule, match="never comes due"):
        parse(case["expr"])
