"""Random verbs in random order keep the contract, and lead every store to the same place."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.driver import Driver
from tests.store.world import World, memory_world


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_no_short_story_breaks_the_contract(random: Random) -> None:
    Driver([memory_world()], random).run(40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_store_tells_the_same_story(worlds: list[World], seed: int) -> None:
    Driver(worlds, Random(seed)).run(150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_long_story_breaks_the_contract(seed: int) -> None:
    Driver([memory_world()], Random(1_000 + seed)).run(300)
