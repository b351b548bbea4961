"""Settling: a turn ends once, by the worker that it was granted to, under its own lease."""

from __future__ import annotations

import pytest
from tests.store.world import World, end

from timeball.core.outcomes import UNCOMMITTED
from timeball.core.payload import encode_result, storable
from timeball.core.records import Delivery, Settlement, Verdict
from timeball.core.states import Ending, State

ACCEPTED, ALREADY, STALE = Verdict.ACCEPTED, Verdict.ALREADY, Verdict.STALE

FINAL = {
    Ending.SUCCEEDED: State.SUCCEEDED,
    Ending.FAILED: State.FAILED,
    Ending.CANCELLED: State.CANCELLED,
}
WAITS = [Ending.RETRIED, Ending.SNOOZED]


@pytest.mark.parametrize("ending", FINAL)
def test_a_final_ending_is_final(world: World, ending: Ending) -> None:
    worker = world.worker()
    turn = world.start(worker)
    assert world.settle(worker, end(turn, ending)) == [ACCEPTED]
    world.travel(3_600)
    assert world.store.promote(10)[:2] == (0, None)
    assert world.claim(worker) == []
    assert world.state(turn) is FINAL[ending]


def test_a_success_keeps_what_the_worker_said(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, result='{"x":[1,null]}', ran_s=0.5))
    job = world.job(turn)
    assert (job.result, job.worker, job.turn, job.attempts) == ({"x": [1, None]}, worker, 1, 1)
    assert job.began_at is not None
    assert job.began_at.timestamp() == pytest.approx(turn.granted_at, abs=1e-5)
    assert job.ended_at is not None
    assert job.began_at <= job.ended_at


def test_a_failure_keeps_its_error(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    how = {"reason": "permanent", "error_type": "ValueError", "error": "no"}
    world.settle(worker, end(turn, Ending.FAILED, **how))
    job = world.job(turn)
    assert (job.reason, job.error_type, job.error) == ("permanent", "ValueError", "no")
    assert (job.attempts, job.failures) == (1, 1)


@pytest.mark.parametrize("ending", [*FINAL, *WAITS, Ending.RELEASED])
def test_settling_twice_is_settling_once(world: World, ending: Ending) -> None:
    worker = world.worker()
    said = end(world.start(worker), ending)
    assert world.settle(worker, said) == [ACCEPTED]
    before = world.store.counts()
    assert world.settle(worker, said) == [ALREADY]
    assert world.store.counts() == before
    assert world.stale() == 0


def test_a_turn_does_not_end_in_two_ways(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn))
    assert world.settle(worker, end(turn, Ending.FAILED)) == [STALE]
    assert world.state(turn) is State.SUCCEEDED
    assert world.stale() == 1


def test_of_two_endings_in_one_batch_the_first_counts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    said = [end(turn, Ending.FAILED), end(turn), end(turn, Ending.FAILED)]
    assert world.settle(worker, *said) == [ACCEPTED, STALE, ALREADY]
    assert world.state(turn) is State.FAILED


def test_a_false_word_does_not_stand_in_the_way_of_the_true_one(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    forged = end(turn, Ending.FAILED)._replace(seq=999)
    assert world.settle(worker, forged, end(turn)) == [STALE, ACCEPTED]
    assert world.state(turn) is State.SUCCEEDED


def test_a_zombie_changes_nothing(world: World) -> None:
    zombie, worker = world.worker(), world.worker()
    turn = world.start(zombie)
    world.store.expire(zombie, beat=None, begun=None)
    (again,) = world.claim(worker)
    assert world.settle(zombie, end(turn)) == [STALE]
    assert (again.turn, world.state(turn)) == (2, State.RUNNING)
    assert world.settle(worker, end(again)) == [ACCEPTED]
    assert world.stale() == 1


def test_a_zombie_is_not_told_that_it_gave_its_turn_back(world: World) -> None:
    zombie = world.worker()
    turn = world.start(zombie)
    world.store.expire(zombie, beat=None, begun=())
    assert world.settle(zombie, end(turn, Ending.RELEASED, began=False)) == [STALE]


def test_a_zombie_may_still_end_what_was_not_taken_from_it(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn))
    world.store.expire(worker, beat=None, begun=None)
    assert world.settle(worker, end(turn)) == [ALREADY]


def test_another_workers_turn_cannot_be_ended(world: World) -> None:
    worker, other = world.worker(), world.worker()
    turn = world.start(worker)
    assert world.settle(other, end(turn)) == [STALE]
    assert world.state(turn) is State.RUNNING
    assert world.settle(worker, end(turn)) == [ACCEPTED]


