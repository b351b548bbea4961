"""A worker is given up when it was seen silent for its whole lease, and never before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.records import Expired, JobSpec, Pulse
from timeball.core.states import State
from timeball.errors import SchemaMismatch, StoreUnavailable
from timeball.store.memory import MemoryStore
from timeball.worker.sweeper import Deaths, Sweeper

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
LEASE_S = 8.0
STEP_S = 2.0
NOTHING = Expired(0, 0, 0, 0)


class Stopwatch:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Frail(MemoryStore):
    """A store that can be away, be slow, or have a worker beat at the last moment."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.away = 0
        self.before_pulses: Callable[[], object] = lambda: None
        self.after_pulses: Callable[[], object] = lambda: None

    def pulses(self) -> list[Pulse]:
        self._fail()
        self.before_pulses()
        found = super().pulses()
        self.after_pulses()
        return found

    def expire(
        self, worker: int, *, beat: int | None, begun: Collection[tuple[int, int]] | None
    ) -> Expired | None:
        self._fail()
        return super().expire(worker, beat=beat, begun=begun)

    def _fail(self) -> None:
        if self.away:
            self.away -= 1
            raise StoreUnavailable


@pytest.fixture
def watch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def store() -> Frail:
    return Frail(lambda: NOON)


@pytest.fixture
def sweeper(store: Frail, watch: Stopwatch) -> Sweeper:
    return Sweeper(store, monotonic=watch)


def register(store: MemoryStore, lease_s: float = LEASE_S) -> int:
    return store.register("a", kinds=["tide"], queues=["default"], lease_s=lease_s)


def sweeps(sweeper: Sweeper, watch: Stopwatch, seconds: float) -> set[int]:
    """Sweep every two seconds for so long; who was given up."""
    gone: set[int] = set()
    until = watch.at + seconds
    while watch.at < until:
        watch.at = min(until, watch.at + STEP_S)
        gone |= sweeper.sweep().keys()
    return gone


# Silence


