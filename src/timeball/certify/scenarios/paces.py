"""Limits, retries, deadlines and figures under the stepper: small, each about one promise."""

from __future__ import annotations

from typing import Final

from timeball.certify import modelled
from timeball.certify.overlay import Overlay
from timeball.certify.stepper import check, here
from timeball.certify.trial import Scenario, Trial
from timeball.core.makespan import AttemptRecord
from timeball.core.rate import NS_PER_S, Rate
from timeball.core.retry import Retry
from timeball.core.states import Ending, State

FLAKY: Final = Retry(3, base_s=1.0, jitter="none")


def _now_ns() -> int:
    return here().stepper.now_ns


def two_at_a_limit_of_one(copies: Overlay) -> None:
    """A permit is taken with the job, in one step."""
    rate = Rate(1, per_s=1)
    trial = Trial(copies, 2, rate=rate, strict="recorded")
    trial.submit("a")
    trial.submit("b")
    trial.wait()
    trial.check_rate(rate)
    trial.check_end()


def five_at_a_limit_of_two(copies: Overlay) -> None:
    """Starts come as early as the window allows, and no earlier."""
    rate = Rate(2, per_s=1)
    trial = Trial(copies, 2, rate=rate, strict="recorded")
    for name in "abcde":
        trial.submit(name)
    trial.wait()
    trial.check_rate(rate)
    seconds = [stamp / NS_PER_S for stamp in trial.stamps_ns]
    check("exact", seconds == [0, 0, 1, 1, 2], f"2 a second, and starts at {seconds} s")
    trial.check_end()


def a_bucket_after_a_rest(copies: Overlay) -> None:
    """However long it rested, no more than C start at once."""
    rate = Rate(1, per_s=1, burst=2)
    trial = Trial(copies, 1, rate=rate, strict="recorded")
    trial.wait(trial.submit("a"))
    modelled.sleep(10)
    for name in "bcd":
        trial.submit(name)
    trial.wait()
    trial.check_rate(rate)
    trial.check_end()


def a_step_of_the_wall_clock(copies: Overlay) -> None:
    """The limit holds though somebody sets the clock."""
    rate = Rate(1, per_s=1)
    trial = Trial(copies, 1, rate=rate)

    def step() -> None:
        here().stepper.wall_ns += 3600 * NS_PER_S

    trial.submit("a", step)
    trial.submit("b")
    trial.wait()
    trial.check_rate(rate, trial.stamps_ns)
    trial.check_end()


def a_look_while_the_limiter_refuses(copies: Overlay) -> None:
    """Nobody sleeps under the lock."""
    trial = Trial(copies, 1, rate=Rate(1, per_s=1))
    trial.submit("a")
    trial.submit("b")
    trial.look()
    check("prompt", _now_ns() == 0, f"to look took {_now_ns() / 1e9:g} s")
    trial.wait()
    trial.check_end()


def a_late_call(copies: Overlay) -> None:
    """The limit also holds for what callables see, though a thread is late after its claim."""
    rate = Rate(1, per_s=1)
    trial = Trial(copies, 2, rate=rate, max_pending=9)
    lateness_s = [0.9]
    # Called when a job has left the queue, outside the lock: between its claim and its call.
    trial.agenda.on_room = lambda: modelled.sleep(lateness_s.pop() if lateness_s else 0)
    trial.submit("a")
    trial.submit("b")
    trial.wait()
    trial.check_rate(rate, trial.stamps_ns)
    trial.check_end()


def a_retry_beside_fresh_jobs(copies: Overlay) -> None:
    """A retry waits out its backoff without a slot, and comes after those that are ready."""
    trial = Trial(copies, 1)
    order = []

    def flaky() -> None:
        order.append("a")
        if trial.calls["a"] == 1:
            raise ValueError

    trial.submit("a", flaky, retry=FLAKY)
    trial.submit("b", lambda: order.append("b"))
    trial.wait()
    check("backoff", order == ["a", "b", "a"], f"the order was {order}")
    check("backoff", trial.stamps_ns[-1] == NS_PER_S, f"again after {trial.stamps_ns[-1]} ns")
    trial.check_end()


def a_retry_while_another_leads(copies: Overlay) -> None:
    """Whoever parks with an earlier deadline than the leader knows has the leader look."""
    trial = Trial(copies, 2)
    met = modelled.Event()

    def flaky() -> None:
        if trial.calls["a"] == 1:
            met.wait()
            modelled.sleep(1)  # by then the other worker has become the leader
            raise ValueError

    trial.submit("a", flaky, retry=FLAKY)
    trial.submit("b", met.set)
    trial.wait()
    again_s = trial.stamps_ns[-1] / NS_PER_S
    check("prompt", again_s == 2, f"the retry was due at 2 s, and began at {again_s:g} s")  # noqa: PLR2004 - as in the text
    trial.check_end()


