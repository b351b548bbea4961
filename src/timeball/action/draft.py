"""Jobs that are not submitted yet: several can be submitted as one, with edges among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeball.chance import new_uuid
from timeball.errors import UsageError

if TYPE_CHECKING:  # a job's context makes drafts, and a job call has a kind, which knows contexts
    from timeball.action.job_call import JobCall

TOGETHER_MAX: Final = 10_000
"""Jobs of one submission."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Draft:
    """A job to be: give it to `submit_all`, and name it in the `after` of later drafts.

    Attributes:
        uuid: What the job will be known by.
        job: What it will run.
        args: Its arguments by position; for schedulers only.
        arguments: Its arguments by name, and the options of `submit`.
    """

    uuid: UUID
    job: Callable[..., Any] | str | JobCall
    args: tuple[Any, ...] = ()
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        name = self.job if isinstance(self.job, str) else getattr(self.job, "__name__", self.job)
        return f"<draft {self.uuid}: {name}>"

    def following(self, parents: Collection[UUID]) -> Draft:
        """Return the same job, after some more; an edge that is written already stays as it is."""
        after = [*self.arguments.get("after", ())]
        known = {uuid_named(each) for each in after}
        after += [uuid for uuid in parents if uuid not in known]
        return replace(self, arguments={**self.arguments, "after": after}) if after else self


def draft(job: Callable[..., Any] | str | JobCall, /, *args: Any, **arguments: Any) -> Draft:
    """Return a job that is not submitted yet.

    Args:
        job: A function, the name of a kind, or what `tb.http` and the like give.
        *args: Its arguments by position; only a scheduler takes those.
        **arguments: Its arguments by name, and the options of `submit`: of `Client.submit` for a
            client, of `Scheduler.submit` for a scheduler. `uuid` is made where it is left out.

    Example:
        >>> first = draft(print, "one")
        >>> second = draft(print, "two", after=[first])
    """
    uuid = arguments.pop("uuid", None)
    if uuid is not None and not isinstance(uuid, UUID):
        raise UsageError(f"uuid is {uuid!r}: pass a uuid.UUID, or leave it out")
    return Draft(uuid=uuid or new_uuid(), job=job, args=args, arguments=arguments)


def uuid_named(each: object) -> Hashable:
    """Return the uuid of what an `after` names: a draft, a handle, a uuid, or a pair with one."""
    job = each[0] if isinstance(each, tuple) and each else each
    named = getattr(job, "uuid", job)
    return named if isinstance(named, Hashable) else None


def renamed(edge: Any, names: Mapping[Hashable, Draft]) -> Any:
    """Return what an `after` names with the draft that has taken another's place."""
    other = names.get(uuid_named(edge))
    if other is None:
        return edge
    return (other, *edge[1:]) if isinstance(edge, tuple) else other


def together(drafts: Iterable[Draft]) -> list[Draft]:
    """Return the drafts of one submission, in their order.

    Raises:
        UsageError: There are too many, one is there twice, or one names a later one.
    """
    found = list(drafts)
    if len(found) > TOGETHER_MAX:
        raise UsageError(f"{len(found):,} jobs at once: submit {TOGETHER_MAX:,} together at most")
    places: dict[object, int] = {}
    for place, each in enumerate(found):
        if not isinstance(each, Draft):
            raise UsageError(f"{each!r:.80} is no draft: write tb.draft(job, …)")
        if places.setdefault(each.uuid, place) != place:
            raise UsageError(f"{each!r} is in the submission twice: make a draft for each job")
    for place, each in enumerate(found):
        after = each.arguments.get("after")
        for parent in after if isinstance(after, list | tuple | set | frozenset) else ():
            if places.get(uuid_named(parent), -1) >= place:
                raise UsageError(
                    f"{each!r} comes after a job that is written later: write parents first, so "
                    "that no cycle can be written"
                )
    return found
