"""What Prometheus is told, however many queues there are."""

from __future__ import annotations

import re

import pytest
from tests.web.asgi import Browser

from timeball.client import Client
from timeball.observe import families
from timeball.web.api import fleet


def test_however_many_queues_there_are_the_series_of_metrics_are_bounded(
    client: Client, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "QUEUES_MAX", 2)
    for queue in "abcde":
        client.submit_many("k", [{}, {}], queue=queue)
    text = admin.get("/metrics").text
    jobs = re.findall(r'^timeball_jobs\{queue="(.*)",state="pending"\} (\d+)$', text, re.MULTILINE)
    assert sorted(jobs) == [("a", "2"), ("b", "2"), ("other", "6")]


def test_of_queues_that_are_told_together_jobs_are_added_and_the_oldest_is_that_of_all() -> None:
    jobs, oldest, up = families.JOBS.name, families.OLDEST.name, families.STORE_UP.name
    samples = {
        (up, ()): [1],
        **{(jobs, (queue, "pending")): [n] for queue, n in (("a", 1), ("b", 2), ("other", 4))},
        **{(oldest, (queue,)): [n] for queue, n in (("a", 9), ("b", 5), ("c", 7))},
    }
    assert fleet.bounded(samples, ["a"]) == {
        (up, ()): [1],
        (jobs, ("a", "pending")): [1],
        (jobs, ("other", "pending")): [6],
        (oldest, ("a",)): [9],
        (oldest, ("other",)): [7],
    }
