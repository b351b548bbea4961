"""What the engine asks of whoever carries out attempts somewhere else, such as in processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from timeball.action.context import StopSign
from timeball.core.outcomes import Raised, Snoozed, Stopped, Unbegun
from timeball.core.retry import Retry


@dataclass(frozen=True, slots=True)
class Done:
    """The callable returned; any object at all, or what is left of it after a transfer."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Lost:
    """Whoever carried it out died in the middle. Costs a crash, not a failure."""

    text: str


@dataclass(frozen=True, slots=True)
class Spawning:
    """The callable returned, and waits for the jobs that it has spawned before that counts."""

    value: Any
    works: tuple[Any, ...]


Ended = Done | Lost | Raised | Snoozed | Spawning | Stopped | Unbegun
"""How one attempt ended: as for the durable worker, but that results stay objects."""


class Runner(Protocol):
    """Carries out attempts for the threads of the engine. All methods may be called from any."""

    def carry_out(
        self,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        timeout_s: float | None,
        stop: StopSign,
        retry: Retry,
    ) -> Ended:
        """Call it and return how that ended; blocks the calling thread, which holds the slot.

        Never raises. A returned `Snooze` or `Cancel` becomes `Snoozed` or `Stopped`; an exception
        `Raised`, with `again` as `retry.wants` says; a timeout `Raised` with reason "timeout";
        a call that was stopped after `stop` was raised `Unbegun`; a death `Lost`.
        """
        ...

    def check(self, call: Callable[..., Any]) -> None:
        """Refuse, when it is submitted, what could never be carried out here.

        Raises:
            UsageError: The text says what to write instead.
        """
        ...

    def close(self, timeout_s: float) -> None:
        """End what was started for attempts, by force after `timeout_s`, and start no more."""
        ...
