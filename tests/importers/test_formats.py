"""Which format a file is of, told by its name and content."""

from __future__ import annotations

import pytest

from timeball.errors import UsageError
from timeball.importers.formats import origin_of, read_findings
from timeball.importers.found import Origin, every


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
