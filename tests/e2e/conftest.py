"""Places for programs, and stores to watch what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.e2e.programs import Place

from timeball.store.postgres import PostgresStore


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """A place whose programs use an embedded server of their own."""
    return make_place()


@pytest.fixture
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Place]]:
    """Makes places; their names are short, for sockets lie in them."""
    places: list[Place] = []

    def make(dsn: str = "") -> Place:
        folder: Path = tmp_path_factory.mktemp("e")
        places.append(Place(folder, dsn))
        return places[-1]

    yield make
    for each in places:
        each.end()


class Demo(NamedTuple):
    """One run of `timeball demo`."""

    place: Place
    table: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, run once for all who look at what it leaves and says."""
    place = Place(tmp_path_factory.mktemp("d"))
    return Demo(place, place.said("demo"))


@pytest.fixture
def open_store() -> Iterator[Callable[[str], PostgresStore]]:
    """Opens stores and closes them."""
    stores: list[PostgresStore] = []

    def opened(dsn: str) -> PostgresStore:
        stores.append(PostgresStore(dsn))
        return stores[-1]

    yield opened
    for each in stores:
        each.close()
