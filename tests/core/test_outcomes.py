from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.outcomes import Raised, Returned, Run, Snoozed, Stopped, Unbegun, decide
from timeball.core.records import Settlement, Turn
from timeball.core.retry import Retry
from timeball.core.states import FINAL_STATE, Ending

RETRY = Retry(jitter="none", base_s=2.0)


def turn(**fields) -> Turn:
    first = {"lane": 1, "seq": 2, "job_id": 3, "turn": 4, "uuid": UUID(int=0), "kind": "a"}
    past = {"attempts": 0, "failures": 0, "crashes": 0, "delay_s": 0.0, "timeout_s": None}
    rest = {"args": "{}", "max_retries": 3, "granted_at": 10.0}
    return Turn(**{**first, **past, **rest, **fields})


def settled(outcome, *, began_at: float | None = 11.0, **fields) -> Settlement:
    return decide(turn(**fields), outcome, Run(began_at, 0.5), RETRY, 0.0)


def raised(*, again: bool = True, **fields) -> Raised:
    return Raised(error_type="E", error="text", again=again, **fields)


OUTCOMES = st.one_of(
    st.builds(Returned, st.none() | st.just("1")),
    st.builds(Snoozed, st.floats(0, 100)),
    st.just(Stopped("enough")),
    st.just(Unbegun()),
    st.booleans().map(lambda again: raised(again=again)),
)


@given(outcome=OUTCOMES, failures=st.integers(0, 10), once=st.booleans())
def test_every_outcome_is_settled_for_the_turn_that_it_speaks_of(outcome, failures, once) -> None:
    found = settled(outcome, failures=failures, at_most_once=once)
    assert found[:4] == (1, 2, 3, 4)
    assert (found.began_at, found.ran_s) == (11.0, 0.5)
    assert found.delay_s >= 0


@given(outcome=OUTCOMES, failures=st.integers(0, 10))
def test_no_second_attempt_follows_one_that_may_run_only_once(outcome, failures: int) -> None:
    assert settled(outcome, failures=failures, at_most_once=True).ending in FINAL_STATE


def test_a_turn_given_back_before_it_began_may_run_even_if_only_once() -> None:
    found = settled(Unbegun(), began_at=None, at_most_once=True)
    assert found.ending is Ending.RELEASED


def test_a_result_is_kept() -> None:
    found = settled(Returned("[1]"))
    assert (found.ending, found.result) == (Ending.SUCCEEDED, "[1]")


@pytest.mark.parametrize("max_retries", [0, 1, 5])
def test_retries_end_exactly_with_the_budget(max_retries: int) -> None:
    endings = [
        settled(raised(), failures=n, max_retries=max_retries).ending
        for n in range(max_retries + 1)
    ]
    assert endings == [Ending.RETRIED] * max_retries + [Ending.FAILED]


def test_an_error_that_is_not_worth_it_fails_at_once() -> None:
    found = settled(raised(again=False))
    assert (found.ending, found.reason, found.error) == (Ending.FAILED, "permanent", "text")


def test_a_spent_budget_says_so() -> None:
    assert settled(raised(), failures=3).reason == "exhausted"


def test_the_wait_follows_the_retry_law_and_the_error_may_overrule_it() -> None:
    assert settled(raised(), failures=1).delay_s == 4.0
    assert settled(raised(retry_after_s=60.0), failures=1).delay_s == 60.0


def test_a_snooze_costs_nothing_and_says_when() -> None:
    found = settled(Snoozed(7.0), failures=3)
    assert (found.ending, found.delay_s) == (Ending.SNOOZED, 7.0)


def test_a_stop_is_final() -> None:
    found = settled(Stopped("enough"))
    assert (found.ending, found.reason) == (Ending.CANCELLED, "enough")
