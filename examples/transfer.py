"""Money that moves once, in transactional jobs.

Run ``timeball up examples/transfer.py``, then, from a second terminal, ``timeball submit
transfer.opened --wait``, ``timeball submit transfer.move amount=30 --wait`` and ``timeball submit
transfer.balances --wait``. `move` writes to both accounts, and adds the job that tells about it,
in the transaction in which its own success is recorded: a worker that is killed in the middle
leaves nothing of it, and moves nothing twice.
"""

from __future__ import annotations

import timeball as tb

MOVE = "UPDATE account SET balance = balance + %s WHERE owner = %s"


@tb.job(transactional=True)
def opened(ctx: tb.Context) -> None:
    """Make the accounts of Ada and Bob."""
    ctx.connection.execute(
        "CREATE TABLE account (owner text PRIMARY KEY, balance integer CHECK (balance >= 0))"
    )
    ctx.connection.execute("INSERT INTO account VALUES ('Ada', 100), ('Bob', 0)")


@tb.job(transactional=True, retry=tb.Retry(0))
def move(amount: int, ctx: tb.Context) -> None:
    """Move money from Ada to Bob; too much of it fails, and moves nothing."""
    ctx.connection.execute(MOVE, [amount, "Bob"])
    with tb.connect() as client:
        client.submit(tell, amount=amount, connection=ctx.connection)
    ctx.connection.execute(MOVE, [-amount, "Ada"])


@tb.job
def tell(amount: int) -> str:
    """Tell about it: this job is there if and only if the money has moved."""
    return f"Bob has got {amount}"


@tb.job(transactional=True)
async def balances(ctx: tb.Context) -> dict[str, int]:
    """Say who has what: in a coroutine the connection is an asynchronous one."""
    cursor = await ctx.connection.execute("SELECT owner, balance FROM account")
    return dict(await cursor.fetchall())
