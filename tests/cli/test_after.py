"""`timeball submit --after`, and what `jobs show` says of it."""

from __future__ import annotations

import pytest
from tests.cli.invoking import document, invoke, said
from tests.store.world import World


def test_a_job_can_be_submitted_after_others_and_shows_them(world: World) -> None:
    one, two = world.submit(), world.submit()
    options = ["--after", str(one), "--after", str(two), "--rule", "all_done", "--ruled-out", "run"]
    child = said("submit", "a", *options).strip()
    shown = said("jobs", "show", child)
    assert f"after\n    {one} pending (all_done)\n    {two} pending (all_done)\n" in shown
    (job,) = [job for job in world.store.histories() if str(job.uuid) == child]
    assert (len(job.edges), job.ruled_out) == (2, "run")
    assert document("jobs", "show", child, "--json")["job"]["after"] == [
        {"job": str(parent), "rule": "all_done", "state": "pending"} for parent in (one, two)
    ]


@pytest.mark.usefixtures("world")
def test_a_rule_without_parents_is_refused() -> None:
    assert "pass after=" in invoke("submit", "a", "--rule", "all_done").output
