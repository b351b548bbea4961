"""Whatever a job does, carrying it out gives one outcome, and never raises."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.action.attempts import OCCURRENCE, both, failure, kind, outcome, raising, turn

from timeball.action.context import Cancel, Context, Snooze, StopSign
from timeball.action.python import carry_out
from timeball.action.registry import OCCURRENCE_KEY
from timeball.core.outcomes import Outcome, Returned, Snoozed, Stopped, Unbegun
from timeball.core.retry import PermanentError, Retry

# What it returns


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Returned(None)),
        ({"a": [1, "ü"]}, Returned('{"a":[1,"ü"]}')),
        ({"unstorable": 1}, Returned('{"unstorable":1}')),
        (False, Returned("false")),
        (Snooze(60), Snoozed(60)),
        (Cancel("not\0needed"), Stopped("not\\x00needed")),
        (Unbegun("stopped"), Unbegun("stopped")),
    ],
)
def test_a_value_becomes_an_outcome(value: Any, expected: Outcome) -> None:
    assert [outcome(call) for call in both(value)] == [expected, expected]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (float("nan"), "nan"),
        ("a\0b", "U+0000"),
        ("\ud800", "surrogate"),
        (b"bytes", "binary"),
        ("x" * 300_000, "262,144"),
        ({"a": object()}, "object"),
        ({"a": [float("inf")]}, "inf"),
    ],
)
def test_a_result_that_cannot_be_stored_fails_its_job_for_good(value: Any, word: str) -> None:
    for call in both(value):
        found = failure(call)
        assert word in found.error
        assert len(found.error) < 1_000
        assert (found.again, found.reason) == (False, "result")


@pytest.mark.parametrize("delay_s", [-1, float("nan"), float("inf"), 1e300])
def test_a_snooze_that_no_clock_can_add_fails_in_the_job(delay_s: float) -> None:
    assert failure(lambda: Snooze(delay_s)).error_type == "timeball.errors.UsageError"


def test_a_function_that_returns_a_coroutine_or_an_iterator_has_failed() -> None:
    async def inner() -> None: ...

    closed = threading.Event()

    def generator() -> Any:
        try:
            yield 1
        finally:
            closed.set()

    def started() -> Any:
        iterator = generator()
        next(iterator)
        return iterator

    async def agen() -> Any:
        yield 1

    # An unclosed coroutine would be a warning, and warnings are errors here.
    for call in (inner.__call__, started, agen.__call__):
        found = failure(partial(call))
        assert (found.error_type, found.again) == ("TypeError", True)
    assert closed.is_set()


# What it raises


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__

    @property
    def retry_after_s(self) -> float:
        raise SystemExit


class Cursed(Exception):
    """Whose text ends the process, or so it thinks."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "name", "word"),
    [
        (ValueError("a\0b"), "ValueError", "a\\x00b"),
        (ValueError("\ud800"), "ValueError", "\\ud800"),
        (ValueError("x" * 10_000_000), "ValueError", "left out"),
        (Awkward(), f"{__name__}.Awkward", "Awkward.__str__ raised"),
        (Cursed(), f"{__name__}.Cursed", "Cursed.__str__ raised"),
        (ExceptionGroup("both", [ValueError("one"), Awkward()]), "ExceptionGroup", "both"),
        (MemoryError(), "MemoryError", "Traceback"),
        (RecursionError("deep"), "RecursionError", "deep"),
    ],
)
def test_any_exception_is_kept_as_text(error: Exception, name: str, word: str) -> None:
    for call in raising(error):
        found = failure(call)
        assert found.error_type == name
        assert word in found.error
        assert len(found.error) < 20_000
        assert found.again


