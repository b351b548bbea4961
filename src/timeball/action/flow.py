"""Drafts put together: one after the other, side by side, or side by side and then one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from timeball.action.draft import Draft, draft
from timeball.action.job_call import JobCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Drafts with their edges: give it to `submit_all`, or put it into another flow.

    Attributes:
        drafts: All of them, parents first.
        first: The uuids of those that nothing in here comes before.
        last: The uuids of those that what follows comes after.
    """

    drafts: tuple[Draft, ...] = ()
    first: frozenset[UUID] = frozenset()
    last: tuple[UUID, ...] = ()

    def __iter__(self) -> Iterator[Draft]:
        return iter(self.drafts)

    def __len__(self) -> int:
        return len(self.drafts)


Part = Flow | Draft | JobCall | Callable[..., Any] | str
"""What flows are made of; a function or the name of a kind stands for a draft without arguments."""


def chain(*parts: Part) -> Flow:
    """Return a flow in which each part comes after all of the one before; empty ones are left out.

    Example:
        >>> flow = chain(draft(print, "one"), group(draft(print, 2), draft(print, 3)), print)
        >>> len(flow)
        4
    """
    drafts: list[Draft] = []
    first: frozenset[UUID] = frozenset()
    last: tuple[UUID, ...] = ()
    for part in filter(len, map(_flow, parts)):
        drafts += [each.following(last) if each.uuid in part.first else each for each in part]
        first, last = first or part.first, part.last
    return Flow(drafts=tuple(drafts), first=first, last=last)


def group(*parts: Part) -> Flow:
    """Return a flow of parts that do not wait for each other. It may be empty."""
    flows = [_flow(part) for part in parts]
    return Flow(
        drafts=tuple(each for flow in flows for each in flow),
        first=frozenset(uuid for flow in flows for uuid in flow.first),
        last=tuple(uuid for flow in flows for uuid in flow.last),
    )


def chord(parts: Iterable[Part], then: Part) -> Flow:
    """Return a flow in which `then` comes after all parts; of no parts it waits for none."""
    return chain(parts if isinstance(parts, Flow) else group(*parts), then)


def _flow(part: Part) -> Flow:
    if isinstance(part, Flow):
        return part
    one = part if isinstance(part, Draft) else draft(part)
    return Flow(drafts=(one,), first=frozenset({one.uuid}), last=(one.uuid,))
