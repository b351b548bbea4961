"""Which format a file is of, told by its name and content."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.errors import UsageError
from timeball.importers.formats import origin_of, read_findings
from timeball.importers.found import Origin, every
from timeball.importers.toml_file import toml_findings
from timeball.importers.toml_text import toml_text


@pytest.mark.parametrize(
    ("name", "text", "origin"),
    [
        ("a.cron", "0 1 * * * x", Origin.CRONTAB),
        ("crontab", "", Origin.CRONTAB),
        ("s.toml", "", Origin.TOML),
        ("schedules", "# mine\n[schedules.a]\n", Origin.TOML),
        ("a.yaml", "", Origin.KUBERNETES),
        ("a.yml", "", Origin.KUBERNETES),
        ("manifest", "apiVersion: batch/v1\nkind: CronJob\n", Origin.KUBERNETES),
        ("a.py", "from celery import Celery", Origin.CELERY),
        ("settings.py", "CELERY_BEAT_SCHEDULE = {}", Origin.CELERY),
        ("a.py", "import apscheduler.schedulers", Origin.APSCHEDULER),
        ("a.py", "import timeball as tb\nfrom celery import Celery", None),
        ("a.py", "x = 1  # not celery", None),
        ("a.py", "from celery_helpers import x", None),
    ],
)
def test_a_format_is_told_by_name_and_content(name: str, text: str, origin: Origin | None) -> None:
    assert origin_of(name, text) is origin


def test_a_file_that_may_be_two_formats_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="celery or apscheduler: choose with --format"):
        origin_of("a.py", "import celery\nimport apscheduler")


@pytest.mark.parametrize("origin", Origin)
def test_an_empty_file_of_any_format_holds_nothing(origin: Origin) -> None:
    read = read_findings("", source="x", origin=origin)
    assert (read.origin, read.found, read.needs) == (origin, (), ())


@pytest.mark.parametrize("origin", [each for each in Origin if each is not Origin.CRONTAB])
def test_what_is_no_utf_8_is_refused(origin: Origin) -> None:
    with pytest.raises(UsageError, match="save the file as UTF-8"):
        read_findings("# \udcff", source="x", origin=origin)


SOURCES = Path(__file__).parents[1] / "data" / "sources"
WORD = re.compile(r"\"[^\"\n]*\"|[\w.]+")
ODD = (
    *("None", "1.5", "[]", "{}", "lambda: 1", "*x", "**y", "True", "-1", "'x'", "b'x'", "''"),
    *("1j", "...", "f'{x}'", r"'\ud800'", "10**9", "{1: 2}", "{**z}", "x[0]", "crontab(hour=1)"),
    *("!!set {a}", "&a", "*a", "<<", "~", "0x10", "1:30", r'"\ud800"', "'@every 1s'", "%", "L"),
)


@settings(max_examples=30)
@given(
    st.sampled_from(["beat.py", "beat_settings.py", "clock.py", "cronjobs.yaml", "zones.cron"]),
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(ODD)), min_size=1, max_size=3),
)
def test_whatever_a_file_says_is_refused_in_words_or_written_and_read_again(
    name: str, changes: list[tuple[int, str]]
) -> None:
    text = (SOURCES / name).read_text()
    origin = origin_of(name, text)
    assert origin is not None
    for at, odd in changes:
        words = list(WORD.finditer(text))
        word = words[at % len(words)]
        text = text[: word.start()] + odd + text[word.end() :]
    try:
        read = read_findings(text, source=name, origin=origin)
    except UsageError:
        return
    held = [replace(each, tz=each.tz or "UTC") for each in read.found if each.holds]
    again = toml_findings(toml_text(read, default_tz="UTC"), source="x")
    assert (again.needs, again.found) == ((), tuple(held))


@pytest.mark.parametrize(
    ("seconds", "expression"),
    [
        (1, "@every 1s"),
        (90, "@every 90s"),
        (120.0, "@every 2m"),
        (86_400, "@every 24h"),
        (0, None),
        (-60, None),
        (0.5, None),
        (float("inf"), None),
        (float("nan"), None),
    ],
)
def test_an_interval_is_whole_seconds(seconds: float, expression: str | None) -> None:
    assert every(seconds) == expression
