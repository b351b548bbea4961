"""What can never work is refused at once, with what to write instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any

import pytest

from timeball import Rate, Scheduler, State, UsageError
from timeball.errors import JobNotFound


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"workers": 0}, "write 1 or more"),
        ({"workers": True}, "write 1 or more"),
        ({"workers": 2.0}, "write 1 or more"),
        ({"rate": 50}, r"write Rate\(50"),
        ({"rate": "fast"}, "write starts and a time"),
        ({"runner": "fibres"}, "write 'threads' or 'processes'"),
        ({"aging_s": -1}, "0 or more"),
        ({"aging_s": math.nan}, "0 or more"),
        ({"key_limits": {"a": 0}}, r"key_limits\['a'\]"),
        ({"keep_results": 0}, "'all' or 'none'"),
        ({"max_pending": 0}, "None for no limit"),
        ({"retry": 3}, r"write Retry\(3\)"),
        ({"strict": "no"}, "'observed' or 'recorded'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        Scheduler(**options)


@pytest.mark.parametrize("count", [0, -1, math.nan, math.inf])
def test_a_rate_that_is_none_is_refused(count: float) -> None:
    with pytest.raises(UsageError, match="write a number above 0"):
        Scheduler(rate=Rate(count))


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"priority": 10}, "write 0 to 9"),
        ({"priority": []}, "write 0 to 9"),
        ({"retry": 3}, r"write Retry\(3\)"),
        ({"timeout_s": 0}, "above 0"),
        ({"delay_s": -1}, "0 or more"),
        ({"delay_s": "soon"}, "0 or more"),
        ({"run_at": datetime(2030, 1, 1)}, "aware datetime"),  # noqa: DTZ001 - that is the point
        ({"run_at": 5, "delay_s": 5}, "exclude each other"),
        ({"key": 5}, "write a text"),
        ({"id": 5}, "write a text"),
        ({"id": ""}, "write a text"),
        ({"rule": "any"}, "'all_success' or 'all_done'"),
    ],
)
def test_wrong_options_of_a_job_are_refused(
    scheduler: Callable[..., Scheduler], options: dict[str, Any], advice: str
) -> None:
    s = scheduler()
    with pytest.raises(UsageError, match=advice):
        s.submit(pow, 2, 2, **options)
    assert sum(s.counts().values()) == 0


def test_what_cannot_be_called_or_is_here_already_is_refused(
    scheduler: Callable[..., Scheduler],
) -> None:
    s = scheduler()
    with pytest.raises(UsageError, match="submit a function"):
        s.submit(5)  # type: ignore[arg-type]
    s.submit(pow, 2, 2, id="once")
    with pytest.raises(UsageError, match="write another id"):
        s.submit(pow, 2, 2, id="once")
    with pytest.raises(UsageError, match="'drain', 'cancel', 'abort'"):
        s.shutdown("now")  # type: ignore[arg-type]
    with pytest.raises(JobNotFound):
        s.get("twice")
    with pytest.raises(JobNotFound):
        s.cancel(77)


def test_a_callable_without_a_hash_may_be_submitted(scheduler: Callable[..., Scheduler]) -> None:
    class Adder:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, a: int, b: int) -> int:
            return a + b

    assert scheduler().submit(Adder(), 1, b=2).result(20) == 3


def test_an_id_may_be_a_word_of_an_enumeration_and_is_there_once() -> None:
    class Name(StrEnum):
        TIDE = "tide"

    with Scheduler(workers=1, keep_results=1) as s:
        first = s.submit(int, id=Name.TIDE, delay_s=3600)
        assert (type(first.id), first.id) == (str, "tide")
        for name in ("tide", Name.TIDE):
            with pytest.raises(UsageError, match="'tide' is here already"):
                s.submit(int, id=name)
        child = s.submit(int, after=[Name.TIDE], rule="all_done")
        first.cancel()
        child.result(30)
        s.submit(int, id=Name.TIDE)  # the first one is forgotten by now
        s.wait(timeout_s=30)
        assert s.counts()[State.SUCCEEDED] == 2
