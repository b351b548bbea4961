"""`sql`: one statement on a database of one's own as a job."""

from __future__ import annotations

from typing import Any, Final, Unpack

from timeball.action.context import Context
from timeball.action.job_call import JobCall
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.action.secret import Secret
from timeball.action.sql_request import TIMEOUT_S, SqlOptions, SqlRequest


def usable() -> bool:
    """Return whether what SQL jobs need is installed; it always is."""
    return True


def _call(context: Context, **args: Any) -> Any:
    from timeball.action.sql import carry_out

    return carry_out(SqlRequest.of(args), context)


KIND: Final = Kind(
    name="timeball.sql",
    call=_call,
    parameters=Parameters(
        accepted=frozenset({"statement", "dsn"} | SqlOptions.__optional_keys__),
        required=frozenset({"statement", "dsn"}),
        context="context",
    ),
    timeout_s=TIMEOUT_S,
    runner="thread",
    check=SqlRequest.of,
    place=__name__,
)


def sql(
    statement: str, *, dsn: Secret, timeout_s: float | None = None, **options: Unpack[SqlOptions]
) -> JobCall:
    """Return one SQL statement as a job, for `submit` and `schedule`.

    It runs in a transaction of its own on a database of its own, never on the scheduler's
    connection; for that write ``@job(transactional=True)``. The job succeeds with
    ``{"columns", "rows", "row_count", "truncated"}``.

    Args:
        statement: One statement. Values go into `params` and are bound, never put into the text.
        dsn: The secret that holds the connection string; it has to name host and user.
        timeout_s: Seconds for one attempt, enforced by the server; 60 if nothing else is said.
        **options: `params`, a list for ``%s`` or a table for ``%(name)s``; `role` to act as;
            `read_only` (True); `rows_max` (1,000, at most 10,000), of which as many are kept as
            fit a result.

    Raises:
        UsageError: Something that can never work or is not safe, and what to write instead.
    """
    args: dict[str, Any] = {"statement": statement, "dsn": dsn, **options}
    KIND.encode(args)
    return JobCall(
        kind=KIND, args=args, options={} if timeout_s is None else {"timeout_s": timeout_s}
    )
