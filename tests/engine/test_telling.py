"""One line per transition of the in-process engine: as many of each as the record has (I25)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from timeball import (
    AsyncScheduler,
    Cancel,
    Context,
    Rate,
    Retry,
    Scheduler,
    Snooze,
    chain,
    draft,
)
from timeball.core.history import JobHistory
from timeball.core.states import Ending, State
from timeball.engine.agenda import Agenda
from timeball.engine.telling import ToldAgenda
from timeball.observe.transitions import LOGGER, Happening, Transition

QUICK = Retry(1, base_s=0.001)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[Transition]]]:
    """All that has been told."""
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        yield lambda: [each.msg for each in caplog.records if isinstance(each.msg, Transition)]


class Flaky:
    """Fails, then asks for a moment, then gives in."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> object:
        self.calls += 1
        if self.calls == 1:
            raise OSError("a secret error")
        return Snooze(0.001) if self.calls == 2 else "a secret result"


def fails() -> None:
    raise ValueError("always")


def quits() -> Cancel:
    return Cancel("a secret reason")


def dies() -> None:
    os._exit(9)


def recounted(histories: list[JobHistory]) -> Counter[str]:
    """The lines that the record asks for."""
    found = Counter({Happening.SUBMITTED.value: len(histories)})
    for job in histories:
        found[Happening.BEGUN] += len(job.grants)
        found[Happening.CANCEL_REQUESTED] += len(job.cancels_requested_at)
        found.update(row.ending.value for row in job.endings)
    return +found


def told(lines: list[Transition]) -> Counter[str]:
    return Counter(line.event.value for line in lines)


def test_the_lines_equal_the_record_and_so_do_all_counters(
    lines: Callable[[], list[Transition]], scheduler: Callable[..., Scheduler]
) -> None:
    s, begun = scheduler(2), Event()

    def obeys(context: Context) -> None:
        begun.set()
        while not context.cancelled():
            pass

    for number in range(5):
        s.submit(pow, number, 2)
    s.submit(Flaky(), retry=QUICK)
    bad = s.submit(fails, retry=QUICK)
    s.submit(pow, 1, 1, after=[bad])
    s.submit(quits)
    s.submit(pow, 1, 1, delay_s=3_600, id="a name of its own").cancel()
    running = s.submit(obeys)
    assert begun.wait(20)
    running.cancel()
    running.cancel()
    s.wait(timeout_s=20)

    snapshot, report = s._engine.snapshot(), s.report()
    assert told(lines()) == recounted(snapshot.histories)
    states = Counter(line.event for line in lines())
    for state in ("succeeded", "failed", "cancelled", "skipped"):
        assert snapshot.counts[State(state)] == states[state]
    assert report.attempts == states["begun"]
    assert report.retries == states["retried"] + states["snoozed"]
    assert not any("secret" in str(line) for line in lines())


def test_a_line_names_the_job_its_turn_and_its_error(
    lines: Callable[[], list[Transition]], scheduler: Callable[..., Scheduler]
) -> None:
    s = scheduler(1)
    s.submit(fails, id="mine", retry=QUICK)
    s.wait(timeout_s=20)
    submitted, first, retried, second, failed = lines()
    assert (submitted.event, submitted.job, submitted.kind) == ("submitted", "mine", "fails")
    assert (first.turn, second.turn) == (1, 2)
    assert (retried.error_type, retried.delay_s) == ("ValueError", retried.delay_s)
    assert (failed.event, failed.reason, failed.error_type) == ("failed", "exhausted", "ValueError")
    assert second.began_at is not None
    assert failed.ended_at is not None
    assert failed.ended_at >= second.began_at


def test_what_the_limiter_costs_is_in_the_line(
    lines: Callable[[], list[Transition]], scheduler: Callable[..., Scheduler]
) -> None:
    s = scheduler(2, rate=Rate(1, per_s=0.05))
    for _ in range(2):
        s.submit(pow, 1, 1)
    s.wait(timeout_s=20)
    first, second = (line for line in lines() if line.event is Happening.BEGUN)
    assert first.limiter_wait_s == 0
    assert second.limiter_wait_s is not None
    assert second.queue_wait_s is not None
    assert 0 < second.limiter_wait_s <= second.queue_wait_s


@pytest.mark.slow
def test_a_death_is_told_as_the_record_has_it(
    lines: Callable[[], list[Transition]], scheduler: Callable[..., Scheduler]
) -> None:
    s = scheduler(1, runner="processes")
    s.submit(dies)
    s.wait(timeout_s=60)
    assert told(lines()) == recounted(s._engine.snapshot().histories)
    assert {line.error_type for line in lines() if line.ended_at} == {"Lost"}


def test_on_an_event_loop_it_is_the_same(lines: Callable[[], list[Transition]]) -> None:
    async def main() -> list[JobHistory]:
        async def job() -> None:
            await asyncio.sleep(0)

        async with AsyncScheduler(workers=2) as s:
            for _ in range(3):
                await s.submit(job)
            await s.wait()
            return s._engine.snapshot().histories

    histories = asyncio.run(main())
    assert told(lines()) == recounted(histories)


def test_where_nobody_listens_there_is_nothing_to_ask(scheduler: Callable[..., Scheduler]) -> None:
    assert type(scheduler(1)._engine.agenda) is Agenda


@pytest.mark.usefixtures("lines")
def test_where_somebody_does_the_agenda_is_another(scheduler: Callable[..., Scheduler]) -> None:
    assert type(scheduler(1)._engine.agenda) is ToldAgenda


def test_jobs_that_are_submitted_together_are_told_of_each(
    lines: Callable[[], list[Transition]],
) -> None:
    with Scheduler(workers=2) as s:
        first = draft(pow, 2, 2)
        s.submit_all([first, draft(pow, 3, 2, after=[first])])
    assert [line.event for line in lines()].count("submitted") == 2


def test_jobs_that_are_spawned_are_told_too(
    lines: Callable[[], list[Transition]],
) -> None:
    def split(ctx: Context) -> None:
        ctx.spawn(int)

    with Scheduler() as s:
        s.submit_all(chain(draft(int), draft(split)))
    told = Counter(line.event for line in lines())
    assert told[Happening.SUBMITTED] == 3
    assert told[Ending.AWAITED] == 1
    assert told[Ending.SUCCEEDED] == 3
