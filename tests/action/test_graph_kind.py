"""Graphs that a file declares: a mistake is told by the name of its job, before anything runs."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from timeball.action.graph_kind import KIND, parents_first
from timeball.action.job_specs import job_spec
from timeball.errors import UsageError


def job(kind: str = "a", *after: str, **options: Any) -> dict[str, Any]:
    return {"kind": kind, **({"after": list(after)} if after else {}), **options}


def test_jobs_are_put_in_an_order_in_which_they_can_be_submitted() -> None:
    jobs = {"last": job("a", "middle"), "middle": job("a", "first"), "first": job()}
    assert parents_first(jobs) == ["first", "middle", "last"]


@pytest.mark.parametrize(
    ("jobs", "text"),
    [
        ({}, "has jobs"),
        ([], "has jobs"),
        ({"x": 7}, "job x is no table"),
        ({"x": {}}, "job x has no kind"),
        ({"x": job(afer=["y"])}, "job x has afer, which is not known: did you mean after"),
        ({"x": job("a", "one"), "ones": job()}, "job x comes after one, .* did you mean ones"),
        ({"x": job(after="y"), "y": job()}, "job x has an after that is no list of names"),
        ({"x": job("a", "y"), "y": job("a", "x")}, "of the jobs .* a cycle"),
        ({"x": job("a", "x")}, "of the jobs x, x each .* a cycle"),
        ({"x": job(priority=77)}, "job x: priority"),
        ({"x": job(rule="one_failed")}, "job x: rule is about parents"),
        ({"x": job("a", "y", rule="some"), "y": job()}, "job x: rule"),
        ({"x": job("timeball.http", args={"metod": "GET"})}, "job x: "),
        ({str(n): job() for n in range(10_001)}, "10,000 at most"),
    ],
)
def test_what_is_wrong_with_a_graph_is_told_by_the_name_of_its_job(jobs: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        job_spec("timeball.graph", {"args": {"jobs": jobs}})


def test_a_graph_is_a_job_like_any_other() -> None:
    spec = job_spec("timeball.graph", {"jobs": {"x": job()}, "uuid": uuid4(), "priority": 7})
    assert (spec.kind, spec.priority) == (KIND.name, 7)
