"""The database is away for a while: who lives is not given up, and goes on where he was."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.proxy import Proxy, proxied
from tests.worker.supervision import (
    LEASE_S,
    assert_clean,
    configured,
    hold,
    in_state,
    submit,
    until,
)

from timeball.core.states import State
from timeball.store.postgres import PostgresStore

pytestmark = pytest.mark.slow


@pytest.fixture
def way(direct: str) -> Iterator[Proxy]:
    """The way of all workers to the database; the tests have one of their own."""
    with proxied(direct) as proxy:
        yield proxy


def beats(store: PostgresStore) -> dict[int, int]:
    return {pulse.worker: pulse.beat for pulse in store.pulses()}


def test_in_an_outage_of_three_leases_no_job_of_a_live_worker_gets_a_second_attempt(
    way: Proxy, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    for _ in range(2):  # each of them would sweep the other one
        supervise(configured(way.dsn, folder))
    until(lambda: len(beats(store)) == 2, "both are there")
    uuid, _ = hold(store, folder)
    way.down()
    before, end = beats(store), time.monotonic() + 3 * LEASE_S
    until(lambda: time.monotonic() >= end, "three leases are over")
    assert beats(store) == before, "nobody has had a beat"
    way.up()
    until(lambda: all(beats(store)[n] > beat + 6 for n, beat in before.items()), "a lease of beats")
    assert beats(store).keys() == before.keys()
    (folder / "go").touch()
    until(in_state(store, uuid, State.SUCCEEDED), "it has ended")
    job = store.get(uuid)
    assert (job.turn, job.attempts, job.crashes) == (1, 1, 0)
    assert_clean(store, 1)


def test_a_worker_whose_beats_are_swallowed_for_a_while_beats_again(
    way: Proxy, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    """TCP notices nothing: whoever waits for an answer would wait for ever, also afterwards."""
    supervise(configured(way.dsn, folder, lease_s=9.0))  # a third of it is waited for an answer
    until(lambda: beats(store) and min(beats(store).values()) > 0, "it beats")
    way.muted, before = True, beats(store)
    end = time.monotonic() + 2.0
    until(lambda: time.monotonic() >= end, "a beat was swallowed")
    way.muted = False
    until(lambda: all(beats(store)[n] > beat + 1 for n, beat in before.items()), "it beats again")


def test_a_database_that_goes_away_three_times_under_load_costs_no_attempt(
    way: Proxy, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervise(configured(way.dsn, folder, slots=4))
    uuids: list[UUID] = []

    def ended() -> int:
        return len(store.ended(uuids))

    for outage in range(3):
        uuids += [submit(store, "note", f'{{"text": "{outage}-{n}"}}') for n in range(40)]
        reached = 40 * outage + 10
        until(lambda reached=reached: ended() > reached, "some have ended")
        way.down()
        until(lambda: not way._open, "everybody is cut off")
        way.up()
    until(lambda: ended() == len(uuids), "all have ended")
    ran = Counter((folder / "notes").read_text().split())
    assert set(ran.values()) == {1}
    assert len(ran) == len(uuids)
    assert {store.get(uuid).turn for uuid in uuids} == {1}
    assert_clean(store, len(uuids))


def test_a_worker_that_hears_nothing_any_more_finds_jobs_by_its_poll_and_listens_again(
    way: Proxy,
    direct: str,
    store: PostgresStore,
    folder: Path,
    supervise: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The packets of its listener are swallowed: nothing fails, and nothing arrives."""
    monkeypatch.setenv("TIMEBALL_LISTEN_DSN", way.dsn)
    supervise(configured(direct, folder))
    until(lambda: beats(store) and way._open, "it is there, and listens")
    way.muted = True
    uuid = submit(store, "note", '{"text": "unheard"}')
    until(in_state(store, uuid, State.SUCCEEDED), "it was found by the poll")
    way.muted = False
    way.down()
    until(lambda: not way._open, "its listener is cut off")
    way.up()
    until(lambda: way._open, "it listens again")
    assert_clean(store, 1)
