import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.retry import PermanentError, Retry
from timeball.errors import UsageError

DRAWS = st.floats(0, 1, exclude_max=True)
JITTERS = st.sampled_from(["full", "equal", "decorrelated", "none"])


@given(failures=st.integers(1, 10**6), draw=DRAWS, jitter=JITTERS, previous_s=st.floats(0, 1e5))
def test_a_wait_never_leaves_its_bounds(failures, draw, jitter, previous_s) -> None:
    retry = Retry(jitter=jitter, cap_s=60.0, min_s=0.5)
    assert 0.5 <= retry.delay_s(failures, draw, previous_s=previous_s) <= 60.0


@given(failures=st.integers(1, 12), draw=DRAWS)
def test_the_ceiling_doubles(failures: int, draw: float) -> None:
    retry = Retry(cap_s=1e8)
    assert retry.delay_s(failures + 1, draw) == pytest.approx(2 * retry.delay_s(failures, draw))


@given(failures=st.integers(1, 30), draw=DRAWS)
def test_equal_jitter_waits_at_least_half(failures: int, draw: float) -> None:
    ceiling = Retry(jitter="none").delay_s(failures, 0.0)
    wait_s = Retry(jitter="equal").delay_s(failures, draw)
    assert ceiling / 2 <= wait_s <= ceiling


@given(draw=DRAWS, previous_s=st.floats(0, 1000))
def test_decorrelated_jitter_grows_from_the_wait_before(draw: float, previous_s: float) -> None:
    wait_s = Retry(jitter="decorrelated", base_s=1.0, cap_s=1e8).delay_s(
        1, draw, previous_s=previous_s
    )
    assert 1.0 <= wait_s <= 3 * max(1.0, previous_s)


def test_without_jitter_the_waits_are_exact() -> None:
    retry = Retry(jitter="none", base_s=0.5, factor=3.0, cap_s=10.0)
    assert [retry.delay_s(n, 0.9) for n in (1, 2, 3, 4)] == [0.5, 1.5, 4.5, 10.0]


def test_the_base_class_of_user_errors_is_tried_again_and_no_other() -> None:
    retry = Retry()
    assert retry.wants(ValueError())
    assert not retry.wants(SystemExit())
    assert not retry.wants(KeyboardInterrupt())
    assert Retry(on=(SystemExit,)).wants(SystemExit())


def test_only_the_named_errors_are_tried_again() -> None:
    retry = Retry(on=(OSError,))
    assert retry.wants(ConnectionError())
    assert not retry.wants(ValueError())


def test_a_permanent_error_is_never_tried_again() -> None:
    assert not Retry().wants(PermanentError())
    assert not Retry(on=(PermanentError,)).wants(PermanentError())


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"max_retries": -1}, "write 0 to 1,000,000"),
        ({"max_retries": True}, "write 0 to 1,000,000"),
        ({"base_s": -1.0}, "write seconds, from 0"),
        ({"cap_s": math.nan}, "write seconds, from 0"),
        ({"cap_s": math.inf}, "write seconds, from 0"),
        ({"factor": 0.5}, "write 1 or more"),
        ({"min_s": 5.0, "cap_s": 1.0}, "swap them"),
        ({"jitter": "half"}, "write 'full'"),
    ],
)
def test_what_can_never_work_is_refused_with_advice(wrong, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        Retry(**wrong)