def test_a_worker_silent_for_its_whole_lease_is_given_up(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    worker = register(store)
    sweeper.sweep()
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()
    watch.at += 0.001
    assert sweeper.sweep() == {worker: NOTHING}
    assert store.pulses() == []


def test_a_worker_seen_once_is_never_given_up(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    register(store)
    watch.at += 100 * LEASE_S
    assert sweeper.sweep() == {}


def test_a_worker_that_beats_lives(store: Frail, sweeper: Sweeper, watch: Stopwatch) -> None:
    worker = register(store)
    for _ in range(50):
        assert sweeps(sweeper, watch, LEASE_S - STEP_S) == set()
        store.beat([worker])


def test_each_worker_has_the_lease_that_it_asked_for(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    short, long = register(store, LEASE_S), register(store, 2 * LEASE_S)
    sweeper.sweep()
    assert sweeps(sweeper, watch, LEASE_S) == {short}
    assert sweeps(sweeper, watch, LEASE_S - STEP_S) == set()
    assert sweeps(sweeper, watch, STEP_S) == {long}


def test_a_beat_at_the_last_moment_saves_its_worker(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    worker = register(store)
    sweeper.sweep()
    sweeps(sweeper, watch, LEASE_S - STEP_S)
    watch.at += STEP_S
    store.after_pulses = lambda: store.beat([worker])  # after the reading, before the expiry
    assert sweeper.sweep() == {}
    store.after_pulses = lambda: None
    assert len(store.pulses()) == 1
    # And from then on it has a whole lease again.
    sweeper.sweep()
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()


def test_a_slow_reading_counts_for_the_worker_and_not_against_it(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    register(store)

    def dawdle() -> None:
        watch.at += 1.0

    store.after_pulses = dawdle
    sweeper.sweep()  # what was read may be as new as the end of the call
    store.after_pulses = lambda: None
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()
    store.before_pulses = dawdle  # and what is read now may be as old as its beginning
    assert sweeper.sweep() == {}


# Two sweepers


def test_two_sweepers_give_a_worker_up_once(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    worker = register(store)
    other = Sweeper(store, monotonic=watch)
    sweeper.sweep()
    other.sweep()
    for _ in range(int(LEASE_S / STEP_S) - 1):
        watch.at += STEP_S
        assert sweeper.sweep() == other.sweep() == {}
    answers: list[dict[int, Expired]] = []

    def cross() -> None:
        store.after_pulses = lambda: None
        answers.append(sweeper.sweep())

    watch.at += STEP_S
    store.after_pulses = cross  # both have read before either writes
    answers.append(other.sweep())
    assert answers == [{worker: NOTHING}, {}]


def test_the_turns_of_a_silent_worker_run_elsewhere(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    worker = register(store)
    job = JobSpec(uuid=uuid4(), kind="tide")
    store.submit([job])
    store.claim(worker, limit=1, request=uuid4(), floors={})
    sweeper.sweep()
    sweeps(sweeper, watch, LEASE_S)
    assert (store.get(job.uuid).state, store.get(job.uuid).crashes) == (State.PENDING, 1)


# Outages


@pytest.mark.parametrize("failed", [1, 2])
def test_after_an_outage_every_worker_has_a_whole_lease_again(
    store: Frail, sweeper: Sweeper, watch: Stopwatch, failed: int
) -> None:
    worker = register(store)
    sweeper.sweep()
    sweeps(sweeper, watch, LEASE_S - STEP_S)
    store.away = failed
    for _ in range(failed):
        watch.at += STEP_S
        with pytest.raises(StoreUnavailable):
            sweeper.sweep()
    watch.at += STEP_S
    assert sweeper.sweep() == {}
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()
    watch.at += 0.001
    assert set(sweeper.sweep()) == {worker}


def test_an_expiry_that_failed_is_not_sent_again_without_a_whole_lease(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    register(store)
    sweeper.sweep()
    sweeps(sweeper, watch, LEASE_S - STEP_S)
    watch.at += STEP_S

    def leave() -> None:
        store.away = 1

    store.after_pulses = leave
    with pytest.raises(StoreUnavailable):
        sweeper.sweep()
    store.after_pulses = lambda: None
    assert sweeper.sweep() == {}
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()


def test_a_pause_in_which_nobody_looked_is_an_outage(
    store: Frail, sweeper: Sweeper, watch: Stopwatch
) -> None:
    """The sweeper was frozen, or a call hung: what held it up may have held up the beats."""
    register(store)
    sweeper.sweep()
    sweeps(sweeper, watch, LEASE_S - STEP_S)
    watch.at += LEASE_S / 2 + 0.001
    assert sweeper.sweep() == {}
    assert sweeps(sweeper, watch, LEASE_S - 0.001) == set()


def test_a_pause_of_half_a_lease_is_none(store: Frail, sweeper: Sweeper, watch: Stopwatch) -> None:
    worker = register(store)
    sweeper.sweep()
    watch.at += LEASE_S / 2
    assert sweeper.sweep() == {}
    watch.at += LEASE_S / 2
    assert set(sweeper.sweep()) == {worker}


def test_the_stores_clock_gives_nobody_up(watch: Stopwatch) -> None:
    at = [NOON]
    store = MemoryStore(lambda: at[0])
    register(store)
    sweeper = Sweeper(store, monotonic=watch)
    for step in (timedelta(hours=1), timedelta(days=-3650), timedelta(days=9000)):
        sweeper.sweep()
        at[0] += step
        watch.at += 1.0
        assert sweeper.sweep() == {}


# Laws

actions = st.lists(
    st.tuples(st.sampled_from(["read", "fail", "beat"]), st.floats(0.1, LEASE_S)), max_size=40
)


@pytest.mark.slow
@given(actions)
def test_nobody_is_given_up_who_beat_or_was_out_of_sight_within_a_lease(
    steps: list[tuple[str, float]],
) -> None:
    watch = Stopwatch()
    store = Frail(lambda: NOON)
    sweeper = Sweeper(store, monotonic=watch)
    worker = register(store)
    safe_since: float | None = None  # the first of the reads that tell of an unbroken silence
    read_at, last_beat = 0.0, -1
    beats = 0
    for action, pause_s in steps:
        watch.at += pause_s
        if action == "beat":
            store.beat([worker])
            beats += 1
            continue
        store.away = int(action == "fail")
        try:
            gone = sweeper.sweep()
        except StoreUnavailable:
            safe_since = None
            continue
        if beats != last_beat or watch.at - read_at > LEASE_S / 2:
            safe_since = None
        dead = safe_since is not None and watch.at - safe_since >= LEASE_S
        assert set(gone) == ({worker} if dead else set())
        if dead:
            return
        safe_since = watch.at if safe_since is None else safe_since
        read_at, last_beat = watch.at, beats


# The loop


def test_the_loop_goes_on_when_the_store_comes_back(store: Frail) -> None:
    register(store, lease_s=0.06)
    stop = Event()
    store.away = 2
    store.after_pulses = stop.set
    Sweeper(store).run(stop)
    assert store.away == 0


# Deaths that are certain


def claimed(store: MemoryStore) -> tuple[int, list[UUID], list[tuple[int, int]]]:
    """A worker with two turns: its id, the jobs, their turns."""
    worker = register(store)
    jobs = [JobSpec(uuid=uuid4(), kind="tide") for _ in range(2)]
    store.submit(jobs)
    turns = store.claim(worker, limit=2, request=uuid4(), floors={})
    return worker, [job.uuid for job in jobs], [(turn.job_id, turn.turn) for turn in turns]


@pytest.fixture
def deaths(store: Frail) -> Iterator[Deaths]:
    made = Deaths(store, retry_s=0.0)
    yield made
    made.stop()


def test_a_certain_death_costs_a_crash_only_where_the_attempt_began(
    store: Frail, deaths: Deaths
) -> None:
    worker, jobs, turns = claimed(store)
    deaths.report(worker, {turns[0]})
    assert deaths.wait(5.0)
    assert [store.get(uuid).crashes for uuid in jobs] == [1, 0]
    assert store.counts() == {State.PENDING: 2}


def test_a_death_that_the_schema_fits_no_more_is_left_to_the_lease(
    store: Frail, deaths: Deaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, _, turns = claimed(store)

    def other_schema(*_args: object, **_options: object) -> None:
        raise SchemaMismatch("no such function")

    monkeypatch.setattr(store, "expire", other_schema)
    deaths.report(worker, turns)
    assert not deaths.wait(5.0)
    assert store.counts() == {State.RUNNING: 2}


def test_a_certain_death_is_written_as_soon_as_the_store_is_back(
    store: Frail, deaths: Deaths
) -> None:
    worker, _, _ = claimed(store)
    store.away = 3
    deaths.report(worker, set())
    assert deaths.wait(5.0)
    assert store.counts() == {State.PENDING: 2}


def test_a_death_that_cannot_be_written_is_left_to_the_lease(store: Frail) -> None:
    worker, _, _ = claimed(store)
    store.away = 10**9
    deaths = Deaths(store, retry_s=60.0)
    deaths.report(worker, set())
    assert not deaths.wait(0.01)
    deaths.stop()
    assert store.counts() == {State.RUNNING: 2}
