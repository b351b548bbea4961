"""What a caller may do: every route names one scope, and a token has some."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Scope(StrEnum):
    """What a route asks for."""

    OPEN = "open"  # nothing: the page that asks for a token, and what it looks like
    CALLBACK = "callback"  # no token: the address of the callback itself, which is a proof
    READ = "read"  # look at everything but what jobs are given, give and say
    READ_PAYLOAD = "read_payload"  # look at arguments, results, errors and log lines too
    SUBMIT = "submit"  # add jobs
    OPERATE = "operate"  # change what is there: cancel, revive, pause, resume, run
    ADMIN = "admin"  # delete, and set limits


_S = Scope
IMPLIED: Final = MappingProxyType(
    {
        _S.OPEN: frozenset({_S.OPEN}),
        _S.READ: frozenset({_S.OPEN, _S.READ}),
        _S.READ_PAYLOAD: frozenset({_S.OPEN, _S.READ, _S.READ_PAYLOAD}),
        _S.SUBMIT: frozenset({_S.OPEN, _S.SUBMIT}),
        _S.OPERATE: frozenset({_S.OPEN, _S.READ, _S.OPERATE}),
        _S.CALLBACK: frozenset({_S.CALLBACK}),
        _S.ADMIN: frozenset(Scope) - {_S.CALLBACK},
    }
)
"""All that a scope contains."""

GRANTABLE: Final = tuple(scope for scope in Scope if scope not in {Scope.OPEN, Scope.CALLBACK})
"""What a token may have."""


def contained(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Return all that some scopes contain."""
    return frozenset({Scope.OPEN}).union(*(IMPLIED[scope] for scope in scopes))
