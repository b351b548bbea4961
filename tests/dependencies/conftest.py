"""The workshop of the worker's loop."""

from tests.worker.loop.conftest import shop

__all__ = ["shop"]
