"""The stepper finds every classic defect, tells how, and finds nothing where there is nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from timeball.certify import modelled
from timeball.certify.overlay import Overlay
from timeball.certify.schedules import Run, bounded, first_failure, pct, replay, walks
from timeball.certify.stepper import Chooser, Stepper, check
from timeball.certify.story import Outcome

CLASSIC = "tests.races.classic"
overlay = Overlay([CLASSIC], substitutes=modelled.MODULES)
classic = overlay[CLASSIC]
FILES = [overlay.files[CLASSIC]]

Scenario = Callable[[Any], None]


def at_once(*bodies: Callable[[], Any]) -> None:
    threads = [modelled.Thread(target=body, name=f"T{n}") for n, body in enumerate(bodies, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def claim_twice(it: Any) -> None:
    it.pending.update(a=None, b=None)
    at_once(it.claim, it.claim)
    check("once", sorted(it.starts) == ["a", "b"], f"started {it.starts}")


def count_twice(it: Any) -> None:
    at_once(it.count, it.count)
    check("sums", it.finished == 2, f"counted {it.finished} of 2")


def finish_and_report(it: Any) -> None:
    at_once(lambda: it.finish("a"), it.report)


def three_for_two_slots(it: Any) -> None:
    at_once(it.take_slot, it.take_slot, it.take_slot)
    check("slots", len(it.running) <= 2, f"{len(it.running)} run in 2 slots")


def jobs_that_meet(it: Any) -> None:
    met = modelled.Event()
    at_once(lambda: it.run_locked(met.wait), lambda: it.run_locked(met.set))


def get_and_put(it: Any) -> None:
    at_once(it.get, lambda: it.put("a"))


def two_get_one(it: Any) -> None:
    def late() -> None:
        it.put_for_all("a")
        it.put_for_all("b")

    at_once(it.get_unlooped, it.get_unlooped, late)


DEFECTS = [
    (claim_twice, "once"),
    (count_twice, "sums"),
    (finish_and_report, "deadlock"),
    (three_for_two_slots, "slots"),
    (jobs_that_meet, "deadlock"),
    (get_and_put, "lost-wake-up"),
    (two_get_one, "crash"),
]


THREE_THREADS = (three_for_two_slots, two_get_one)


def running(scenario: Scenario, made: Callable[[], Any]) -> Run:
    def run(chooser: Chooser) -> Outcome:
        opcodes = ["Buggy.count"] if scenario is count_twice else []
        stepper = Stepper(chooser, files=FILES, opcodes=opcodes)
        return stepper.run(lambda: scenario(made()))

    return run


every_defect = pytest.mark.parametrize(
    ("scenario", "name"), DEFECTS, ids=lambda value: getattr(value, "__name__", None)
)

every_scenario = pytest.mark.parametrize(
    "scenario", [scenario for scenario, _ in DEFECTS], ids=lambda scenario: scenario.__name__
)


@every_defect
def test_a_bounded_search_finds_every_classic_defect(scenario: Scenario, name: str) -> None:
    found = first_failure(bounded(running(scenario, classic.Buggy)))
    assert found is not None
    assert found.check == name


@every_defect
@pytest.mark.parametrize("explore", [walks, pct])
def test_so_do_random_schedules(
    scenario: Scenario, name: str, explore: Callable[[Run], Any]
) -> None:
    found = first_failure(islice(explore(running(scenario, classic.Buggy)), 1000))
    assert found is not None
    assert found.check == name


@every_scenario
def test_the_mended_code_is_searched_to_the_end(scenario: Scenario) -> None:
    preemptions = 1 if scenario in THREE_THREADS else 2
    outcomes = list(bounded(running(scenario, classic.Mended), preemptions=preemptions))
    assert first_failure(outcomes) is None
    assert len({outcome.schedule for outcome in outcomes}) == len(outcomes) > 1


@every_scenario
def test_a_schedule_is_replayed(scenario: Scenario) -> None:
    run = running(scenario, classic.Buggy)
    found = first_failure(islice(walks(run), 1000))
    assert found is not None
    again = replay(run, found.schedule)
    assert (again.check, again.text, again.steps) == (found.check, found.text, found.steps)


def test_the_story_tells_who_ran_which_line() -> None:
    found = first_failure(bounded(running(claim_twice, classic.Buggy)))
    assert found is not None
    story = found.story()
    assert story.startswith("once: started ['a', 'a']")
    assert re.search(r"T1 +classic\.py:\d+ +if not self\.pending:", story)
    assert story.endswith(f"replay: {found.schedule}")


def once(body: Callable[[], Any], **options: Any) -> Outcome:
    return next(bounded(lambda chooser: Stepper(chooser, files=FILES, **options).run(body)))


def test_time_passes_only_when_all_wait() -> None:
    def scenario() -> None:
        begun = time.monotonic()
        at_once(lambda: modelled.sleep(3600), lambda: modelled.sleep(60))
        check("slow", time.monotonic() - begun < 5, "an hour was slept")

    assert once(scenario).now_ns == 3600 * 10**9


def test_a_run_without_end_is_ended() -> None:
    def scenario() -> None:
        while True:
            modelled.Event().set()

    assert once(scenario, steps_max=100).check == "endless"


def test_a_daemon_is_not_waited_for() -> None:
    def scenario() -> None:
        modelled.Thread(target=modelled.Event().wait, daemon=True).start()

    assert once(scenario).check is None


def test_a_wait_may_end_in_time_or_not() -> None:
    answers = []

    def scenario() -> None:
        event = modelled.Event()
        waiter = modelled.Thread(target=lambda: answers.append(event.wait(1)))
        waiter.start()
        modelled.sleep(1)
        event.set()
        waiter.join()

    run = running(lambda _: scenario(), lambda: None)
    assert first_failure(bounded(run)) is None
    assert set(answers) == {True, False}


def test_modelled_things_misused_raise_as_the_real_ones_do() -> None:
    def scenario() -> None:
        for wrong in (
            modelled.Lock().release,
            modelled.RLock().release,
            modelled.Condition().wait,
            modelled.Condition().notify,
        ):
            with pytest.raises(RuntimeError):
                wrong()

    assert once(scenario).check is None


def test_a_modelled_lock_belongs_to_a_stepper() -> None:
    with pytest.raises(AssertionError, match="under a stepper only"):
        modelled.Lock().acquire()
