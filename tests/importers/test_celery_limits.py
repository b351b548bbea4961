"""Celery's rate limits hold in each worker, which nothing here does: a person has to decide."""

from __future__ import annotations

import pytest

from timeball.importers.celery import celery_findings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("task_annotations = {'a.b': {'rate_limit': '100/m'}}", (1, "a.b")),
        ("app.conf.task_annotations = {'*': {'rate_limit': '100/m'}}", (1, "*")),
        ("@app.task(rate_limit='100/m')\ndef f(a): ...", (1, "f")),
        ("@shared_task(\n  rate_limit='100/m')\nasync def f(a): ...", (2, "f")),
    ],
)
def test_limits_of_rate_are_said_with_their_line(text: str, place: tuple[int, str]) -> None:
    (needs,) = celery_findings(text, source="beat.py").needs
    assert (needs.line, needs.name) == place
    assert needs.text.startswith("rate_limit '100/m' holds in each worker")


@pytest.mark.parametrize(
    "text",
    [
        "task_annotations = {'a.b': {'time_limit': 5}}",
        "task_annotations = {'a.b': {'rate_limit': None}}",
        "@app.task(bind=True)\ndef f(self): ...",
        "@shared_task(rate_limit=None)\ndef f(a): ...",
    ],
)
def test_what_has_no_limit_needs_nobody(text: str) -> None:
    assert celery_findings(text, source="beat.py").needs == ()
