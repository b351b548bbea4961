"""What the disasters are made of, and that what they look for would be seen."""

from __future__ import annotations

import threading
from contextlib import closing
from uuid import UUID, uuid4

import pytest

from timeball.certify.disasters import away
from timeball.certify.disasters.long_kinds import ALIVE
from timeball.certify.effects import BEGAN, Effect
from timeball.certify.link import Way, linked
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore


def attempts(*times: tuple[int, int]) -> list[Effect]:
    """The attempts of one job that were seen to be alive from some time to another."""
    job = uuid4()
    return [
        Effect(what, job, turn, 7, at_ns)
        for turn, run in enumerate(times, start=1)
        for what, at_ns in zip((BEGAN, ALIVE), run, strict=True)
    ]


GOOD = {"stopped in time": 1, "ran again": 1, "at once": 0}


@pytest.mark.parametrize(
    ("times", "change"),
    [
        (((1, 20), (50, 60)), {}),
        (((1, 40), (50, 60)), {"stopped in time": 0}),
        (((1, 20),), {"ran again": 0}),
        (((1, 20), (20, 60)), {"at once": 1}),
        (((1, 55), (50, 60)), {"stopped in time": 0, "at once": 1}),
        (((1, 20), (50, 60), (55, 70)), {"at once": 1}),
    ],
)
def test_exclusive_attempts_that_were_not_stopped_in_time_or_run_at_once_are_seen(
    times: tuple[tuple[int, int], ...], change: dict[str, int]
) -> None:
    runs: dict[UUID, list[away.Run]] = away.runs(reversed(attempts(*times)))
    assert away.told(runs.values(), until_ns=40) == {**GOOD, **change}


@pytest.mark.slow
def test_a_link_that_stands_still_loses_nothing_and_one_that_is_cut_refuses(direct: str) -> None:
    with linked(direct) as link, closing(PostgresStore(link.dsn)) as store:
        store.ensure_lanes([("early", 5)])
        link.turn(Way.HOLD)
        call = threading.Thread(target=store.ensure_lanes, args=([("late", 5)],))
        call.start()
        call.join(0.05)
        assert call.is_alive()
        link.turn(Way.PASS)
        call.join(30.0)
        assert not call.is_alive()
        link.turn(Way.CUT)
        for _ in range(2):  # the old connection, and a new one
            with pytest.raises(StoreUnavailable):
                store.now()
        link.turn(Way.PASS)
        assert {queue.name for queue in store.queues()} >= {"early", "late"}
