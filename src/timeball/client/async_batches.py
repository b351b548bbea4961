"""`Batch` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from timeball.action.draft import Draft
from timeball.action.job_call import JobCall
from timeball.client.batches import Batch
from timeball.client.handles import Handle
from timeball.client.sync import Waiting
from timeball.core.batches import BatchState, Member
from timeball.core.records import CancelAnswer
from timeball.core.report import BatchReport
from timeball.core.states import State


class AsyncBatch:
    """`Batch` for asyncio: the same calls, awaited. Each runs in a thread."""

    def __init__(self, batch: Batch) -> None:
        self.sync = batch

    @property
    def uuid(self) -> UUID:
        """What names it in the `after` of others."""
        return self.sync.uuid

    async def __aenter__(self) -> Self:
        self.sync.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.sync.__exit__, kind, error, traceback)

    async def submit(self, job: Callable[..., Any] | str | JobCall, /, **arguments: Any) -> Handle:
        """See `Batch.submit`."""
        return await asyncio.to_thread(self.sync.submit, job, **arguments)

    async def submit_many(
        self, job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle]:
        """See `Batch.submit_many`."""
        return await asyncio.to_thread(self.sync.submit_many, job, each, **options)

    async def submit_all(self, drafts: Iterable[Draft]) -> list[Handle]:
        """See `Batch.submit_all`."""
        return await asyncio.to_thread(self.sync.submit_all, drafts)

    def batch(self, name: str = "", **options: Any) -> AsyncBatch:
        """See `Batch.batch`."""
        return AsyncBatch(self.sync.batch(name, **options))

    async def close(self) -> bool:
        """See `Batch.close`."""
        return await asyncio.to_thread(self.sync.close)

    async def state(self) -> BatchState:
        """See `Batch.state`."""
        return await asyncio.to_thread(self.sync.state)

    async def counts(self) -> Mapping[State, int]:
        """See `Batch.counts`."""
        return await asyncio.to_thread(self.sync.counts)

    async def progress(self) -> float:
        """See `Batch.progress`."""
        return await asyncio.to_thread(self.sync.progress)

    async def members(self) -> list[Member]:
        """See `Batch.members`."""
        return await asyncio.to_thread(self.sync.members)

    async def report(self) -> BatchReport:
        """See `Batch.report`."""
        return await asyncio.to_thread(self.sync.report)

    async def critical_path(self) -> list[Member]:
        """See `Batch.critical_path`."""
        return await asyncio.to_thread(self.sync.critical_path)

    async def wait(self, timeout_s: float | None = None) -> BatchState:
        """See `Batch.wait`. Cancelling it stops the waiting and leaves the batch alone."""
        waiting = Waiting(self.sync.client.store, [self.uuid], timeout_s)
        while (rest_s := await asyncio.to_thread(waiting.look)) is not None:  # noqa: ASYNC110 - a store can only be asked
            await asyncio.sleep(rest_s)
        return await self.state()

    async def cancel(self) -> dict[CancelAnswer, int]:
        """See `Batch.cancel`."""
        return await asyncio.to_thread(self.sync.cancel)

    async def retry(self) -> int:
        """See `Batch.retry`."""
        return await asyncio.to_thread(self.sync.retry)
