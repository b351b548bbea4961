"""A store in memory for the commands, where no server is needed to see what they do."""

from __future__ import annotations

import pytest
from tests.store.world import World, memory_world

from timeball.client import Client


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A store in memory that every command finds instead of a database."""
    found = memory_world()
    monkeypatch.setattr("timeball.client.connect", lambda *_, **__: Client(found.store))
    return found