def test_the_first_line_is_the_text_and_the_traceback_follows_without_us() -> None:
    first, *rest = failure(raising(ValueError("no such user"))[0]).error.splitlines()
    assert first == "no such user"
    assert "in function" in "\n".join(rest)
    assert "carry_out" not in "\n".join(rest)


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
)
def test_exits_are_failures_that_are_not_tried_again(error: BaseException) -> None:
    for call in raising(error):
        assert not failure(call).again
        assert failure(call, retry=Retry(on=(BaseException,))).again


def test_the_retry_says_which_errors_are_worth_it() -> None:
    for error, again in ((OSError(), True), (ConnectionError(), True), (ValueError(), False)):
        assert failure(raising(error)[0], retry=Retry(on=(OSError,))).again is again
    assert not failure(raising(PermanentError("no"))[0]).again


@pytest.mark.parametrize(
    ("said", "kept"),
    [(7, 7.0), (0, 0.0), (-1, None), (float("nan"), None), ("soon", None), (1e300, 316224000.0)],
)
def test_the_errors_own_word_on_the_wait_is_kept(said: Any, kept: float | None) -> None:
    error = ValueError()
    error.retry_after_s = said  # type: ignore[attr-defined]  # as clients of rate-limited APIs do
    assert failure(raising(error)[0]).retry_after_s == kept


@pytest.mark.slow
@given(st.recursive(st.none() | st.floats() | st.text() | st.binary(), st.lists))
def test_no_result_can_poison_a_batch(value: Any) -> None:
    found = carry_out(kind(lambda: value), turn(), StopSign())
    text = found.result if isinstance(found, Returned) else getattr(found, "error", None)
    if text is not None:
        assert "\0" not in text
        assert "\\u0000" not in text
        text.encode()


# What it is called with


def test_arguments_and_context_arrive() -> None:
    def job(a: int, ctx: Context, b: str = "x") -> list[Any]:
        return [a, b, str(ctx.id), ctx.job_id, ctx.turn, ctx.attempt, ctx.kind, ctx.key]

    found = carry_out(kind(job), turn('{"a":1}', attempts=2), StopSign())
    key = str(UUID(int=7))
    assert isinstance(found, Returned)
    assert json.loads(found.result or "") == [1, "x", key, 7, 1, 3, "job", key]


def test_the_occurrence_is_shown_by_the_context_and_is_no_argument() -> None:
    def plain() -> int:
        return 1

    def curious(ctx: Context) -> list[Any]:
        assert ctx.occurrence is not None
        return [ctx.occurrence.schedule, ctx.occurrence.nominal_at, ctx.occurrence.missed_count]

    args = json.dumps({OCCURRENCE_KEY: OCCURRENCE})
    assert outcome(plain, args) == Returned("1")
    assert outcome(curious, args) == Returned('["nightly","2026-03-08T07:00:00Z",2]')


@pytest.mark.parametrize(
    ("args", "reason", "word"),
    [
        ("{", "undecodable", "cannot be decoded"),
        ("[]", "undecodable", "not an object"),
        ('{"__occurrence__":3}', "undecodable", "cannot be read"),
        ('{"__occurrence__":{}}', "undecodable", "schedule"),
        ("{}", "arguments", "missing: user"),
        ('{"user":1,"name":2}', "arguments", "not a parameter: name"),
    ],
)
def test_a_turn_that_cannot_be_called_fails_for_good(args: str, reason: str, word: str) -> None:
    def function(user: int) -> None: ...
    async def coroutine(user: int) -> None: ...

    for call in (function, coroutine):
        found = failure(call, args)
        assert (found.reason, found.again) == (reason, False)
        assert word in found.error


def test_a_type_error_inside_the_job_is_the_jobs_own() -> None:
    found = failure(lambda: len(3))  # type: ignore[arg-type]  # the fault in question
    assert (found.error_type, found.reason, found.again) == ("TypeError", None, True)


def test_what_one_job_sets_the_next_does_not_see() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    assert outcome(lambda: variable.set("mine") and None) == Returned(None)
    assert outcome(lambda: variable.get("none")) == Returned('"none"')
