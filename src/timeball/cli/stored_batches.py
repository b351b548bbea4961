"""`timeball batch list`, `show`, `graph`, `wait`, `close`, `cancel` and `retry`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import (
    iso,
    json_option,
    shown,
    utc_option,
    write,
    write_json,
    write_table,
)

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Batch, Client
    from timeball.core.batches import BatchLine, BatchState

_LIMIT_MAX: Final = 1_000


def found(client: Client, text: str) -> Batch:
    """Return the batch that a person means by its uuid, the beginning of it, or its number.

    Raises:
        JobNotFound: None fits, or it is a job.
        UsageError: Several do, or it can be no batch's.
    """
    from timeball.cli.job_search import find

    return client.get_batch(find(client, text).uuid)


@click.command("list")
@click.option("--limit", type=click.IntRange(1, _LIMIT_MAX), default=20, show_default=True)
@click.option("--before", type=int, help="Only older ones than the batch of this number.")
@utc_option
@json_option
@dsn_option
def listed(*, limit: int, before: int | None, utc: bool, as_json: bool, dsn: str | None) -> None:
    """List batches, newest first."""
    with opened(dsn) as client:
        lines = client.batches(limit=limit, before_id=before)
    if as_json:
        write_json({"batches": [_line_record(line) for line in lines]})
        return
    titles = ("number", "id", "name", "state", "jobs", "left", "created", "ended")
    write_table(titles, [_line_cells(line, utc=utc) for line in lines])


@click.command("show")
@click.argument("batch_id", metavar="ID")
@utc_option
@json_option
@dsn_option
def show(*, batch_id: str, utc: bool, as_json: bool, dsn: str | None) -> None:
    """Show a batch: its jobs by state, its report, its critical path.

    ID: a uuid, the beginning of one, or a number.
    """
    from timeball.core.batch_report import batch_report, critical_path

    with opened(dsn) as client:
        batch = found(client, batch_id)
        state, members, rates = batch.state(), batch.members(), client.store.rates()
    report, path = batch_report(members, rates), critical_path(members)
    if as_json:
        ids = [str(each.uuid) for each in path]
        write_json({**_record(state), "report": report.as_dict(), "critical_path": ids})
        return
    write("\n".join(_lines(state, utc=utc)))
    if report.attempts:
        steps = " → ".join(f"{each.kind} {each.id}" for each in path[:12])
        write(f"\n{report}\n\nPath      {steps}{' → …' if path[12:] else ''}")


@click.command("graph")
@click.argument("batch_id", metavar="ID")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    is_flag=False,
    flag_value="-",
    help="Draw it there; without a name, write the picture out.",
)
@click.option("--dot", "as_dot", is_flag=True, help="Write it for Graphviz.")
@dsn_option
def graph(*, batch_id: str, svg: Path | None, as_dot: bool, dsn: str | None) -> None:
    """Show what comes after what in a batch; jobs that look alike are one node."""
    from timeball.cli import batch_graph

    with opened(dsn) as client:
        batch = found(client, batch_id)
        name = batch.state().name or f"batch {batch.uuid}"
        drawn = batch_graph.graph_of(batch.members(), name)
    if svg == Path("-"):
        click.echo(batch_graph.svg(drawn), nl=False)
    elif svg is not None:
        svg.write_text(batch_graph.svg(drawn), "utf-8")
    if as_dot:
        click.echo(batch_graph.dot(drawn), nl=False)
    elif svg is None:
        write("\n".join(batch_graph.lines(drawn)))


@click.command("wait")
@click.argument("batch_id", metavar="ID")
@click.option("--timeout", "timeout_s", type=click.FloatRange(0), help="Seconds; else for ever.")
@dsn_option
@click.pass_context
def wait(ctx: click.Context, /, *, batch_id: str, timeout_s: float | None, dsn: str | None) -> None:
    """Wait until a batch has ended.

    The exit code is 0 if it has succeeded, and 1 if not, or if the time is up.
    """
    from timeball.core.states import State

    with opened(dsn) as client:
        batch = found(client, batch_id)
        try:
            state = batch.wait(timeout_s)
        except TimeoutError:
            raise click.ClickException(
                f"{_progress(batch.state())}; it goes on: timeball batch show {batch.uuid}"
            ) from None
    write(f"{state.state}: {_progress(state)}")
    ctx.exit(int(state.state is not State.SUCCEEDED))


@click.command("close")
@click.argument("batch_id", metavar="ID")
@dsn_option
def close(*, batch_id: str, dsn: str | None) -> None:
    """Let an open batch end with the last of its jobs."""
    with opened(dsn) as client:
        closed = found(client, batch_id).close()
    write("closed" if closed else "was not open; nothing was changed")


@click.command("cancel")
@click.argument("batch_id", metavar="ID")
@dsn_option
def cancel(*, batch_id: str, dsn: str | None) -> None:
    """Keep all jobs of a batch from starting, and ask those that run to stop.

    The batches in it too. To cancel a part, name a batch in it.
    """
    with opened(dsn) as client:
        answers = found(client, batch_id).cancel()
    told = ", ".join(f"{count:,} {answer}" for answer, count in sorted(answers.items()))
    write(told or "nothing was left")


@click.command("retry")
@click.argument("batch_id", metavar="ID")
@dsn_option
def retry(*, batch_id: str, dsn: str | None) -> None:
    """Start the failed part of a batch again, and have the batch wait for it.

    Jobs that failed or were cancelled, and those that were ruled out because of them, in order.
    """
    with opened(dsn) as client:
        jobs = found(client, batch_id).retry()
    write(f"{jobs:,} jobs start again" if jobs else "nothing has failed")


COMMANDS: Final = (listed, show, graph, wait, close, cancel, retry)


def _progress(state: BatchState) -> str:
    return f"{state.ended:,} of {state.jobs:,} jobs have ended"


def _lines(state: BatchState, *, utc: bool) -> list[str]:
    counts = [f"{count:,} {each}" for each, count in state.states.items() if count]
    counts += [f"{state.gone:,} deleted"] if state.gone else []
    facts = {
        "batch": f"{state.uuid} (number {state.id})",
        "name": state.name,
        "state": f"{state.state}{', open' if state.is_open else ''}",
        "jobs": f"{state.jobs:,}: {', '.join(counts) or 'none'}",
        "progress": f"{100 * state.progress:.1f} %",
        "created": shown(state.created_at, utc=utc),
        "ended": shown(state.ended_at, utc=utc),
    }
    return [f"{name:9} {value}" for name, value in facts.items() if value]


def _record(state: BatchState) -> dict[str, Any]:
    record = asdict(state)
    record["states"] = {str(each): count for each, count in state.states.items()}
    record["created_at"] = iso(state.created_at)
    record["ended_at"] = iso(state.ended_at) if state.ended_at else None
    return {**record, "jobs": state.jobs, "ended": state.ended, "progress": state.progress}


def _line_record(line: BatchLine) -> dict[str, Any]:
    ended_at = iso(line.ended_at) if line.ended_at else None
    return {**asdict(line), "created_at": iso(line.created_at), "ended_at": ended_at}


def _line_cells(line: BatchLine, *, utc: bool) -> list[object]:
    from timeball.core.batches import COUNT_MAX

    state = "open" if line.is_open else line.state
    counts = [f"{n:,}{'+' if n == COUNT_MAX else ''}" for n in (line.members, line.left)]
    times = [shown(line.created_at, utc=utc), shown(line.ended_at, utc=utc)]
    return [line.id, line.uuid, line.name, state, *counts, *times]
