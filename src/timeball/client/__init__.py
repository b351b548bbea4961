"""Submit jobs, wait for them, look at them: what a program does that is no worker."""

from __future__ import annotations

from timeball.client.aio import AsyncClient
from timeball.client.batches import Batch
from timeball.client.connect import connect, connect_async
from timeball.client.handles import Handle
from timeball.client.sync import Client

__all__ = ["AsyncClient", "Batch", "Client", "Handle", "connect", "connect_async"]
