"""Every store that the suite is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.store.postgres_world import postgres_world
from tests.store.world import World, memory_world

# One line per store; a factory may ask the request for fixtures of its own.
STORES: dict[str, Callable[[pytest.FixtureRequest], World]] = {
    "memory": lambda _: memory_world(),
    "postgres": lambda request: postgres_world(request.getfixturevalue("dsn")),
}


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty store; what the test did to it must pass the audit."""
    world = STORES[request.param](request)
    yield world
    violations = world.violations()
    world.close()
    assert violations == []


@pytest.fixture
def worlds(request: pytest.FixtureRequest) -> Iterator[list[World]]:
    """One empty store of each kind, to be compared step by step."""
    worlds = [make(request) for make in STORES.values()]
    yield worlds
    for world in worlds:
        world.close()
