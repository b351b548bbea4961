"""The jobs of a crontab as kinds: each line is a kind of its own, whose command is fixed.

`up` reads the file once and hands what it found to its workers, so that a file edited
meanwhile cannot mean different things to different processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.registry import Registry
from timeball.importers.crontab import CrontabEntry

LOADER = f"{__name__}:load"
"""How a worker names `load`."""


def handed_over(entries: Iterable[CrontabEntry]) -> dict[str, Any]:
    """Return what `load` needs to know of a crontab's jobs, as JSON can hold it."""
    environments: list[dict[str, str]] = []
    lines = []
    for entry in entries:
        env = dict(entry.env)
        if env not in environments:  # nearly all lines share one
            environments.append(env)
        lines.append(
            {
                "name": entry.name,
                "line": entry.line,
                "command": entry.command,
                "stdin": entry.stdin.decode(),
                "shell": entry.shell,
                "user": entry.user,
                "env": environments.index(env),
            }
        )
    return {"environments": environments, "lines": lines}


def load(
    target: str, *, environments: Sequence[Mapping[str, str]], lines: Sequence[Mapping[str, Any]]
) -> Registry:
    """Return the kinds of a crontab from what `handed_over` gave.

    Args:
        target: The path of the file.
        environments: What the commands get; a line says which one by its number.
        lines: The jobs.
    """
    registry = Registry()
    for line in lines:
        command = _command(line, environments[line["env"]])
        registry.add(command_kind(line["name"], command, place=f"{target}:{line['line']}"))
    return registry


def _command(line: Mapping[str, Any], env: Mapping[str, str]) -> Command:
    user: str | None = line["user"]
    home = env.get("HOME", "")
    return Command(
        shell_text=line["command"],
        shell=line["shell"],
        env=dict(env),
        # Many accounts have a home that does not exist.
        cwd=home if home.startswith("/") and os.access(home, os.X_OK) else "/",
        stdin=line["stdin"].encode(),
        user=None if user == own_name() else user,
        no_new_privs=False,  # lines of crontabs use sudo, and have every right to
    )


def own_name() -> str:
    """Return the name of the user that this process runs as."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # an arbitrary number, as containers are given
        return str(os.geteuid())
