"""A graph of jobs: extract, 20 times transform, load, notify; with a retry and a rule.

One transform fails twice and is tried again. Another one is there to mend what `extract` has
broken, and is skipped by its rule, for nothing is broken. Draws the graph and how it went, and
judges itself::

    python examples/pipeline.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import timeball as tb

PARTS = 20
BROKEN, FLAKY = 19, 7
WIDTH = 60


@tb.job
def extract() -> list[int]:
    """Return the parts that there are."""
    time.sleep(0.02)
    return list(range(PARTS))


@tb.job(retry=tb.Retry(2, base_s=0.02, on=(ConnectionError,)))
def transform(part: int, ctx: tb.Context) -> int:
    """Return the square of a part; one part is not to be had before the third attempt."""
    time.sleep(0.01)
    if part == FLAKY and ctx.attempt <= 2:  # noqa: PLR2004 - see above
        raise ConnectionError(part)
    (extracted,) = ctx.parents()
    return int(extracted.result[part]) ** 2


@tb.job
def load(ctx: tb.Context) -> int:
    """Return the sum of what was transformed."""
    return sum(each.result or 0 for each in ctx.parents())


@tb.job
def notify(ctx: tb.Context) -> str:
    """Say how it went."""
    (loaded,) = ctx.parents()
    return f"loaded {loaded.result:,}"


def pipeline() -> list[tb.Draft]:
    """Return the jobs with their edges. A client's `submit_all` takes them too."""
    first = tb.draft(extract)
    rules = {BROKEN: "one_failed"}
    parts = [
        tb.draft(transform, part=n, after=[first], rule=rules.get(n, "all_success"))
        for n in range(PARTS)
    ]
    return [first, *tb.chain(tb.group(*parts), tb.draft(load, rule="none_failed"), notify)]


def graph(jobs: list[tb.Draft]) -> Iterator[str]:
    """Draw a line for each job, with the numbers of those that it comes after."""
    numbers = {job.uuid: n for n, job in enumerate(jobs, start=1)}
    for job in jobs:
        after = [numbers[getattr(each, "uuid", each)] for each in job.arguments.get("after", ())]
        shown = f"{after[0]} … {after[-1]}" if len(after) > 1 else "".join(map(str, after))
        yield f"{numbers[job.uuid]:>3} {job.job.__name__:10} <- {shown or 'nothing'}"


def gantt(s: tb.Scheduler, jobs: list[Any]) -> Iterator[str]:
    """Draw a line for each job: # while it ran, x while it ran and failed."""
    records = s.records()
    first = min(each.started_ns for each in records)
    scale = (WIDTH - 1) / (max(each.finished_ns for each in records) - first)
    for job in jobs:
        line = [" "] * WIDTH
        for each in records:
            if each.job == job.id:
                start, end = (
                    int((at - first) * scale) for at in (each.started_ns, each.finished_ns)
                )
                line[start : end + 1] = ("#" if each.ending == "succeeded" else "x") * (
                    end + 1 - start
                )
        yield f"{job.id:>3} |{''.join(line)}| {job.state}"


def is_right(s: tb.Scheduler, jobs: list[Any]) -> bool:
    """Return whether everything went as it should have."""
    _, *parts, loaded, notified = jobs
    wanted = sum(n**2 for n in range(PARTS) if n != BROKEN)
    return (
        loaded.result() == wanted
        and notified.result() == f"loaded {wanted:,}"
        and [part.retry_count for part in parts] == [2 * (n == FLAKY) for n in range(PARTS)]
        and [n for n, part in enumerate(parts) if part.state == "skipped"] == [BROKEN]
        and s.violations() == []
    )


if __name__ == "__main__":
    drafts = pipeline()
    print(*graph(drafts), "", sep="\n")
    with tb.Scheduler(workers=8) as scheduler:
        handles = scheduler.submit_all(drafts)
    print(*gantt(scheduler, handles), "", scheduler.report(), sep="\n")
    good = is_right(scheduler, handles)
    print("as it should be" if good else "NOT as it should be")
    sys.exit(0 if good else 1)
