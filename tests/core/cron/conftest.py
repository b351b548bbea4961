"""The oracles read the zone data that we read."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import pytest
import whenever


@pytest.fixture(scope="session", autouse=True)
def _same_zone_data() -> Iterator[None]:
    """Turn `whenever` to the package's data; the system's may be older, and differ in the past."""
    whenever.reset_tzpath([str(resources.files("tzdata").joinpath("zoneinfo"))])
    whenever.clear_tzcache()
    yield
    whenever.reset_tzpath()
    whenever.clear_tzcache()
