"""Claims, counts, cancels, waits and ends under the stepper: small, each about one promise."""

from __future__ import annotations

from typing import Final

from timeball.certify import modelled
from timeball.certify.overlay import Overlay
from timeball.certify.stepper import check, here, switch_point
from timeball.certify.trial import Scenario, Trial
from timeball.core.records import CancelAnswer
from timeball.core.states import State
from timeball.errors import SchedulerClosed


def _now_ns() -> int:
    return here().stepper.now_ns


def two_jobs(copies: Overlay) -> None:
    """Each job starts once, and is counted once."""
    trial = Trial(copies, 2)
    a, b = trial.submit("a"), trial.submit("b")
    trial.wait(a)
    trial.wait(b)
    trial.check_end()


def three_jobs_for_one_slot(copies: Overlay) -> None:
    """Never more than W at a time."""
    trial = Trial(copies, 1)
    for name in "abc":
        trial.submit(name)
    trial.wait()
    trial.check_end()


def a_look_meanwhile(copies: Overlay) -> None:
    """Counts add up at every instant at which somebody looks, and looking harms nobody."""
    trial = Trial(copies, 2)
    trial.submit("a")
    trial.submit("b")
    trial.look()
    trial.look()
    trial.wait()
    trial.check_end()


def jobs_that_meet(copies: Overlay) -> None:
    """A job may wait for another one that runs beside it."""
    trial, met = Trial(copies, 2), modelled.Event()
    trial.submit("a", met.wait)
    trial.submit("b", met.set)
    trial.wait()
    trial.check_end()


def a_cancel_at_any_time(copies: Overlay) -> None:
    """A cancel that was granted keeps the job from starting; else what it did stands."""
    trial = Trial(copies, 1)
    job = trial.submit("a")
    answer = trial.scheduler.cancel(job)
    trial.wait(job)
    called = trial.calls["a"]
    granted = answer is CancelAnswer.CANCELLED
    check("cancel", not (granted and called), "a cancel was granted, and the job was called")
    check("outcome", called == 0 or job.state is State.SUCCEEDED, f"returned, and is {job.state}")
    trial.check_end()


def a_cancel_after_the_end(copies: Overlay) -> None:
    """What has ended stays as it ended."""
    trial = Trial(copies, 1)
    job = trial.submit("a")
    trial.wait(job)
    answer = trial.scheduler.cancel(job)
    check("outcome", job.state is State.SUCCEEDED, f"succeeded, then {job.state} by {answer}")
    trial.check_end()


def one_after_the_other(copies: Overlay) -> None:
    """Whoever submits is heard at once, whatever the idle worker is about to do."""
    trial = Trial(copies, 1)
    trial.wait(trial.submit("a"))
    trial.wait(trial.submit("b"))
    check("prompt", _now_ns() == 0, f"the idle worker began the job after {_now_ns() / 1e9:g} s")
    trial.check_end()


def a_job_that_exits(copies: Overlay) -> None:
    """Whatever a job raises, its worker lives."""
    trial = Trial(copies, 1)

    def leave() -> None:
        raise SystemExit(3)

    a, b = trial.submit("a", leave), trial.submit("b")
    trial.wait()
    states = [a.state, b.state]
    check("states", states == [State.FAILED, State.SUCCEEDED], f"ended as {states}")
    trial.check_end()


def a_wait_for_two(copies: Overlay) -> None:
    """A wait is over when all that it is for has ended."""
    trial = Trial(copies, 2)
    trial.wait(trial.submit("a"), trial.submit("b"))
    trial.check_end()


def a_shutdown_while_somebody_submits(copies: Overlay) -> None:
    """What was accepted ends, what was not is refused, and nothing starts after the shutdown."""
    trial = Trial(copies, 1)
    refused = []

    def submit() -> None:
        for name in "bc":
            try:
                trial.submit(name)
            except SchedulerClosed:
                refused.append(name)

    other = modelled.Thread(target=submit, name="submitter")
    trial.submit("a")
    other.start()
    trial.scheduler.shutdown("drain", deadline_s=None)
    started = set(trial.calls)
    other.join()
    modelled.sleep(60)
    check("closed", started == set(trial.calls), "a job started after the shutdown")
    left = [job for job in trial.jobs if not job.done]
    check("lost", not left, f"accepted, and left behind: {left}")
    check("sums", len(trial.jobs) + len(refused) == 3, "one was neither accepted nor refused")  # noqa: PLR2004 - a, b, c


