"""`timeball certify`: break what is promised on purpose, and see whether the promises hold."""

from __future__ import annotations

import json
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from timeball.cli.output import say
from timeball.errors import TimeballError, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.certify.mutants.verdicts import Verdict
    from timeball.certify.runner import Order
    from timeball.certify.scenario import Result

_PROFILES = ("quick", "full", "soak")
_WRITTEN = ("results.json", "report.html", "junit.xml")


@click.command()
@click.option("--profile", type=click.Choice(_PROFILES), default="quick", show_default=True)
@click.option("--scenario", metavar="A,F,…", help="Only these scenarios.")
@click.option(
    "--mutants",
    metavar="all|M01,…",
    help="Instead of scenarios: put defects in, one at a time; each must be seen.",
)
@click.option(
    "--peers",
    is_flag=False,
    flag_value="all",
    metavar="[all|NAME,…]",
    help="Instead of scenarios: the same probes for Timeball and for other products.",
)
@click.option(
    "--install", is_flag=True, help="With --peers: have pip install the others, each apart."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--dsn", help="A server to make private databases on; else an embedded one.")
@click.option(
    "--replay",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Play again what did not pass in that results.json.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Results go here.",
)
@click.pass_context
def command(ctx: click.Context, /, *, out: Path, **given: Any) -> None:
    """Play scenarios that attack the promises, each on a database of its own.

    Writes results.json, report.html, junit.xml and history.jsonl. The exit code is 0 if all
    promises were kept, 1 if one was broken, 2 if a fault was never met, 3 if the harness failed.
    """
    from timeball.certify.results import Exit

    mutants, peers, install = (given.pop(name) for name in ("mutants", "peers", "install"))
    _agree(given, mutants=mutants, peers=peers, install=install)
    order = _order(out, **given)
    try:
        _empty(out)
        with _ended_in_order():
            if peers:
                code = _compared(peers, order, install=install)
            else:
                code = _put_in(mutants, order) if mutants else _carried_out(order)
    except UsageError:
        raise
    except (TimeballError, OSError) as error:
        say(f"timeball: {error}")
        code = Exit.BROKEN
    except Exception:  # noqa: BLE001 - else it would end as 1, which says that a promise is broken
        say(traceback.format_exc())
        code = Exit.BROKEN
    ctx.exit(code)


def _agree(
    given: Mapping[str, Any], *, mutants: str | None, peers: str | None, install: bool
) -> None:
    """Refuse options that leave open which run is meant."""
    if install and not peers:
        raise UsageError("--install is for other products: write --peers --install")
    if mutants and peers:
        raise UsageError("--mutants and --peers are two runs: leave one out")
    instead = "--mutants" if mutants else "--peers" if peers else ""
    if instead and (given["scenario"] or given["replay"]):
        raise UsageError(f"{instead} plays no scenarios: leave --scenario and --replay out")


def _empty(out: Path) -> None:
    """Make the folder, and remove what an earlier run has left there: it is not of this one."""
    out.mkdir(parents=True, exist_ok=True)
    for name in _WRITTEN:
        (out / name).unlink(missing_ok=True)
    (out / "history.jsonl").write_text("")


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Have the first SIGTERM or Ctrl-C end what the block has started; another one comes late."""
    signals = (signal.SIGTERM, signal.SIGINT)

    def leave(number: int, _frame: object) -> None:
        for each in signals:
            signal.signal(each, lambda *_: None)
        raise SystemExit(128 + number)

    before = [signal.signal(each, leave) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def _order(
    out: Path, *, profile: str, scenario: str | None, seed: int, dsn: str | None,
    replay: Path | None,
) -> Order:  # fmt: skip
    """Return what the command line asks for."""
    from timeball.certify.registry import selected
    from timeball.certify.results import to_replay
    from timeball.certify.runner import Order
    from timeball.certify.scenario import Profile

    ids = [each.strip() for each in (scenario or "").split(",") if each.strip()]
    wanted = Profile(profile)
    if replay is not None:
        if ids:
            raise UsageError("--replay names its scenarios itself: leave --scenario out")
        try:
            ids, seed, wanted = to_replay(json.loads(replay.read_text("utf-8")))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{replay} has no scenarios to replay: name a results.json of a run of some"
            ) from error
    return Order(
        scenarios=selected(wanted, ids),
        out=out,
        profile=wanted,
        seed=seed,
        dsn=dsn,
        named=bool(ids),
    )


def _carried_out(order: Order) -> int:
    """Play, write what came of it, and return the exit code."""
    from timeball.certify.results import Run, document, verdict
    from timeball.certify.runner import certify, told
    from timeball.certify.scenario import Status
    from timeball.chance import now
    from timeball.cli.output import iso

    at = iso(now())
    results = certify(order, say)
    run = Run(results=results, profile=order.profile, seed=order.seed, at=at)
    _write(order.out, document(run), results)
    code = verdict(results)
    for result in results:
        if result.status not in {Status.PASSED, Status.SKIPPED}:
            say(told(result))  # once more, where the last lines of a long log are read
    say(f"{code.name.lower()}: see {order.out / 'report.html'}")
    return code


def _put_in(ids: str, order: Order) -> int:
    """Put defects in, write what became of them, and return the exit code."""
    from timeball.certify.databases import serving
    from timeball.certify.mutants.matrix import chosen, matrix
    from timeball.certify.results import Run, document, mutants_verdict
    from timeball.chance import now
    from timeball.cli.output import iso

    at, mutants = iso(now()), chosen(each.strip() for each in ids.split(","))
    with serving(order.dsn) as databases:
        verdicts = matrix(mutants, databases, say)
    run = Run(results=[], profile=order.profile, seed=order.seed, at=at, mutants=verdicts)
    _write(order.out, document(run), verdicts)
    code = mutants_verdict(verdicts)
    killed = sum(each.killed for each in verdicts)
    survivors = [each.id for each in verdicts if not each.killed]
    if survivors:
        say(f"survived: {', '.join(survivors)}")
    say(f"{killed} of {len(verdicts)} killed: see {order.out / 'report.html'}")
    return code


def _compared(names: str, order: Order, *, install: bool) -> int:
    """Play the probes against products, write and show what was seen, return the exit code."""
    from timeball.certify.databases import serving
    from timeball.certify.peers.catalogue import chosen
    from timeball.certify.peers.comparison import block, compared, table
    from timeball.certify.peers.environments import Environments, default_folder
    from timeball.certify.results import Run, document, peers_verdict
    from timeball.chance import now
    from timeball.cli.output import iso, write_table

    at, peers, environments = iso(now()), chosen(names), Environments(default_folder())
    if install:
        environments.install(peers, say)
    with serving(order.dsn) as databases:
        rows = compared(peers, environments, databases, say=say)
    found = block(rows, f"timeball certify --peers {names}")
    run = Run(results=[], profile=order.profile, seed=order.seed, at=at, peers=found)
    _write(order.out, document(run), [])
    write_table(("probe", "product", "seen"), table(found))
    for name, title in found["probes"].items():
        say(f"{name}: {title}")
    for name, row in found["rows"].items():
        say(f"{name} {row['version']}: {row['configuration']}")
    say(f"all of it: see {order.out / 'results.json'}")
    return peers_verdict(found)


def _write(out: Path, found: dict[str, Any], results: Sequence[Result | Verdict]) -> None:
    from timeball.certify.junit import junit
    from timeball.certify.report import report

    (out / "results.json").write_text(json.dumps(found, indent=2, default=str) + "\n", "utf-8")
    (out / "report.html").write_text(report(found), "utf-8")
    (out / "junit.xml").write_text(junit(results), "utf-8")
