"""`timeball cron lint`: what in a file of schedules will surprise, and what to write instead."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from timeball.cli.output import json_option, say, write, write_json
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.importers.found import Findings
    from timeball.importers.lint_finding import Finding

_FORMATS: Final = ("crontab", "celery", "apscheduler", "kubernetes", "toml")
_BYTES_MAX: Final = 4 << 20
_FOUND: Final = 1
_STYLES: Final = {"error": "bold red", "warning": "yellow", "hint": "cyan"}
_APSCHEDULER: Final = re.compile(r"^\s*(?:from|import)\s+apscheduler\b", re.MULTILINE)


class Linted(NamedTuple):
    """One file, and what there is to say about it."""

    file: str
    schedules: int
    remarks: list[Finding]


@click.command("lint")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(_FORMATS), help="Else by name and content.")
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
    from timeball.chance import now
    from timeball.cli.times import system_zone
    from timeball.core.cron import load_zone
    from timeball.importers.lint import lint as remarks_on

    tz = load_zone(options["tz"] or system_zone()).name
    found = _read(file, options["form"])
    remarks = remarks_on(found, after=now(), tz=tz)
    kept = [each for each in remarks if each.rule not in options["ignore"]]
    return Linted(file, len(found.found), kept)


def _read(file: str, form: str | None) -> Findings:
    """Return what a file holds.

    Raises:
        UsageError: It cannot be read, or is of no format that is known.
    """
    try:
        content = sys.stdin.buffer.read(_BYTES_MAX + 1) if file == "-" else _content(file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}: name a file of schedules") from error
    if len(content) > _BYTES_MAX:
        raise UsageError(f"{file}: larger than {_BYTES_MAX:,} bytes: name a file of schedules")
    text = content.decode(errors="surrogateescape")
    reader = _READERS[form or _form_of(file, text)]
    try:
        return reader(text, source=file)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def _content(file: str) -> bytes:
    with Path(file).open("rb") as opened:  # which may be a pipe, or have no end
        return opened.read(_BYTES_MAX + 1)


def _form_of(file: str, text: str) -> str:
    """Return the format of a file, by the end of its name and, for Python, what it imports."""
    match Path(file).suffix:
        case ".py":
            return "apscheduler" if _APSCHEDULER.search(text) else "celery"
        case ".yaml" | ".yml":
            return "kubernetes"
        case ".toml":
            return "toml"
        case _:
            return "crontab"


def _crontab(text: str, *, source: str) -> Findings:
    from timeball.importers.crontab_found import crontab_findings

    return crontab_findings(text, source=source)


def _celery(text: str, *, source: str) -> Findings:
    from timeball.importers.celery import celery_findings

    return celery_findings(text, source=source)


def _apscheduler(text: str, *, source: str) -> Findings:
    from timeball.importers.apscheduler import apscheduler_findings

    return apscheduler_findings(text, source=source)


def _kubernetes(text: str, *, source: str) -> Findings:
    from timeball.importers.kubernetes import kubernetes_findings

    return kubernetes_findings(text, source=source)


def _toml(text: str, *, source: str) -> Findings:
    from timeball.importers.toml_file import toml_findings

    return toml_findings(text, source=source)


_READERS: Final[dict[str, Callable[..., Findings]]] = {
    "crontab": _crontab,
    "celery": _celery,
    "apscheduler": _apscheduler,
    "kubernetes": _kubernetes,
    "toml": _toml,
}


def _write(file: str, remark: Finding) -> None:
    """Write one remark: two lines, the place first, as editors and people look for it."""
    name = f" {remark.name}:" if remark.name else ""
    place, what = f"{file}:{remark.line}:", f"[{remark.rule}]{name} {remark.says}"
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
    schedules = sum(each.schedules for each in linted)
    parts = [f"{counts[each]} {each}{'s' * (counts[each] != 1)}" for each in _STYLES]
    return f"{schedules} schedule{'s' * (schedules != 1)}: {', '.join(parts)}"


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