def test_another_workers_ending_is_not_ones_own(world: World) -> None:
    worker, other = world.worker(), world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn))
    assert world.settle(other, end(turn)) == [STALE]


@pytest.mark.parametrize(
    "wrong", [{"lane": 999}, {"seq": 999}, {"turn": 2}, {"turn": 0}, {"job_id": 999_999}]
)
def test_what_was_never_granted_cannot_be_ended(world: World, wrong: dict[str, int]) -> None:
    worker = world.worker()
    turn = world.start(worker)
    assert world.settle(worker, end(turn)._replace(**wrong)) == [STALE]
    assert world.state(turn) is State.RUNNING


def test_a_turn_cannot_be_ended_under_another_lease_of_the_same_worker(world: World) -> None:
    worker = world.worker()
    one, two = world.start(worker), world.start(worker)
    assert world.settle(worker, end(one)._replace(seq=two.seq)) == [STALE]
    assert world.state(one) is State.RUNNING


def test_a_pending_job_cannot_be_ended(world: World) -> None:
    worker = world.worker()
    world.start(worker)
    job = world.job(world.submit())
    assert world.settle(worker, Settlement(1, 1, job.id, 1, Ending.SUCCEEDED)) == [STALE]
    assert world.state(job.uuid) is State.PENDING


def test_the_turn_before_cannot_be_ended_again(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RELEASED))
    (again,) = world.claim(worker)
    assert world.settle(worker, end(turn)) == [STALE]
    assert world.settle(worker, end(again)) == [ACCEPTED]


def test_verdicts_come_in_the_order_of_the_settlements(world: World) -> None:
    worker, other = world.worker(), world.worker()
    mine = [world.start(worker) for _ in range(3)]
    his = world.start(other)
    world.settle(worker, end(mine[1]))
    said = [end(mine[2]), end(his), end(mine[1]), end(mine[0])]
    assert world.settle(worker, *said) == [ACCEPTED, STALE, ALREADY, ACCEPTED]


def test_settling_nothing_says_nothing(world: World) -> None:
    assert world.settle(world.worker()) == []


# Another turn follows -----------------------------------------------------------------------


@pytest.mark.parametrize("ending", WAITS)
def test_the_wait_is_kept(world: World, ending: Ending) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, ending, delay_s=60.0))
    assert (world.state(turn), world.job(turn).turn) == (State.SCHEDULED, 2)
    world.travel(50)
    assert world.store.promote(10).moved == 0
    world.travel(11)
    assert world.store.promote(10).moved == 1
    (again,) = world.claim(worker)
    assert (again.turn, again.attempts, again.delay_s) == (2, 1, 60.0)


def test_a_retry_is_a_failure_and_a_snooze_is_none(world: World) -> None:
    worker = world.worker()
    retried, snoozed = world.start(worker), world.start(worker)
    world.settle(worker, end(retried, Ending.RETRIED), end(snoozed, Ending.SNOOZED))
    assert world.store.promote(10).moved == 2
    failures = {turn.uuid: turn.failures for turn in world.claim(worker)}
    assert failures == {retried.uuid: 1, snoozed.uuid: 0}


def test_a_retry_without_a_wait_is_scheduled_and_due(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RETRIED, error="once"))
    assert (world.state(turn), world.job(turn).error) == (State.SCHEDULED, "once")
    assert world.job(turn).ended_at is None
    assert world.store.promote(10)[:2] == (1, None)


def test_a_retry_goes_to_the_back(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    others = [world.submit() for _ in range(2)]
    world.settle(worker, end(turn, Ending.RETRIED))
    world.store.promote(10)
    assert world.order(worker) == [*others, turn.uuid]


def test_what_is_given_back_is_pending_at_once_and_at_the_back(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    other = world.submit()
    world.settle(worker, end(turn, Ending.RELEASED, began=False))
    assert world.state(turn) is State.PENDING
    assert world.order(worker) == [other, turn.uuid]


@pytest.mark.parametrize("began", [False, True])
def test_what_is_given_back_counts_as_an_attempt_iff_it_began(world: World, *, began: bool) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RELEASED, began=began))
    (again,) = world.claim(worker)
    assert (again.turn, again.attempts, again.failures, again.crashes) == (2, began, 0, 0)


def test_what_is_given_back_together_lines_up_by_age(world: World) -> None:
    worker = world.worker()
    turns = [world.start(worker) for _ in range(3)]
    world.settle(worker, *(end(turn, Ending.RELEASED) for turn in reversed(turns)))
    assert world.order(worker) == [turn.uuid for turn in turns]


