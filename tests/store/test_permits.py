"""Limits on starts over all workers: who gets permits, who waits, and what the record says."""

from __future__ import annotations

from random import Random
from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end, uuids

from timeball.core.limits import Limit, Scope
from timeball.core.permits import SETTLING_S, proofs, rate_violations
from timeball.core.rate import Rate
from timeball.core.records import Turn
from timeball.core.states import Ending, State
from timeball.core.upkeep import Keep
from timeball.store.limiting import RATE_SPENT, Ask, Spent

SHAPES = [Rate(5), Rate(5, burst=3), Rate(40, spread=True), Rate(3, per_s=10), Rate(2, per_s=0.5)]


def refused(turn: Turn):
    return end(turn, Ending.RELEASED, began=False, reason=RATE_SPENT)


def permits(world: World, *names: str, want: int = 1, waited: bool = True) -> int:
    (granted,) = world.store.permits([Ask(names, want, waited)], []).granted
    return granted.permits


@pytest.mark.parametrize("rate", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_every_store_grants_the_same(worlds: list[World], rate: Rate, seed: int) -> None:
    random = Random(seed)
    changed = random.choice(SHAPES)
    for world in worlds:
        world.store.limit_starts(Scope.QUEUE, "q", rate)
        world.store.limit_starts(Scope.KEY, "t-*", Rate(2))
        world.store.limit_starts(Scope.KEY, "t-vip", Rate(7, spread=True))
    open_: list[tuple[str, int, int]] = []
    for step in range(40):
        if step == 25:
            for world in worlds:
                world.store.limit_starts(Scope.QUEUE, "q", changed)
        by = random.choice([0.0, 0.001, 0.013, 0.4, 1.7])
        random.shuffle(open_)
        spent = [
            Spent(name, number, random.randint(0, n), random.randint(0, 1_500_000))
            for name, number, n in open_[:2]
        ]
        names = ["queue:q", random.choice(["key:t-1", "key:t-2", "key:t-vip", "key:other"])]
        asks = [
            Ask(random.sample(names, random.randint(1, 2)), random.randint(1, 6)) for _ in range(2)
        ]
        answers = []
        for world in worlds:
            world.travel(by)
            answers.append(world.store.permits(asks, spent))
        assert answers[0] == answers[1]
        del open_[:2]
        for ask, (parts,) in zip(asks, answers[0].granted, strict=True):
            for n, numbers, _ in parts:
                open_ += [(name, no, n) for name, no in zip(ask.names, numbers, strict=True) if no]


def test_all_limits_grant_or_none_does(world: World) -> None:
    world.store.limit_starts(Scope.QUEUE, "q", Rate(10))
    world.store.limit_starts(Scope.KIND, "a", Rate(1))
    assert permits(world, "kind:a", "queue:q", want=5) == 1
    for _ in range(20):
        assert permits(world, "kind:a", "queue:q", want=5) == 0
    assert permits(world, "queue:q", want=20) == 9  # nothing was lost by asking in vain


@pytest.mark.parametrize("low", [Rate(5), Rate(5, spread=True), Rate(5, burst=3)], ids=str)
@pytest.mark.parametrize("high", [Rate(500, spread=True), Rate(500, burst=30)], ids=str)
def test_a_lowered_rate_goes_on(world: World, high: Rate, low: Rate) -> None:
    world.store.limit_starts(Scope.QUEUE, "q", high)
    assert permits(world, "queue:q", want=20) == 20
    world.travel(2)
    world.store.limit_starts(Scope.QUEUE, "q", low)
    world.travel(8)
    assert permits(world, "queue:q", want=9) > 0


def test_permits_do_not_pile_up(world: World) -> None:
    world.store.limit_starts(Scope.QUEUE, "default", Rate(5))
    worker = world.worker()
    for _ in range(30):
        world.submit()
    for _ in range(10):  # jobs wait, workers look, and nobody asks
        world.travel(1)
        world.store.promote(100)
        assert world.claim(worker) == []
    assert permits(world, "queue:default", want=100) == 5


def test_what_is_told_of_permits_after_years_is_not_taken_for_later_ones(world: World) -> None:
    world.store.limit_starts(Scope.KEY, "k", Rate(1))
    ask = Ask(["key:k"], 1)
    (early,) = world.store.permits([ask], []).granted
    world.travel(1_000 * 86_400)
    after: tuple[int, ...] | None = ()
    while after is not None:
        after = world.store.trim(Keep(), after=after).after
    (late,) = world.store.permits([ask], []).granted
    assert (early.permits, late.permits) == (1, 1)
    told = [Spent("key:k", early.parts[0].numbers[0], 0, 0)]
    assert world.store.permits([ask], told).granted[0].permits == 0


def test_a_queue_whose_starts_are_limited_is_claimed_by_permits_alone(world: World) -> None:
    world.store.limit_starts(Scope.QUEUE, "mail", Rate(5))
    worker = world.worker(queues=("default", "mail"))
    mails = [world.submit(queue="mail", priority=p) for p in (7, 7, 6, 5)]
    other = world.submit()
    assert uuids(world.claim(worker)) == [other]
    world.settle(worker, *[])
    got: list = []
    while turns := world.store.claim(
        worker, limit=9, request=uuid4(), floors={}, permits={"mail": 3 - len(got)}
    ):
        got += turns
        if len(got) == 3:
            break
    assert uuids(got) == mails[:3]
    assert [list(turn.rates) for turn in got] == [["queue:mail"]] * 3
    assert world.store.promote(1).rated == {"mail"}


def test_jobs_of_a_limited_kind_wait_in_line_and_come_in_order(world: World) -> None:
    world.store.limit_starts(Scope.KIND, "a", Rate(2))
    worker = world.worker("a", "b")
    jobs = [world.submit() for _ in range(5)]
    other = world.submit("b")
    assert uuids(world.claim(worker)) == [other]
    job = world.job(jobs[0])
    assert (job.state, job.reason) == (State.PENDING, RATE_SPENT)
    promoted = world.store.promote(100)
    assert (promoted.moved, promoted.lined) == (2, True)
    assert world.store.promote(100).moved == 0  # these have not asked yet
    turns = world.claim(worker)
    assert uuids(turns) == jobs[:2]
    assert [(list(turn.rates), turn.waited) for turn in turns] == [(["kind:a"], True)] * 2
    assert permits(world, "kind:a", want=2) == 2
    world.settle(worker, *map(end, turns))
    promoted = world.store.promote(100)
    assert promoted.moved == 0
    assert promoted.next_due_s == pytest.approx(1.92, abs=0.01)
    world.travel(2.1)
    world.submit()
    assert world.store.promote(100).moved == 2
    again = world.claim(worker)
    assert uuids(again) == jobs[2:4]
    world.settle(worker, *map(refused, again))  # they keep their place
    world.travel(5)
    world.store.promote(100)
    assert uuids(world.claim(worker)) == jobs[2:4]


def test_who_is_on_his_way_and_never_asks_is_waited_for_longer_and_longer(world: World) -> None:
    world.store.limit_starts(Scope.KIND, "a", Rate(2))
    world.worker()
    for _ in range(9):
        world.submit()
    moved = []
    for _ in range(8):
        moved.append(world.store.promote(100).moved)
        world.travel(1.001)
    assert moved == [2, 2, 0, 2, 0, 0, 0, 2]


def test_a_kind_and_a_busy_key_do_not_wait_for_each_other(world: World) -> None:
    """Who leaves the line of a kind and has to wait for his key takes nobody's place."""
    world.store.limit_starts(Scope.KIND, "a", Rate(2))
    worker = world.worker()
    keyed = [world.submit(key="k") for _ in range(3)]
    (first,) = world.claim(worker)
    world.settle(worker, refused(first))  # into the line of the kind: the next has its slot
    (second,) = world.claim(worker)
    others = [world.submit() for _ in range(4)]

    def started(rounds: int) -> list[UUID]:
        found = []
        for _ in range(rounds):
            world.store.promote(100)
            turns = world.claim(worker)
            n = permits(world, "kind:a", want=len(turns)) if turns else 0
            world.settle(worker, *map(end, turns[:n]), *map(refused, turns[n:]))
            found += uuids(turns[:n])
            world.travel(1.2)
        return found

    assert (first.uuid, second.uuid) == (keyed[0], keyed[1])
    assert started(8) == others
    world.settle(worker, end(second))  # its slot is free, and that wakes who waits for it
    assert started(4) == [keyed[0], keyed[2]]


@pytest.mark.parametrize("why", ["paused", "no worker"])
def test_a_line_of_a_queue_that_stands_still_delays_no_other(world: World, why: str) -> None:
    world.store.limit_starts(Scope.KIND, "a", Rate(1))
    worker, other = world.worker(queues=("q",)), world.worker()
    held = [world.submit(queue="q") for _ in range(9)]
    if why == "paused":
        world.store.pause_queue("q", "me")
    else:
        world.store.retire(worker)
    world.travel(5)
    assert world.store.promote(100).moved == 0
    world.submit()
    assert world.store.promote(100).moved == 1
    (turn,) = world.claim(other)
    assert permits(world, "kind:a") == 1
    world.settle(other, end(turn))
    world.store.resume_queue("q")
    worker = world.worker(queues=("q",))
    world.travel(5)
    world.store.promote(100)
    assert uuids(world.claim(worker)) == held[:1]


def test_a_lifted_limit_lets_all_go(world: World) -> None:
    world.store.limit_starts(Scope.KIND, "a", Rate(1))
    worker = world.worker()
    jobs = [world.submit() for _ in range(3)]
    world.store.limit_starts(Scope.KIND, "a", None)
    world.store.promote(100)
    turns = world.claim(worker)
    assert uuids(turns) == jobs
    assert permits(world, "kind:a", want=9) == 9
    world.settle(worker, *map(refused, turns))  # asked before, refused after it was lifted
    assert uuids(world.claim(worker)) == jobs


def test_a_key_without_permits_stays_out_of_the_lane_and_delays_nobody(world: World) -> None:
    """Tenant A has 10,000 jobs in real life; not one more than has a permit is ever claimed."""
    world.store.limit_starts(Scope.KEY, "tenant-*", Rate(1))
    worker = world.worker()
    a = [world.submit(key="tenant-a") for _ in range(50)]
    b = [world.submit(key="tenant-b") for _ in range(3)]
    turns = world.claim(worker)
    assert uuids(turns) == [a[0], b[0]]
    assert [list(turn.rates) for turn in turns] == [["key:tenant-a"], ["key:tenant-b"]]
    assert permits(world, "key:tenant-a") == permits(world, "key:tenant-b") == 1
    world.settle(worker, *map(end, turns))
    assert world.claim(worker) == []
    assert world.store.promote(100).next_due_s == pytest.approx(1.92, abs=0.01)
    world.travel(2.1)
    world.store.promote(100)
    assert uuids(world.claim(worker)) == [a[1], b[1]]


def test_a_backlog_of_before_a_limit_is_claimed_once_and_then_by_permits_alone(
    world: World,
) -> None:
    """Tenant A has 10,000 jobs in real life, in one lane with the ten of B behind them."""
    worker = world.worker("a", "b")
    backlog, seconds = 150, 5
    for _ in range(backlog):
        world.submit()
    b = [world.submit("b") for _ in range(10)]
    world.store.limit_starts(Scope.KIND, "a", Rate(1))
    claims = started = 0
    for second in range(seconds):
        turns = world.claim(worker)
        a = [turn for turn in turns if turn.kind == "a"]
        # B's begin with the first look, whatever A's have to wait for.
        assert uuids([turn for turn in turns if turn.kind == "b"]) == ([] if second else b)
        n = permits(world, "kind:a", want=len(a), waited=second > 0)
        world.settle(worker, *map(end, turns[backlog:]), *map(end, a[:n]), *map(refused, a[n:]))
        claims, started = claims + len(a), started + n
        world.travel(2.1)
        world.store.promote(100)
    assert started == seconds
    assert claims == backlog + seconds - 1


@pytest.mark.parametrize("rate", [Rate(7), Rate(40, spread=True), Rate(5, burst=2)], ids=str)
def test_nobody_of_a_limited_kind_is_claimed_in_vain(world: World, rate: Rate) -> None:
    """However they come to their lanes: new, due, retried, or given back."""
    world.store.limit_starts(Scope.KIND, "a", rate)
    worker = world.worker()
    for n in range(40):
        world.submit(delay_s=None if n % 2 else 3.0)
    claims = started = 0
    random = Random(1)
    for _ in range(200):
        world.travel(random.choice([0.01, 0.05, 0.3]))
        world.store.promote(100)
        turns = world.claim(worker)
        if not turns:
            continue
        (granted,) = world.store.permits([Ask(("kind:a",), len(turns))], []).granted
        ways = [
            end(turn, Ending.RETRIED, delay_s=0.1) if random.random() < 0.2 else end(turn)
            for turn in turns[: granted.permits]
        ]
        world.settle(worker, *ways, *map(refused, turns[granted.permits :]))
        claims, started = claims + len(turns), started + granted.permits
    assert claims == started > 20


def test_a_key_that_is_refused_keeps_its_place(world: World) -> None:
    world.store.limit_starts(Scope.KEY, "k", Rate(1))
    worker = world.worker()
    jobs = [world.submit(key="k") for _ in range(3)]
    (turn,) = world.claim(worker)
    world.travel(1)
    assert permits(world, "key:k") == 1  # somebody else's
    world.settle(worker, refused(turn))
    world.travel(5)
    world.store.promote(10)
    assert uuids(world.claim(worker)) == jobs[:1]


def test_limits_are_listed_with_their_rates(world: World) -> None:
    world.store.limit_starts(Scope.KIND, "a", Rate(5, burst=2))
    world.store.limit(Scope.QUEUE, "q", 3)
    world.store.limit_starts(Scope.QUEUE, "q", Rate(1, per_s=60, spread=True))
    both = Limit(Scope.QUEUE, "q", 3, rate=Rate(1, per_s=60, spread=True))
    assert world.store.limits() == [Limit(Scope.KIND, "a", None, rate=Rate(5, burst=2)), both]
    world.store.limit(Scope.QUEUE, "q", None)
    assert world.store.limits()[1] == both._replace(at_once=None)
    world.store.limit_starts(Scope.QUEUE, "q", None)
    world.store.limit_starts(Scope.KIND, "a", None)
    assert world.store.limits() == []


def test_the_record_proves_what_started_since_the_limit_holds(world: World) -> None:
    worker = world.worker()
    before = [world.start(worker, key=f"k-{n}") for n in range(4)]
    world.settle(worker, *map(end, before))
    world.store.limit_starts(Scope.KIND, "a", Rate(2))
    world.travel(SETTLING_S)
    turns = [world.start(worker, key=f"k-{n}") for n in range(2)]
    world.settle(worker, *map(end, turns))
    (proof,) = proofs(world.store.starts())
    assert (proof.name, proof.rate, proof.starts, proof.most) == ("kind:a", Rate(2), 2, 2)
    assert list(rate_violations(world.store.starts())) == []
    world.settle(worker, end(world.start(worker, key="k")))
    (violation,) = rate_violations(world.store.starts())
    assert violation.invariant == "I8"


def test_a_start_of_a_worker_that_died_is_on_record_where_it_is_known(world: World) -> None:
    world.store.limit_starts(Scope.QUEUE, "default", Rate(2))
    world.travel(SETTLING_S)
    worker = world.worker()
    for _ in range(3):
        world.submit()
    turns = world.store.claim(worker, limit=3, request=uuid4(), floors={}, permits={"default": 3})
    began_at = turns[0].granted_at
    seen = {turn[2:4]: began_at + 0.25 * n for n, turn in enumerate(turns)}
    assert world.store.expire(worker, beat=None, begun=seen) == (0, 3, 0, 0)
    (proof,) = proofs(world.store.starts())
    assert (proof.starts, proof.most) == (3, 3)
    (violation,) = rate_violations(world.store.starts())
    assert violation.invariant == "I8"


def test_rates_are_told_with_since_when_they_hold(world: World) -> None:
    world.store.limit(Scope.QUEUE, "q", 3)
    world.store.limit_starts(Scope.KIND, "a", Rate(5, burst=2))
    (found,) = world.store.rates()
    assert found[:3] == (Scope.KIND, "a", Rate(5, burst=2))
    assert found.since >= world.store.now().timestamp()
