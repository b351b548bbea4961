"""Which arguments a job's function takes, read once when it is registered."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

from timeball.action.context import Context
from timeball.errors import UsageError

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The names that a function may, and must, be called with."""

    accepted: frozenset[str]
    required: frozenset[str]
    others: bool = False
    """Whether it takes any other name too (``**kwargs``)."""

    context: str | None = None
    """The parameter that receives the `Context`; it is no argument of the job."""

    @classmethod
    def of(cls, call: Callable[..., Any]) -> Self:
        """Return the parameters of a function.

        Raises:
            UsageError: It cannot be called with arguments by name.
        """
        try:
            found = _signature(call).parameters.values()
        except (TypeError, ValueError) as error:
            raise UsageError(f"{call!r} has no signature: wrap it in a def ({error})") from None
        namespace = getattr(inspect.unwrap(call), "__globals__", {})
        contexts = [p.name for p in found if _means_context(p.annotation, namespace)]
        if len(contexts) > 1:
            raise UsageError(f"{' and '.join(contexts)} both ask for the Context: keep one")
        named = [p for p in found if p.kind not in _VARIADIC and p.name not in contexts]
        required = frozenset(p.name for p in named if p.default is inspect.Parameter.empty)
        by_position = {p.name for p in named if p.kind is inspect.Parameter.POSITIONAL_ONLY}
        if by_position & required:
            raise UsageError(
                f"{', '.join(sorted(by_position & required))} can only be given by position, and "
                "a job's arguments have names: remove the / from the function's parameters"
            )
        return cls(
            accepted=frozenset(p.name for p in named) - by_position,
            required=required,
            others=any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found),
            context=contexts[0] if contexts else None,
        )

    def complaint(self, names: Collection[str]) -> str | None:
        """Return what is wrong with calling it with arguments of these names; None if nothing."""
        if self.required <= set(names) and (self.accepted.issuperset(names) or self.others):
            return None
        missing = sorted(self.required - set(names))
        surplus = [] if self.others else sorted(set(names) - self.accepted)
        return "; ".join(
            f"{what}: {', '.join(which)}"
            for what, which in (("missing", missing), ("not a parameter", surplus))
            if which
        )


def _signature(call: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):  # where annotations are evaluated when they are looked at
        from annotationlib import Format

        return inspect.signature(call, annotation_format=Format.STRING)
    return inspect.signature(call)


def _means_context(annotation: object, namespace: dict[str, Any]) -> bool:
    """Return whether an annotation, which may be a text, is `Context`."""
    if not isinstance(annotation, str):
        return annotation is Context
    first, *rest = annotation.removesuffix("| None").strip().strip("'\"").split(".")
    if (rest or [first])[-1] != Context.__name__:
        return False
    if first not in namespace:
        return True  # imported for type checkers only
    value = namespace[first]
    for name in rest:
        value = getattr(value, name, None)
    return value is Context
