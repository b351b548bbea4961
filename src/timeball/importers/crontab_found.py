"""A crontab in the words of all importers: locks, folders, logs and comments understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from timeball.core.redaction import redacted
from timeball.importers.crontab import (
    DEFAULT_PATH,
    CrontabEntry,
    UserInfo,
    read_crontab,
)
from timeball.importers.crontab_line import ZONE_SETTING
from timeball.importers.found import CommandCall, Findings, Found, Needs, Options, Origin

_LOCK = re.compile(
    r"(?:/usr)?(?:/bin/)?\bflock((?:[ \t]+-[\w-]+(?:[ \t=]+[0-9.]+)?){0,8})"
    r"[ \t]+([^\s;|&-]\S{0,255})"
)
_GIVES_UP: Final = frozenset({"-n", "--nb", "--nonblock"})
_FOLDER = re.compile(r"cd[ \t]+(?:--[ \t]+)?(/[\w./+@-]{0,1024})[ \t]*&&[ \t]*(?=\S)")
_LOG = re.compile(
    r"[ \t]*(?:&>>?[ \t]*([\w./+@-]{1,1024})|1?>>?[ \t]*([\w./+@-]{1,1024})[ \t]+2>&1)[ \t]*"
)
_LOG_START = re.compile(r"[ \t](?:&>|1?>)")
_NOT_OWN: Final = ("SHELL", ZONE_SETTING, "HOME", "LOGNAME", "USER")


class Lock(NamedTuple):
    """What `flock` holds while a command runs."""

    path: str
    gives_up: bool
    """Where the lock is taken: the command does not wait, and does not run."""


class Plain(NamedTuple):
    """A command without what Timeball does itself."""

    command: str
    cwd: str | None
    log: str | None


def crontab_findings(
    text: str,
    *,
    source: str,
    form: Literal["auto", "user", "system"] = "auto",
    default_tz: str = "UTC",
) -> Findings:
    """Return what a crontab holds; its users need not exist here.

    Args:
        text: The file.
        source: Its path, for the names and to tell the form.
        form: Whether it has a user column; see `timeball.importers.crontab`.
        default_tz: Only to read it by; what no `CRON_TZ` stands above has no zone here.
    """
    read = read_crontab(text, source=source, form=form, default_tz=default_tz, known_user=_any_user)
    lines = text.removeprefix("\ufeff").split("\n")
    needs = [
        Needs(line=each.line, name="", text=redacted(f"{each.text} — {each.reason}"))
        for each in read.problems
    ]
    return Findings(
        origin=Origin.CRONTAB,
        source=source,
        found=tuple(_found(entry, lines) for entry in read.entries),
        needs=tuple(needs),
    )


def lock_of(command: str) -> Lock | None:
    """Return the lock of a command that `flock` guards."""
    found = _LOCK.match(command.lstrip(" \t"))
    if found is None:
        return None
    return Lock(found[2].strip("\"'"), not _GIVES_UP.isdisjoint(found[1].split()))


def plain(command: str) -> Plain:
    """Return a command without `cd FOLDER &&` before it and without its log behind it.

    Both only where that changes nothing else: a `cd` before what runs also if it fails stays, and
    so does a redirection of the output alone, which may be data.
    """
    cwd = log = None
    folder = _FOLDER.match(command)
    if folder and not re.search(r"\|\||[;\n]", command):
        cwd, command = folder[1], command[folder.end() :]
    *_, start = [None, *_LOG_START.finditer(command)]
    if start and (target := _LOG.fullmatch(command, start.start())):
        path = target[1] or target[2]
        if ">>" in target[0] or "log" in path:  # else it may be data
            log, command = path, command[: start.start()].rstrip(" \t")
    return Plain(command, cwd, log)


def _any_user(name: str) -> UserInfo:
    return UserInfo(name=name, home="")


def _found(entry: CrontabEntry, lines: list[str]) -> Found:
    lock = lock_of(entry.command)
    said = plain(entry.command)
    call = CommandCall(
        shell_text=said.command,
        shell=entry.shell,
        cwd=said.cwd,
        env=_own_settings(entry.env),
        user=entry.user,
        stdin=entry.stdin.decode(),
    )
    return Found(
        line=entry.line,
        name=entry.name,
        expression=entry.expression,
        tz=entry.tz if entry.tz_given else None,
        runs=call,
        options=Options(max_retries=0, overlap_runs="skip" if lock and lock.gives_up else None),
        text=redacted(lines[entry.line - 1].strip()),
        comment=_comment_above(lines, entry.line),
        guard=f"flock {lock.path}" if lock else None,
        key=lock.path if lock else None,
        defaulted=frozenset(() if entry.tz_given else (ZONE_SETTING,)),
        notes=(*entry.notes, *_notes(said, lock)),
    )


def _own_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return what the file itself sets; the account's part is for whoever runs it to know."""
    own = {name: value for name, value in env.items() if name not in _NOT_OWN}
    if own.get("PATH") == DEFAULT_PATH:
        del own["PATH"]
    if env.get("HOME"):
        own["HOME"] = env["HOME"]
    return own


def _notes(said: Plain, lock: Lock | None) -> Iterator[str]:
    if said.log:
        yield f"its output is kept with the job instead of in {said.log}"
    if lock and lock.gives_up:
        yield "flock stays in the command; a run that falls due during the one before is skipped"


def _comment_above(lines: list[str], line: int) -> str:
    """Return the block of comments that ends directly above a line."""
    said: list[str] = []
    for above in reversed(lines[: line - 1]):
        text = above.strip()
        if not text.startswith("#"):
            break
        said.append(text.lstrip("# \t"))
    return redacted("\n".join(reversed(said)))