def test_counts_of_a_job_add_up_over_its_turns(world: World) -> None:
    worker = world.worker()
    world.submit(max_retries=2)
    for ending in (Ending.RETRIED, Ending.SNOOZED, Ending.RELEASED, Ending.RETRIED):
        world.store.promote(10)
        (turn,) = world.claim(worker)
        world.settle(worker, end(turn, ending))
    world.store.promote(10)
    (turn,) = world.claim(worker)
    assert (turn.turn, turn.attempts, turn.failures, turn.crashes) == (5, 4, 2, 0)
    world.settle(worker, end(turn, Ending.FAILED, reason="exhausted"))
    job = world.job(turn)
    assert (job.attempts, job.failures) == (5, 3)


# Poison -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    ["\0", "\ud800", float("nan"), float("inf"), {1: object()}, ["\udfff\0"]],
    ids=["nul", "surrogate", "nan", "inf", "object", "nested"],
)
def test_a_result_that_cannot_be_stored_harms_no_other(world: World, value: object) -> None:
    worker = world.worker()
    good, bad, last = (world.start(worker) for _ in range(3))
    said = [end(good), end(bad, result=encode_result(value)), end(last, result="1")]
    assert world.settle(worker, *said) == [ACCEPTED] * 3
    assert "unstorable" in world.job(bad).result
    assert world.job(last).result == 1


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "é\U0001f600", "x" * 100_000])
def test_an_error_text_is_kept_as_it_was_made_storable(world: World, text: str) -> None:
    worker = world.worker()
    turn = world.start(worker)
    error = storable(text)
    assert world.settle(worker, end(turn, Ending.FAILED, error=error)) == [ACCEPTED]
    assert world.job(turn).error == error


@pytest.mark.parametrize("max_crashes", [1, 2, 3])
def test_what_its_worker_calls_lost_costs_a_crash_and_one_too_many_quarantines(
    world: World, max_crashes: int
) -> None:
    uuid, worker = world.submit(max_crashes=max_crashes), world.worker()
    for crashes in range(max_crashes):
        (turn,) = world.claim(worker)
        assert turn.crashes == crashes
        lost = end(turn, Ending.LOST, reason="process died", error_type="Lost", error="killed")
        assert world.settle(worker, lost) == [ACCEPTED]
        assert world.settle(worker, lost) == [ALREADY]
    job = world.job(uuid)
    assert (job.state, job.reason, job.error) == (State.FAILED, "quarantined", "killed")
    assert (job.attempts, job.crashes, job.failures) == (max_crashes, max_crashes, 0)
    assert (world.claim(worker), world.stale()) == ([], 0)
    assert world.violations(quiesced=True) == []


def test_what_may_run_once_at_most_and_was_lost_has_failed_and_its_neighbours_have_not(
    world: World,
) -> None:
    worker = world.worker()
    once, other = world.start(worker, delivery=Delivery.AT_MOST_ONCE), world.start(worker)
    assert world.settle(worker, end(once, Ending.LOST), end(other)) == [ACCEPTED, ACCEPTED]
    assert (world.state(once), world.job(once).reason) == (State.FAILED, "lost")
    assert world.state(other) is State.SUCCEEDED


def test_only_who_was_granted_a_turn_can_call_it_lost(world: World) -> None:
    worker, thief = world.worker(), world.worker()
    turn = world.start(worker, max_crashes=1)
    assert world.settle(thief, end(turn, Ending.LOST)) == [STALE]
    assert world.state(turn) is State.RUNNING


@pytest.mark.parametrize("ending", [Ending.RETRIED, Ending.FAILED])
def test_who_never_heard_of_his_commit_learns_that_it_was_done(world: World, ending) -> None:
    worker = world.worker()
    turn = world.start(worker)
    assert world.settle(worker, end(turn)) == [ACCEPTED]
    unsure = end(turn, ending, reason=UNCOMMITTED, error_type="Lost", error="at the commit")
    assert world.settle(worker, unsure) == [ALREADY]
    assert world.settle(world.worker(), unsure) == [STALE]
    assert (world.state(turn), world.stale()) == (State.SUCCEEDED, 1)


def test_who_never_heard_of_his_commit_tries_again_where_it_was_not_done(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    unsure = end(turn, Ending.RETRIED, reason=UNCOMMITTED, delay_s=1.0)
    assert world.settle(worker, unsure) == [ACCEPTED]
    assert world.settle(worker, end(turn)) == [STALE]
    assert (world.state(turn), world.job(turn).turn) == (State.SCHEDULED, 2)
