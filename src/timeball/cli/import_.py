"""`timeball import`: schedules of other schedulers as a schedules.toml, and what needs a person."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.output import json_option, say, write, write_json, write_table
from timeball.cli.schedule_file import STDIN, form_option, text_of
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.importers.found import Findings, Found

_FAILED: Final = 1
_PARTLY: Final = 8
_DOES_MAX: Final = 60


@click.command("import")
@click.argument(
    "origin",
    metavar="FORMAT",
    type=click.Choice(["crontab", "celery", "apscheduler", "kubernetes"]),
)
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Only read and show; write no file.")
@click.option("--tz", help="Zone of what names none; else the format's own, or this machine's.")
@click.option(
    "--out",
    default="schedules.toml",
    show_default=True,
    help="The file to write; over one only with --force.",
)
@click.option("--force", is_flag=True, help="Write over the file.")
@form_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, origin: str, file: str, **options: Any) -> None:
    """Turn FILE into a schedules.toml that `timeball up` runs.

    FORMAT is crontab, celery, apscheduler or kubernetes; FILE may be - for stdin. The file is read
    as text: nothing in it is imported or run. What cannot be said in Timeball's words is listed
    as "needs you", with its line, and stands in comments of the file.

    The exit code is 8 where something needs you.
    """
    from timeball.chance import system_zone
    from timeball.core.cron import load_zone
    from timeball.importers.toml_text import toml_text

    out = Path(options["out"])
    writes = not options["dry_run"]
    if writes and os.path.lexists(out) and not options["force"]:
        raise UsageError(
            f"{out} exists: name another file with --out, or write over it with --force"
        )
    findings = _read(origin, file, options["form"])
    tz = load_zone(options["tz"] or findings.default_tz or system_zone()).name
    findings = _tried(findings, tz)
    _show(findings, tz, as_json=options["as_json"])
    if not any(each.holds for each in findings.found):
        say(f"{file}: nothing in it can run, read as {origin}; no file was written")
        ctx.exit(_FAILED)
    if writes:
        _write(out, toml_text(findings, default_tz=tz), force=options["force"])
    ctx.exit(_PARTLY if findings.all_needs() else 0)


def _read(origin: str, file: str, form: Any) -> Findings:
    """Return what a file holds.

    Raises:
        UsageError: It cannot be read.
    """
    from timeball.importers.formats import read_findings
    from timeball.importers.found import Origin

    source = "stdin" if file == STDIN else file
    try:
        return read_findings(text_of(file), source=source, origin=Origin(origin), form=form)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def _tried(findings: Findings, tz: str) -> Findings:
    """Return the findings, with a need on each that `up` would refuse."""
    from timeball.cli.declaration import Asked, Reading
    from timeball.cli.declared_found import declare_findings
    from timeball.importers.found import Needs

    def tried(found: Found) -> Found:
        reading = Reading()
        alone = replace(findings, found=(replace(found, needs=(), holds=True),), needs=())
        declare_findings(reading, Path(findings.source), alone, Asked(tz=tz, dry_run=True))
        more = tuple(
            Needs(line=found.line, name=found.name, text=fault.reason) for fault in reading.faults
        )
        return replace(found, needs=(*found.needs, *more), holds=found.holds and not more)

    return replace(findings, found=tuple(map(tried, findings.found)))


def _show(findings: Findings, tz: str, *, as_json: bool) -> None:
    needs = findings.all_needs()
    if as_json:
        write_json(
            {
                "format": findings.origin,
                "default_tz": tz,
                "schedules": [_record(each, tz) for each in findings.found],
                "notes": findings.notes,
                "needs_you": [
                    {"line": each.line, "name": each.name, "text": each.text} for each in needs
                ],
            }
        )
        return
    if findings.found:
        rows = [_row(each, tz) for each in findings.found]
        write_table(("line", "name", "schedule", "zone", "runs", "options"), rows)
    for text, names in _notes(findings).items():
        write(f"note: {text}" + (f" [{', '.join(names)}]" if names else ""))
    for each in needs:
        name = f"{each.name}: " if each.name else ""
        write(f"needs you: {findings.source}:{each.line}: {name}{each.text}")


def _row(found: Found, tz: str) -> tuple[object, ...]:
    from timeball.importers.redaction import redacted_call

    does = redacted_call(found.runs)
    given = ", ".join(f"{name}={value}" for name, value in found.options.given().items())
    return (
        *(found.line, found.name, found.expression, found.tz or tz),
        does if len(does) <= _DOES_MAX else f"{does[: _DOES_MAX - 1]}…",
        given if found.holds else "left out",
    )


def _notes(findings: Findings) -> dict[str, list[str]]:
    """Return each note with the names that it is about; none where it is about the file."""
    notes: dict[str, list[str]] = {text: [] for text in findings.notes}
    for found in findings.found:
        for text in found.notes:
            notes.setdefault(text, []).append(found.name)
    return notes


def _record(found: Found, tz: str) -> dict[str, Any]:
    from timeball.importers.redaction import redacted_call

    return {
        "line": found.line,
        "name": found.name,
        "expression": found.expression,
        "tz": found.tz or tz,
        "does": redacted_call(found.runs),
        "options": found.options.given(),
        "notes": found.notes,
        "left_out": not found.holds,
    }


def _write(out: Path, text: str, *, force: bool) -> None:
    """Write a file that only its owner can read, for commands may hold secrets."""
    from timeball.core.redaction import holds_secret

    target = out.with_name(f".{out.name}.{os.getpid()}") if force else out
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(target, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        if force:
            target.replace(out)
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror}: name another file with --out") from error
    say(f"wrote {out}; look at it, then run it with: timeball up {out}")
    if holds_secret(text):
        say(f"{out} holds what looks like a secret, as its source does: only you can read it")