def a_shutdown_with_a_full_queue(copies: Overlay) -> None:
    """Whoever waits for room gets some, or is refused."""
    trial = Trial(copies, 1, max_pending=1)
    refused = []

    def submit(name: str) -> None:
        try:
            trial.submit(name)
        except SchedulerClosed:
            refused.append(name)

    threads = [
        modelled.Thread(target=submit, args=(name,), name=f"submits {name}") for name in "ab"
    ]
    for thread in threads:
        thread.start()
    trial.submit("c")
    trial.scheduler.shutdown("cancel", deadline_s=None)
    for thread in threads:
        thread.join()
    left = [job for job in trial.jobs if not job.done]
    check("lost", not left, f"accepted, and left behind: {left}")


def a_child_of_a_job_that_ends(copies: Overlay) -> None:
    """A child starts once, after its parents, whenever it was submitted."""
    trial = Trial(copies, 2)
    order: list[str] = []
    trial.submit("a", lambda: order.append("a"))
    trial.submit("b", lambda: order.append("b"))
    trial.submit("c", lambda: order.append("c"), after=["a", "b"])
    trial.wait()
    check("order", order[-1] == "c", f"the order was {order}")
    trial.check_end()


def two_jobs_of_one_key(copies: Overlay) -> None:
    """No more jobs of a key at a time than it may have."""
    trial = Trial(copies, 2, key_limits={"k": 1})
    inside: list[str] = []

    def body() -> None:
        inside.append("k")
        check("key", len(inside) == 1, "two jobs of a key that may have one")
        switch_point()
        inside.pop()

    for name in "abc":
        trial.submit(name, body, key="k")
    trial.wait()
    trial.check_end()


def a_wait_that_may_be_too_short(copies: Overlay) -> None:
    """A wait that ends as the job does harms nobody."""
    trial = Trial(copies, 1)
    job = trial.submit("a", lambda: modelled.sleep(1))
    try:
        trial.scheduler.wait([job], timeout_s=1)
        check("wait", job.done, "the wait was over before the job")
    except TimeoutError:
        pass
    trial.wait(job, trial.submit("b"))
    trial.check_end()


TWO_JOBS: Final = Scenario(two_jobs, opcodes=("Agenda.finish",))
THREE_JOBS_FOR_ONE_SLOT: Final = Scenario(three_jobs_for_one_slot)
A_LOOK_MEANWHILE: Final = Scenario(a_look_meanwhile)
JOBS_THAT_MEET: Final = Scenario(jobs_that_meet)
A_CANCEL_AT_ANY_TIME: Final = Scenario(a_cancel_at_any_time)
A_CANCEL_AFTER_THE_END: Final = Scenario(a_cancel_after_the_end)
ONE_AFTER_THE_OTHER: Final = Scenario(one_after_the_other, delays=False)
A_JOB_THAT_EXITS: Final = Scenario(a_job_that_exits)
A_WAIT_FOR_TWO: Final = Scenario(a_wait_for_two)
A_SHUTDOWN_WHILE_SOMEBODY_SUBMITS: Final = Scenario(a_shutdown_while_somebody_submits)
A_SHUTDOWN_WITH_A_FULL_QUEUE: Final = Scenario(a_shutdown_with_a_full_queue)
A_CHILD_OF_A_JOB_THAT_ENDS: Final = Scenario(a_child_of_a_job_that_ends)
TWO_JOBS_OF_ONE_KEY: Final = Scenario(two_jobs_of_one_key)
A_WAIT_THAT_MAY_BE_TOO_SHORT: Final = Scenario(a_wait_that_may_be_too_short)

ALL: Final = (
    TWO_JOBS,
    THREE_JOBS_FOR_ONE_SLOT,
    A_LOOK_MEANWHILE,
    JOBS_THAT_MEET,
    A_CANCEL_AT_ANY_TIME,
    A_CANCEL_AFTER_THE_END,
    ONE_AFTER_THE_OTHER,
    A_JOB_THAT_EXITS,
    A_WAIT_FOR_TWO,
    A_SHUTDOWN_WHILE_SOMEBODY_SUBMITS,
    A_SHUTDOWN_WITH_A_FULL_QUEUE,
    A_CHILD_OF_A_JOB_THAT_ENDS,
    TWO_JOBS_OF_ONE_KEY,
    A_WAIT_THAT_MAY_BE_TOO_SHORT,
)
