"""What this server was told, and by whom; of secrets only that they are there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from timeball.core.redaction import HIDDEN, redacted
from timeball.store.postgres.connections import shown

PREFIX: Final = "TIMEBALL_"
SECRET: Final = "TIMEBALL_SECRET_"  # noqa: S105 - the beginning of names, no secret
TITLE: Final = "timeball"
"""What an instance is called that nobody has given another name."""

UNREAD: Final = "nothing reads it: is it misspelt?"

VARIABLES: Final[Mapping[str, str]] = {
    "DATABASE_URL": "the database, where TIMEBALL_DSN names none",
    "TIMEBALL_DSN": "the database, where no --dsn names one",
    "TIMEBALL_LISTEN_DSN": "the server itself, where the database is behind a pooling proxy",
    "TIMEBALL_HOME": "folder of the embedded PostgreSQL",
    "TIMEBALL_POSTGRES_BIN": "folder of the programs of the embedded PostgreSQL",
    "TIMEBALL_SEAL": "entry point that encrypts what jobs are given",
    "TIMEBALL_SECRETS": "folder of the files of secrets",
    "TIMEBALL_HTTP_ALLOW": "of a worker: private addresses that HTTP jobs may reach",
    "TIMEBALL_COMMAND_ALLOW": "of a worker: programs that commands may be",
    "TIMEBALL_COMMAND_USERS": "of a worker: users as whom commands may run",
    "TIMEBALL_METRICS": "of up and worker: where the pages for monitoring are",
    "TIMEBALL_WEB": "of up: where the dashboard is",
    "TIMEBALL_RESULTS": "folder of runs of certify",
    "TIMEBALL_LOG_FORMAT": "of up and worker: text or json",
    "TIMEBALL_DEBUG": "whether the command line shows where an error came from",
}
"""What each variable of the environment is about."""

_ADDRESSES: Final = frozenset({"DATABASE_URL", "TIMEBALL_DSN", "TIMEBALL_LISTEN_DSN"})


class Origin(StrEnum):
    """Who has said what a setting is."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    COMMAND = "command line"
    PROGRAM = "program"  # which mounts the application, or serves it


class Setting(NamedTuple):
    """One setting."""

    name: str
    value: str | None
    """As people may read it; None: it is not set."""

    origin: Origin
    about: str = ""


class Settings:
    """What this server was told.

    Args:
        given: By who has made the application.
        hosts: Names under which it may be asked for.
    """

    def __init__(self, given: Iterable[Setting], hosts: Iterable[str]) -> None:
        self.given = tuple(given)
        self.hosts = tuple(sorted(hosts))

    def tell(self, given: Iterable[Setting]) -> None:
        """Say instead what a command was told that has made the application."""
        self.given = tuple(given)


def of_program(**given: Any) -> list[Setting]:
    """Return the settings of `create_app`: what is empty, or the usual title, is a default."""
    return [
        Setting(f"{name}=", text, Origin.DEFAULT if text in {None, TITLE} else Origin.PROGRAM)
        for name, text in ((name, text_of(value)) for name, value in given.items())
    ]


def of_environment() -> list[Setting]:
    """Return what the environment says, and what it could say."""
    known = {name: os.environ.get(name) for name in VARIABLES}
    others = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    return [
        Setting(
            name,
            _told(name, text) if text else None,
            Origin.ENVIRONMENT if text else Origin.DEFAULT,
            _about(name),
        )
        for name, text in (known | dict(sorted(others.items()))).items()
    ]


def text_of(value: Any) -> str | None:
    """Return a value as people may read it; None where it is none, or empty."""
    if isinstance(value, list | tuple | set | frozenset):
        return redacted(", ".join(str(each) for each in value)) or None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else redacted(str(value)) or None


def _told(name: str, text: str) -> str:
    if name in _ADDRESSES:
        return shown(text)
    # A name that nobody knows may be a secret's with a slip in it.
    return redacted(text) if name in VARIABLES else HIDDEN


def _about(name: str) -> str:
    if name.startswith(SECRET):
        return f"a secret: env:{name.removeprefix(SECRET)}"
    return VARIABLES.get(name, UNREAD)
