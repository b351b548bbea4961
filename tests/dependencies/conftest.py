"""The workshop of the worker's loop, and each store with its clock."""

from tests.store.conftest import world
from tests.worker.loop.conftest import shop

__all__ = ["shop", "world"]
