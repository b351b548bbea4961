"""The tests' own clock."""

from __future__ import annotations

import psycopg
import pytest
from tests.store.postgres_world import postgres_world


@pytest.mark.parametrize("turn", ["first", "second"])
def test_the_clock_of_a_test_is_not_met_by_the_next_one(dsn: str, turn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute("SELECT current_setting('timeball.now', true)").fetchone()
    assert found in {(None,), ("",)}, turn
    world = postgres_world(dsn)
    world.travel(3_600)
    assert world.store.counts() == {}
    world.store.close()
