"""A job scheduler that runs jobs once, on time, and can prove it.

The names below are the whole public interface. Each is imported when it is first
used, so that ``import timeball`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timeball.action.callback_kind import callback as callback
    from timeball.action.callback_kind import callback_url as callback_url
    from timeball.action.context import Cancel as Cancel
    from timeball.action.context import Context as Context
    from timeball.action.context import Snooze as Snooze
    from timeball.action.draft import Draft as Draft
    from timeball.action.draft import draft as draft
    from timeball.action.flow import chain as chain
    from timeball.action.flow import chord as chord
    from timeball.action.flow import group as group
    from timeball.action.http_kind import http as http
    from timeball.action.own_command import command as command
    from timeball.action.registry import cron as cron
    from timeball.action.registry import job as job
    from timeball.action.secret import Secret as Secret
    from timeball.action.sql_kind import sql as sql
    from timeball.client import AsyncClient as AsyncClient
    from timeball.client import Batch as Batch
    from timeball.client import Client as Client
    from timeball.client import Handle as Handle
    from timeball.client import connect as connect
    from timeball.client import connect_async as connect_async
    from timeball.core.rate import Rate as Rate
    from timeball.core.records import CancelAnswer as CancelAnswer
    from timeball.core.records import Delivery as Delivery
    from timeball.core.records import Job as Job
    from timeball.core.retry import PermanentError as PermanentError
    from timeball.core.retry import Retry as Retry
    from timeball.core.states import State as State
    from timeball.engine.async_scheduler import AsyncScheduler as AsyncScheduler
    from timeball.engine.processes import Processes as Processes
    from timeball.engine.scheduler import Scheduler as Scheduler
    from timeball.errors import DeadlockError as DeadlockError
    from timeball.errors import SchedulerClosed as SchedulerClosed
    from timeball.errors import StoreUnavailable as StoreUnavailable
    from timeball.errors import TimeballError as TimeballError
    from timeball.errors import UsageError as UsageError

__version__ = "0.1.0"

_HOMES = {
    "AsyncClient": "client",
    "Batch": "client",
    "AsyncScheduler": "engine.async_scheduler",
    "Cancel": "action.context",
    "CancelAnswer": "core.records",
    "Client": "client",
    "Context": "action.context",
    "DeadlockError": "errors",
    "Delivery": "core.records",
    "Draft": "action.draft",
    "Handle": "client",
    "Job": "core.records",
    "PermanentError": "core.retry",
    "Processes": "engine.processes",
    "Rate": "core.rate",
    "Retry": "core.retry",
    "Scheduler": "engine.scheduler",
    "SchedulerClosed": "errors",
    "Secret": "action.secret",
    "Snooze": "action.context",
    "State": "core.states",
    "StoreUnavailable": "errors",
    "TimeballError": "errors",
    "UsageError": "errors",
    "callback": "action.callback_kind",
    "callback_url": "action.callback_kind",
    "chain": "action.flow",
    "chord": "action.flow",
    "command": "action.own_command",
    "connect": "client",
    "connect_async": "client",
    "cron": "action.registry",
    "draft": "action.draft",
    "group": "action.flow",
    "http": "action.http_kind",
    "job": "action.registry",
    "sql": "action.sql_kind",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - names of the table above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'timeball' has no attribute {name!r}")
    found = getattr(import_module(f"timeball.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
