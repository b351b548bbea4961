"""Fixtures of the loop's tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.worker.loop.workshop import Workshop


@pytest.fixture
def shop() -> Iterator[Workshop]:
    """A workshop that must be left as it was found: no thread stays."""
    before = set(threading.enumerate())
    yield Workshop()
    assert set(threading.enumerate()) <= before
