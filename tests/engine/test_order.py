"""Which job starts next: arrival, priority with aging, keys, dependencies, due instants."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conftest import MS, Table

from timeball.core.retry import Retry
from timeball.core.states import State
from timeball.errors import UsageError

Make = Callable[..., Table]


def test_jobs_of_one_class_start_in_the_order_in_which_they_came(table: Make) -> None:
    bench = table()
    jobs = [bench.submit() for _ in range(100)]
    assert bench.started() == [job.id for job in jobs]


def test_a_higher_class_overtakes_those_that_came_shortly_before(table: Make) -> None:
    bench = table(aging_s=1.0)
    low = bench.submit(priority=4)
    bench.pass_ms(999)
    high = bench.submit(priority=5)
    assert bench.started() == [high.id, low.id]


def test_a_higher_class_does_not_overtake_what_has_aged(table: Make) -> None:
    bench = table(aging_s=1.0)
    low = bench.submit(priority=4)
    bench.pass_ms(1001)
    high = bench.submit(priority=5)
    assert bench.started() == [low.id, high.id]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000)), max_size=30),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_priority_is_the_order_of_a_key_that_never_changes(
    jobs: list[tuple[int, int]], aging_s: float
) -> None:
    bench = Table(aging_s=aging_s)
    keys = {}
    for priority, ms in jobs:
        bench.pass_ms(ms)
        job = bench.submit(priority=priority)
        keys[job.id] = (job.ready_ns - priority * aging_s * 1e9, -priority)
    started = bench.started()
    assert [keys[job][0] for job in started] == sorted(key for key, _ in keys.values())
    bench.sound()


def test_keys_take_turns_where_shares_are_fair(table: Make) -> None:
    bench = table(fair_share=True)
    for name, key in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("b2", "b")]:
        bench.submit(id=name, key=key)
    assert bench.started() == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_newcomer_waits_for_one_of_each_key_at_most(table: Make) -> None:
    bench = table(fair_share=True)
    for n in range(50):
        bench.submit(id=f"a{n}", key="a")
    bench.begin()
    bench.submit(id="b", key="b")
    assert [bench.end().work.id for _ in range(2)] == ["a1", "b"]  # type: ignore[union-attr]
    bench.started()
    while bench.running:
        bench.end()


def test_a_key_never_runs_more_than_its_limit_and_blocks_nobody_else(table: Make) -> None:
    bench = table(workers=4, key_limits={"a": 2})
    for name, key in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("a4", "a")]:
        bench.submit(id=name, key=key)
    begun = [bench.begin() for _ in range(4)]
    assert [each and each.work.id for each in begun] == ["a1", "a2", "b1", None]
    assert bench.end(begun[2]) is None  # b1 has ended, which makes no room for a
    assert bench.end(begun[0]).work.id == "a3"  # type: ignore[union-attr]
    assert bench.end(begun[1]).work.id == "a4"  # type: ignore[union-attr]
    while bench.running:
        bench.end()


def test_a_cancelled_job_gives_its_place_at_the_limit_to_the_next(table: Make) -> None:
    bench = table(workers=2, key_limits={"a": 1})
    jobs = [bench.submit(key="a") for _ in range(4)]
    bench.begin()
    assert bench.begin() is None  # the others are set aside
    jobs[1].cancel()
    following = bench.end()
    assert following is not None
    assert following.work is jobs[2]
    jobs[3].cancel()
    bench.end()


def test_nothing_is_left_behind_at_a_limit_whatever_is_cancelled(table: Make) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        bench = table(workers=3, key_limits={"a": 1, "b": 2})
        jobs = [bench.submit(key=chance.choice("abc")) for _ in range(20)]
        while bench.running or any(not job.done for job in jobs):
            while bench.begin() is not None:
                pass
            if chance.random() < 0.5:
                chance.choice(jobs).cancel()
            if bench.running:
                bench.end(chance.choice(bench.running))
        bench.sound()


def test_a_job_does_not_start_before_its_instant(table: Make) -> None:
    bench = table()
    late = bench.submit(delay_s=1.0)
    soon = bench.submit(delay_s=0.5)
    assert bench.begin() is None
    assert late.state is State.SCHEDULED
    assert bench.engine.agenda.wake_ns == bench.now_ns + 500 * MS
    bench.pass_ms(499.999999)
    assert bench.begin() is None
    bench.pass_ms(0.000001)
    assert bench.started() == [soon.id]
    bench.pass_ms(500)
    assert bench.started() == [late.id]


def test_an_instant_of_the_wall_clock_is_kept_by_the_monotonic_one(table: Make) -> None:
    bench = table()
    job = bench.submit(run_at=datetime.now(UTC) + timedelta(seconds=60))
    assert job.state is State.SCHEDULED
    assert 59 <= (job.more.due_ns - bench.now_ns) / 1e9 <= 60  # type: ignore[union-attr]
    assert bench.submit(run_at=datetime.now(UTC) - timedelta(seconds=1)).state is State.PENDING
    bench.started()
    job.cancel()


def test_a_retry_joins_the_back_and_its_slot_is_free_meanwhile(table: Make) -> None:
    bench = table(retry=Retry(3, base_s=0.1, jitter="none"))
    tries: list[str] = []

    def flaky() -> None:
        tries.append("flaky")
        if len([t for t in tries if t == "flaky"]) < 3:
            raise ValueError

    job = bench.submit(flaky)
    others = [bench.submit() for _ in range(2)]
    assert bench.started() == [job.id, *(other.id for other in others)]
    assert job.state is State.SCHEDULED
    fresh = bench.submit()
    bench.pass_ms(100)
    assert bench.started() == [fresh.id, job.id]
    bench.pass_ms(199)
    assert bench.begin() is None
    bench.pass_ms(1)
    assert bench.started() == [job.id]
    assert (job.state, job.retry_count) == (State.SUCCEEDED, 2)


@pytest.mark.parametrize(("fails", "allowed"), [(0, 0), (1, 1), (3, 3), (1, 0), (4, 3)])
def test_one_that_fails_k_times_succeeds_if_k_retries_are_allowed(
    table: Make, fails: int, allowed: int
) -> None:
    bench, tries = table(), []

    def flaky() -> str:
        tries.append(0)
        if len(tries) <= fails:
            raise OSError
        return "done"

    job = bench.submit(flaky, retry=Retry(allowed, base_s=0.0))
    bench.started()
    if fails <= allowed:
        assert (job.state, job.retry_count) == (State.SUCCEEDED, fails)
    else:
        assert (job.state, job.reason) == (State.FAILED, "exhausted")
    assert len(tries) == min(fails, allowed) + 1


# Dependencies


def test_a_child_starts_after_all_of_its_parents(table: Make) -> None:
    bench = table()
    a = bench.submit(id="a")
    b = bench.submit(id="b", delay_s=1)
    child = bench.submit(id="child", after=[a, "b"])
    assert bench.started() == ["a"]
    assert child.state is State.WAITING
    bench.pass_ms(1000)
    assert bench.started() == ["b", "child"]
    assert b.done


def test_a_child_of_parents_that_have_ended_starts_at_once(table: Make) -> None:
    bench = table()
    parent = bench.submit(id="a")
    bench.started()
    bench.submit(id="b", after=[parent])
    assert bench.started() == ["b"]


def fail() -> None:
    raise PermissionError


@pytest.mark.parametrize("ended_before", [False, True])
@pytest.mark.parametrize(
    ("rule", "state"), [("all_success", State.SKIPPED), ("all_done", State.SUCCEEDED)]
)
def test_a_failed_parent_rules_out_its_child_unless_the_rule_says_otherwise(
    table: Make, rule: str, state: State, *, ended_before: bool
) -> None:
    bench = table()
    parent = bench.submit(fail, id="parent")
    if ended_before:
        bench.started()
    child = bench.submit(after=[parent], rule=rule)
    bench.started()
    assert child.state is state


@pytest.mark.parametrize("ended_before", [False, True])
@pytest.mark.parametrize(
    ("rules", "first", "state"),
    [
        ("one_success all_success", fail, State.SKIPPED),
        ("one_success one_success", fail, State.SUCCEEDED),
        ("one_failed one_success", fail, State.SUCCEEDED),
        ("one_failed one_failed", None, State.SKIPPED),
        ("none_failed all_done", None, State.SUCCEEDED),
        ("none_failed always", fail, State.SKIPPED),
        ("always all_done", fail, State.SUCCEEDED),
    ],
)
def test_each_edge_has_its_own_rule(
    table: Make, rules: str, first: Any, state: State, *, ended_before: bool
) -> None:
    bench = table()
    parents = [bench.submit(first) if first else bench.submit(), bench.submit()]
    if ended_before:
        bench.started()
    child = bench.submit(after=list(zip(parents, rules.split(), strict=True)))
    bench.started()
    assert child.state is state


@pytest.mark.parametrize(
    ("ruled_out", "state"),
    [("skip", State.SKIPPED), ("fail", State.FAILED), ("run", State.SUCCEEDED)],
)
def test_who_is_ruled_out_ends_as_he_was_told_to(table: Make, ruled_out: str, state: State) -> None:
    bench = table()
    bad, slow = bench.submit(fail), bench.submit(id="slow", delay_s=1)
    child = bench.submit(id="child", after=[bad, slow], ruled_out=ruled_out)
    other = bench.submit(after=[child], rule="one_failed")
    bench.started()
    assert child.state is (State.WAITING if ruled_out == "run" else state)
    bench.pass_ms(1000)
    bench.started()
    assert child.state is state
    assert other.state is (State.SUCCEEDED if ruled_out == "fail" else State.SKIPPED)


def test_a_parent_with_two_rules_is_refused_and_one_named_twice_is_one(table: Make) -> None:
    bench = table()
    parent = bench.submit()
    with pytest.raises(UsageError, match="two rules"):
        bench.submit(after=[parent, (parent, "all_done")])
    child = bench.submit(after=[parent, parent])
    bench.started()
    assert child.state is State.SUCCEEDED


def test_skipping_goes_down_a_long_chain(table: Make) -> None:
    bench = table()
    jobs = [bench.submit(fail)]
    for _ in range(3000):
        jobs.append(bench.submit(after=[jobs[-1]]))
    last = bench.submit(after=[jobs[-1]], rule="all_done")
    bench.started()
    assert {job.state for job in jobs[1:]} == {State.SKIPPED}
    assert last.state is State.SUCCEEDED


def test_cancelling_a_parent_decides_its_children(table: Make) -> None:
    bench = table()
    parent = bench.submit()
    child = bench.submit(after=[parent])
    parent.cancel()
    assert child.state is State.SKIPPED
    assert child.reason == f"job {parent.id} cancelled"


def test_a_child_with_an_instant_waits_for_both(table: Make) -> None:
    bench = table()
    parent = bench.submit(id="parent")
    child = bench.submit(id="child", after=[parent], delay_s=1)
    bench.started()
    assert child.state is State.SCHEDULED
    bench.pass_ms(1000)
    assert bench.started() == ["child"]


def test_a_job_cannot_wait_for_itself_nor_for_what_is_not_there(table: Make) -> None:
    bench = table()
    with pytest.raises(UsageError, match="cycle"):
        bench.submit(id="a", after=["a"])
    with pytest.raises(UsageError, match="submit parents first"):
        bench.submit(after=["b"])
    with pytest.raises(UsageError, match="another scheduler"):
        bench.submit(after=[table().submit()])
    with pytest.raises(UsageError, match="write a list"):
        bench.submit(after="b")