def a_batch_of_all_sorts(copies: Overlay) -> None:
    """What is cancelled, skipped or failed stays in the denominator."""
    trial = Trial(copies, 1)

    def fail() -> None:
        raise ValueError

    trial.submit("a")
    trial.submit("b", fail)
    trial.submit("c", after=["b"])
    trial.scheduler.cancel(trial.submit("d", delay_s=60))
    trial.wait()
    rate = trial.scheduler.report().success_rate
    check("success-rate", rate == 1 / 4, f"1 of 4 succeeded, and the rate is {rate}")
    trial.check_end()


def a_batch_that_waited_first(copies: Overlay) -> None:
    """The makespan begins with the first start."""
    second = NS_PER_S
    record = AttemptRecord("a", 1, 0, 0, 5 * second, 7 * second, Ending.SUCCEEDED)
    span_ns = copies["timeball.core.makespan"].span_of([record]).length_ns
    check("makespan", span_ns == 2 * second, f"ran from 5 s to 7 s, and took {span_ns / second} s")


def two_jobs_at_a_gate(copies: Overlay) -> None:
    """A limiter inside jobs keeps its rate, and whoever waits there is woken."""
    rate = Rate(1, per_s=1)
    trial = Trial(copies, 2)
    gate = copies["timeball.engine.gate"].JobLimiter(rate)
    stamps_ns: list[int] = []

    def body() -> None:
        gate.acquire()
        stamps_ns.append(_now_ns())

    for name in "abc":
        trial.submit(name, body)
    trial.wait()
    trial.check_rate(rate, stamps_ns)
    check("prompt", stamps_ns[-1] == 2 * NS_PER_S, f"through the gate at {stamps_ns} ns")
    trial.check_end()


def a_cancel_of_a_retry(copies: Overlay) -> None:
    """A job that waits for its next attempt can be cancelled, and then it ends."""
    trial = Trial(copies, 1)

    def flaky() -> None:
        raise ValueError

    job = trial.submit("a", flaky, retry=FLAKY)
    canceller = modelled.Thread(target=lambda: trial.scheduler.cancel(job), name="canceller")
    canceller.start()
    trial.wait(job)
    canceller.join()
    check("outcome", job.state in {State.CANCELLED, State.FAILED}, f"is {job.state}")
    trial.look()


TWO_AT_A_LIMIT_OF_ONE: Final = Scenario(two_at_a_limit_of_one)
FIVE_AT_A_LIMIT_OF_TWO: Final = Scenario(five_at_a_limit_of_two, delays=False)
A_BUCKET_AFTER_A_REST: Final = Scenario(a_bucket_after_a_rest)
A_STEP_OF_THE_WALL_CLOCK: Final = Scenario(a_step_of_the_wall_clock, delays=False)
A_LOOK_WHILE_THE_LIMITER_REFUSES: Final = Scenario(a_look_while_the_limiter_refuses, delays=False)
A_LATE_CALL: Final = Scenario(a_late_call, delays=False)
A_RETRY_BESIDE_FRESH_JOBS: Final = Scenario(a_retry_beside_fresh_jobs, delays=False)
A_RETRY_WHILE_ANOTHER_LEADS: Final = Scenario(a_retry_while_another_leads, delays=False)
A_BATCH_OF_ALL_SORTS: Final = Scenario(a_batch_of_all_sorts, delays=False)
A_BATCH_THAT_WAITED_FIRST: Final = Scenario(a_batch_that_waited_first)
TWO_JOBS_AT_A_GATE: Final = Scenario(two_jobs_at_a_gate, delays=False)
A_CANCEL_OF_A_RETRY: Final = Scenario(a_cancel_of_a_retry)

ALL: Final = (
    TWO_AT_A_LIMIT_OF_ONE,
    FIVE_AT_A_LIMIT_OF_TWO,
    A_BUCKET_AFTER_A_REST,
    A_STEP_OF_THE_WALL_CLOCK,
    A_LOOK_WHILE_THE_LIMITER_REFUSES,
    A_LATE_CALL,
    A_RETRY_BESIDE_FRESH_JOBS,
    A_RETRY_WHILE_ANOTHER_LEADS,
    A_BATCH_OF_ALL_SORTS,
    A_BATCH_THAT_WAITED_FIRST,
    TWO_JOBS_AT_A_GATE,
    A_CANCEL_OF_A_RETRY,
)
