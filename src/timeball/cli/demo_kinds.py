"""The jobs of `timeball demo --web`: a small company's, which fail now and then."""

from __future__ import annotations

import time

from timeball.action.context import Context
from timeball.action.registry import job
from timeball.core.retry import PermanentError, Retry

_SHORT = Retry(3, base_s=1.0, cap_s=5.0)


@job(name="mail.welcome", queue="mail", retry=_SHORT)
def welcome(user: int, context: Context) -> str:
    """Send a letter, or pretend to."""
    time.sleep(0.05 + user % 5 * 0.04)
    if user % 41 == 0:
        raise PermanentError("no such address")
    if user % 13 == 0 and context.attempt == 1:
        raise TimeoutError("the mail server did not answer within 5 s")
    return f"letter to user {user} sent"


@job(name="report.render", queue="reports", retry=_SHORT)
def render(month: int, context: Context) -> dict[str, int]:
    """Draw a report, page by page."""
    pages = 4 + month % 5
    for page in range(pages):
        context.progress(page, pages, note=f"page {page + 1}")
        context.log(f"page {page + 1} of {pages} drawn")
        time.sleep(0.25)
    return {"pages": pages}


@job(name="etl.extract", queue="etl")
def extract(source: str) -> dict[str, int]:
    """Read from somewhere."""
    time.sleep(0.4)
    return {"rows": 1_000 + 17 * len(source)}


@job(name="etl.load", queue="etl")
def load(target: str) -> str:
    """Write to somewhere."""
    time.sleep(0.6)
    return f"loaded into {target}"


@job(name="hook.call", queue="hooks", retry=Retry(2, base_s=2.0, cap_s=4.0))
def call(order: int) -> int:
    """Call somebody's hook, or pretend to."""
    time.sleep(0.1)
    if order % 9 == 0:
        raise ConnectionError(f"order {order}: connection reset by peer")
    return 204
