"""Jobs that the client's tests submit."""

import timeball as tb


@tb.job(name="client.add", queue="sums", priority=7, retry=tb.Retry(2), timeout_s=9.0)
def add(a: int, b: int = 0) -> int:
    return a + b


@tb.job(name="client.once", delivery="at_most_once")
def once() -> None: ...


@tb.job(name="client.clash")
def clash(queue: str) -> str:
    return queue


@tb.job(name="client.asks")
def asks(a: int, ctx: tb.Context) -> int:
    return a + ctx.attempt
