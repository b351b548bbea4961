"""What an SQL job runs and where: its arguments, checked when it is made and when it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypedDict

from timeball.action.secret import Secret
from timeball.errors import UsageError

TIMEOUT_S: Final = 60.0
"""For one attempt, where neither the job nor its schedule says otherwise."""

ROWS_MAX: Final = 10_000
_NAME_MAX: Final = 63


class SqlOptions(TypedDict, total=False):
    """What `sql` takes besides the statement and where it runs; see there."""

    params: Sequence[Any] | Mapping[str, Any]
    role: str
    read_only: bool
    rows_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRequest:
    """The arguments of one SQL job, checked."""

    statement: str
    dsn: Secret
    params: Sequence[Any] | Mapping[str, Any] | None
    role: str | None
    read_only: bool
    rows_max: int

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Self:
        """Return the request of a job's arguments.

        Raises:
            UsageError: What is wrong with one of them, and what to write instead.
        """
        statement, dsn, params = args.get("statement"), args.get("dsn"), args.get("params")
        if not (isinstance(statement, str) and statement.strip()):
            raise UsageError("statement is empty: write one SQL statement")
        if not isinstance(dsn, Secret):  # not repeated, for it may hold a password
            raise UsageError(
                'dsn is stored with the job: pass a reference, dsn=Secret("env:REPORTS_DSN")'
            )
        if isinstance(params, str) or not isinstance(params, Sequence | Mapping | None):
            raise UsageError("params: write a list for %s, or a table for %(name)s")
        role, rows_max = args.get("role"), args.get("rows_max", 1_000)
        if role is not None and not (isinstance(role, str) and 0 < len(role) <= _NAME_MAX):
            raise UsageError(f"role is {str(role)[:80]!r}: write the name of a role")
        if type(rows_max) is not int or not 0 <= rows_max <= ROWS_MAX:
            raise UsageError(f"rows_max is {rows_max!r}: write 0 to {ROWS_MAX:,}")
        if not isinstance(args.get("read_only", True), bool):
            raise UsageError("read_only: write True or False")
        return cls(
            statement=statement,
            dsn=dsn,
            params=params,
            role=role,
            read_only=args.get("read_only", True),
            rows_max=rows_max,
        )
