"""The commands of any file of schedules as kinds: each is a kind of its own, fixed by the file.

The kind's name ends in a digest of all that is run, so a worker that still has an older version
of the file never runs it in place of the new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.registry import Registry
from timeball.cli.crontab_kinds import own_name
from timeball.importers.crontab import DEFAULT_PATH, UserInfo
from timeball.importers.found import CommandCall

LOADER: Final = f"{__name__}:load"
"""How a worker names `load`."""

_STEM_BYTES: Final = 200
_DIGEST_CHARS: Final = 6


def command_facts(name: str, line: int, call: CommandCall, account: UserInfo) -> dict[str, Any]:
    """Return all that `load` needs to know of one command, as JSON can hold it.

    Args:
        name: Of its schedule.
        line: Where that stands.
        call: The command.
        account: Whose home and name it gets.

    Raises:
        UsageError: It can never run.
    """
    facts: dict[str, Any] = {
        "argv": list(call.argv),
        "shell_text": call.shell_text,
        "shell": call.shell,
        "cwd": call.cwd,
        "env": dict(call.env),
        "user": call.user,
        "stdin": call.stdin,
    }
    # Without the account, so that machines with the same file share its kinds.
    digest = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_DIGEST_CHARS]
    facts["env"] = {
        "PATH": DEFAULT_PATH,
        "HOME": account.home,
        "SHELL": call.shell,
        **call.env,
        **dict.fromkeys(("LOGNAME", "USER"), account.name),
    }
    _command(facts)
    stem = name.encode()[:_STEM_BYTES].decode(errors="ignore")
    return {"name": f"{stem}-{digest}", "line": line, **facts}


def load(target: str, *, commands: Sequence[Mapping[str, Any]]) -> Registry:
    """Return the kinds of a file from what `command_facts` gave.

    Args:
        target: The path of the file.
        commands: The facts of each command.
    """
    registry = Registry()
    for facts in commands:
        place = f"{target}:{facts['line']}"
        registry.add(command_kind(facts["name"], _command(facts), place=place))
    return registry


def _command(facts: Mapping[str, Any]) -> Command:
    home = facts["env"]["HOME"]
    # Many accounts have a home that does not exist.
    start = home if home.startswith("/") and os.access(home, os.X_OK) else "/"
    return Command(
        argv=tuple(facts["argv"]),
        shell_text=facts["shell_text"],
        shell=facts["shell"],
        env=dict(facts["env"]),
        cwd=facts["cwd"] or start,
        stdin=facts["stdin"].encode(),
        user=None if facts["user"] == own_name() else facts["user"],
        no_new_privs=False,  # the file is its owner's, like a crontab, whose lines use sudo
    )
