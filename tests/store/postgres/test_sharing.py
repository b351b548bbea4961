"""One answer for all who ask the same at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event, Semaphore
from time import monotonic

import pytest

from timeball.errors import StoreUnavailable
from timeball.store.postgres.sharing import Shared

WAIT_S = 60.0


def test_who_comes_while_it_is_asked_shares_the_next_answer_and_no_older_one() -> None:
    asked, go, numbers = Semaphore(0), Semaphore(0), count(1)

    def ask() -> int:
        number = next(numbers)
        asked.release()
        assert go.acquire(timeout=WAIT_S)
        return number

    shared, came = Shared(ask), Semaphore(0)

    def come() -> int:
        came.release()
        return shared()

    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(shared)
        assert asked.acquire(timeout=WAIT_S)
        others = [pool.submit(come) for _ in range(4)]
        for _ in others:
            assert came.acquire(timeout=WAIT_S)
        go.release(5)
        answers = [each.result(WAIT_S) for each in others]
        assert first.result(WAIT_S) == 1
    assert min(answers) > 1


def test_all_who_wait_meanwhile_cost_one_question() -> None:
    begun, go, asked = Event(), Event(), count()

    def ask() -> int:
        begun.set()
        assert go.wait(WAIT_S)
        return next(asked)

    shared = Shared(ask)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared)
        assert begun.wait(WAIT_S)
        second = pool.submit(shared)
        until = monotonic() + WAIT_S
        while (third := shared._next) is None and monotonic() < until:
            go.wait(0.005)
        assert third is not None
        go.set()
        assert [first.result(WAIT_S), second.result(WAIT_S), third.result(WAIT_S)] == [0, 1, 1]
    assert shared() == 2


def test_an_error_is_told_to_who_asked_and_the_next_asks_again() -> None:
    answers: Iterator[int | StoreUnavailable] = iter([StoreUnavailable("away"), 7])

    def ask() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared = Shared(ask)
    with pytest.raises(StoreUnavailable, match="away"):
        shared()
    assert shared() == 7
