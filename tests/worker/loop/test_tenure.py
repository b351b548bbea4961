"""Floors never pass an open turn, and follow what is settled."""

from __future__ import annotations

import random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending
from timeball.worker.tenure import Tenure


def turn(lane: int, seq: int, job_id: int) -> Turn:
    return Turn(lane, seq, job_id, 1, UUID(int=job_id), "k", "{}", 0, 0, 0, 0.0, 3, None, 0.0)


def test_the_floor_is_the_oldest_lease_with_an_open_turn() -> None:
    tenure = Tenure(1)
    assert tenure.floors() == {}
    tenure.add([turn(1, 5, 1), turn(1, 5, 2), turn(1, 8, 3), turn(2, 1, 4)])
    assert tenure.floors() == {1: 5, 2: 1}
    tenure.close(Settlement(1, 5, 1, 1, Ending.SUCCEEDED))
    assert tenure.floors() == {1: 5, 2: 1}
    tenure.close(Settlement(1, 5, 2, 1, Ending.SUCCEEDED))
    assert tenure.floors() == {1: 8, 2: 1}


def test_a_lane_with_nothing_open_starts_after_its_newest_lease() -> None:
    tenure = Tenure(1)
    tenure.add([turn(1, 5, 1)])
    tenure.close(Settlement(1, 5, 1, 1, Ending.SUCCEEDED))
    assert tenure.floors() == {1: 6}


@settings(max_examples=30)
@given(sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4))), seed=st.integers(0, 99))
def test_no_floor_ever_passes_an_open_turn(sizes: list[tuple[int, int]], seed: int) -> None:
    chance, tenure, open_turns = random.Random(seed), Tenure(1), []
    for seq, (lane, size) in enumerate(sizes, 1):
        granted = [turn(lane, seq, 10 * seq + n) for n in range(size)]
        tenure.add(granted)
        open_turns += granted
        chance.shuffle(open_turns)
        for ended in open_turns[: chance.randint(0, len(open_turns))]:
            tenure.close(Settlement(*ended[:4], Ending.SUCCEEDED))
            open_turns.remove(ended)
        floors = tenure.floors()
        for lane_id in floors:
            held = [each.seq for each in open_turns if each.lane == lane_id]
            assert floors[lane_id] == min(held) if held else floors[lane_id] <= seq + 1
