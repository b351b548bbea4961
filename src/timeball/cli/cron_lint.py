"""`timeball cron lint`: what in a file of schedules will surprise, and what to write instead."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from timeball.cli.output import clean, json_option, say, write, write_json
from timeball.cli.schedule_file import form_option, text_of
from timeball.errors import UsageError
from timeball.importers.wording import counted

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.importers.found import Findings
    from timeball.importers.lint_finding import Finding

_FORMATS: Final = ("crontab", "celery", "apscheduler", "kubernetes", "toml")
_FOUND: Final = 1
_STYLES: Final = {"error": "bold red", "warning": "yellow", "hint": "cyan"}
_OWN_PYTHON: Final = (
    "its schedules are Timeball's own: `timeball up FILE --dry-run` checks them, because it may "
    "run the file; or choose with --format"
)


class Linted(NamedTuple):
    """One file, and what there is to say about it."""

    file: str
    schedules: int
    remarks: list[Finding]


@click.command("lint")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="Format of all FILEs; else by name and content.",
)
@form_option
@click.option("--tz", help="Zone of what names none; else this machine's.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave this rule out.")
@json_option
@click.pass_context
def lint(ctx: click.Context, /, files: tuple[str, ...], **options: Any) -> None:
    """Say what in FILEs will surprise, and what to write instead.

    FILE: a crontab, a Python file with Celery's or APScheduler's schedules, CronJobs of Kubernetes,
    a schedules.toml. It is read, never run, and no database is needed.

    The exit code is 1 if there is an error; warnings and hints leave it 0.
    """
    linted = [_linted(file, options) for file in files]
    if options["as_json"]:
        write_json({"files": [_record(each) for each in linted]})
    else:
        for each in linted:
            for remark in each.remarks:
                _write(each.file, remark)
        say(_summary(linted))
    errors = any(remark.severity == "error" for each in linted for remark in each.remarks)
    ctx.exit(_FOUND if errors else 0)


def _linted(file: str, options: dict[str, Any]) -> Linted:
    from timeball.chance import now, system_zone
    from timeball.core.cron import load_zone
    from timeball.importers.lint import lint as remarks_on

    tz = load_zone(options["tz"] or system_zone()).name
    found = _read(file, options)
    remarks = remarks_on(found, after=now(), tz=tz)
    kept = [each for each in remarks if each.rule not in options["ignore"]]
    return Linted(file, len(found.found), kept)


def _read(file: str, options: dict[str, Any]) -> Findings:
    """Return what a file holds.

    Raises:
        UsageError: It cannot be read, or is of no format that is known.
    """
    try:
        return _findings(file, text_of(file), options)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def _findings(file: str, text: str, options: dict[str, Any]) -> Findings:
    from timeball.importers.formats import origin_of, read_findings
    from timeball.importers.found import Origin

    named = options["format_"]
    origin = Origin(named) if named else origin_of(file, text)
    if origin is None:
        raise UsageError(_OWN_PYTHON)
    found = read_findings(text, source=file, origin=origin, form=options["form"])
    if not (found.found or found.needs):
        say(f"{file}: no schedule is in it, read as {origin}; --format chooses another format")
    return found


def _write(file: str, remark: Finding) -> None:
    """Write one remark: two lines, the place first, as editors and people look for it."""
    name = f" {remark.name}:" if remark.name else ""
    place, what = f"{clean(file)}:{remark.line}:", clean(f"[{remark.rule}]{name} {remark.says}")
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        severity = (remark.severity, _STYLES[remark.severity])
        Console(soft_wrap=True).print(Text.assemble((place, "bold"), " ", severity, " ", what))
    else:
        write(f"{place} {remark.severity} {what}")
    if remark.instead:
        write(f"    {remark.instead}")


def _summary(linted: list[Linted]) -> str:
    counts = Counter(str(remark.severity) for each in linted for remark in each.remarks)
    remarks = ", ".join(counted(counts[each], each) for each in _STYLES)
    return f"{counted(sum(each.schedules for each in linted), 'schedule')}: {remarks}"


def _record(linted: Linted) -> dict[str, Any]:
    return {
        "file": linted.file,
        "schedules": linted.schedules,
        "findings": [
            {
                "line": each.line,
                "rule": each.rule,
                "severity": each.severity,
                "name": each.name,
                "says": each.says,
                "instead": each.instead,
            }
            for each in linted.remarks
        ],
    }
