"""What holds for the lint of any text at all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.importers.crontab_found import crontab_findings
from timeball.importers.found import Findings, Found, KindCall, Origin
from timeball.importers.lint import lint
from timeball.importers.lint_finding import Finding

AFTER = datetime(2026, 11, 30, tzinfo=UTC)
ZONES = st.sampled_from(["UTC", "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"])
WORDS = [
    "*",
    "*/7",
    "*/15",
    "0",
    "30",
    "2",
    "31",
    "1-5",
    "fri",
    "L",
    "@daily",
    "# at 5 PM EST",
    "%",
]
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
FIELDS = [["*", "0", "*/7"], ["*", "2", "*/5"], ["*", "13", "31"], ["*", "2"], ["*", "1", "fri"]]
PLAIN = st.tuples(*map(st.sampled_from, FIELDS)).map(" ".join)


def linted(text: str, tz: str) -> list[Finding]:
    return lint(crontab_findings(text, source="x.cron", form="user"), after=AFTER, tz=tz)


@pytest.mark.slow
@settings(deadline=None)
@given(lines=st.lists(LINES | st.text(max_size=30), max_size=6), tz=ZONES)
def test_any_text_is_linted_and_every_remark_has_a_line_of_it(lines: list[str], tz: str) -> None:
    text = "\n".join(lines)
    found = linted(text, tz)
    assert all(1 <= each.line <= text.count("\n") + 1 and each.says for each in found)
    assert [each.line for each in found] == sorted(each.line for each in found)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(expressions=st.lists(PLAIN, min_size=1, max_size=4), tz=ZONES)
def test_what_is_said_of_one_schedule_does_not_depend_on_the_others(
    expressions: list[str], tz: str
) -> None:
    def said(*texts: str) -> set[tuple[str, str, str]]:
        found = tuple(
            Found(name=text, expression=text, runs=KindCall(kind="a"), line=line)
            for line, text in enumerate(texts, 1)
        )
        read = Findings(origin=Origin.CELERY, source="x", found=found)
        remarks = lint(read, after=AFTER, tz=tz)
        return {(each.name, each.rule, each.says) for each in remarks}

    assert said(*expressions) == {each for text in expressions for each in said(text)}
