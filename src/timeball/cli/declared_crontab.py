"""The lines of a crontab as schedules of `up`, each with a kind of its own."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from timeball.cli.crontab_kinds import LOADER, handed_over, own_name
from timeball.cli.declaration import Asked, Declared, Fault, Reading
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.redaction import redacted
from timeball.errors import InvalidSchedule
from timeball.importers.crontab import CrontabEntry, UserInfo, read_crontab
from timeball.importers.crontab_found import lock_of
from timeball.worker.child import Load


def declare_crontab(reading: Reading, path: Path, text: str, asked: Asked) -> None:
    """Add the jobs of a crontab."""
    source = str(path.resolve())
    found = read_crontab(
        text,
        source=source,
        form=asked.form,
        default_tz=asked.tz,
        known_user=known_user,
        owner=owner(),
    )
    reading.faults += [
        Fault(str(path), each.line, redacted(each.text), each.reason) for each in found.problems
    ]
    reading.sources.append(f"file:{source}")
    reading.add(_line(entry, path, f"file:{source}") for entry in found.entries)
    reading.loads.append(Load(target=source, loader=LOADER, options=handed_over(found.entries)))


def _line(entry: CrontabEntry, path: Path, source: str) -> Declared:
    lock = lock_of(entry.command)
    spec = schedule_spec(
        entry.name,
        entry.name,
        cron=entry.expression,
        tz=entry.tz,
        source=source,
        max_retries=0,  # cron never tries a command again
        overlap_runs="skip" if lock and lock.gives_up else None,
    )
    as_user = f" (as {entry.user})" if entry.user else ""
    return Declared(
        spec=spec,
        table=agenda_of(spec),
        place=f"{path}:{entry.line}",
        does=redacted(entry.command) + as_user,
        notes=entry.notes,
    )


def known_user(name: str) -> UserInfo | None:
    """Return an account of this machine that commands may run as; None where there is none.

    Raises:
        InvalidSchedule: Only root can run commands as that user.
    """
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    if os.geteuid() != 0 and name != own_name():
        raise InvalidSchedule(
            f"only root can run commands as {name}: start timeball as root, or move the line to "
            f"a crontab of {name}'s own"
        )
    return UserInfo(name=name, home=found.pw_dir)


def owner() -> UserInfo:
    """Return the account that this process runs as."""
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        home = os.environ.get("HOME", "/")
    return UserInfo(name=own_name(), home=home)
