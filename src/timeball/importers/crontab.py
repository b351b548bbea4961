"""A crontab as declarations: every job it holds, and everything in it that is wrong.

Nothing is run, looked up or opened here: text goes in, and what the file says comes out. All
problems are collected and none stops the reading; whether the good lines may run although others
are bad is the caller's decision.

The zone of a schedule is `default_tz` until a `CRON_TZ` line (cronie's rule: for the lines below
it; an empty value returns to the default). `TZ` does not move a schedule: it is given to the
command, like every other setting. Under a `CRON_TZ` that cannot be understood every job is a
problem, until the next good `CRON_TZ`: no job ever runs in a zone that its author did not mean.

The two forms cannot be told apart by their grammar (`mail`, `sync` and `backup` are commands and
users), so `auto` reads the system form, with its user column, only if

- the file's path or its first comment names `/etc/crontab` or `/etc/cron.d/`, or
- the word after the schedule is `root` on at least one line that goes on after it, and is shaped
  like a user's name on all lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal, assert_never

from timeball.core.cron import Cron, load_zone, parse
from timeball.errors import InvalidSchedule
from timeball.importers.crontab_line import (
    ZONE_SETTING,
    JobLine,
    Malformed,
    Setting,
    harmless,
    read_line,
    split_percent,
)
from timeball.importers.crontab_name import name_of

DEFAULT_PATH = "/usr/bin:/bin"
DEFAULT_SHELL = "/bin/sh"
MAX_JOBS = 5_000
MAX_SETTINGS = 256
MAX_REASON_CHARS = 400

_USER_SHAPE = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?")
_SYSTEM_PLACES = ("/etc/crontab", "/etc/cron.d/")
_BYTE_ORDER_MARK = "\ufeff"
_ACCOUNT_NAMES = ("LOGNAME", "USER")
# No command is called so; a shell would run the first file of its folder.
_SIXTH_FIELD = re.compile(r"[*?][*?/0-9,-]*(?:[ \t]|$)")
_ADDRESS = re.compile(r"@[^,\s]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    """An account, as the caller's user database knows it."""

    name: str
    home: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabEntry:
    """One job of a crontab, with everything in force on its line."""

    line: int  # 1-based
    name: str  # of the schedule and of its kind; see `crontab_name`
    expression: str
    cron: Cron
    tz: str
    tz_given: bool  # by a CRON_TZ above it; else it is the default
    user: str | None  # None in the user form
    command: str  # shell text, after the rule for %
    stdin: bytes
    shell: str
    env: Mapping[str, str]  # all of it; HOME is also where cron starts the command
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One line that cannot be used, and what to write instead."""

    line: int  # 1-based
    text: str  # safe to print; a setting's value is left out
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    """What a file declares. With problems, `entries` holds the good lines."""

    source: str
    form: Literal["user", "system"]
    entries: tuple[CrontabEntry, ...]
    problems: tuple[Problem, ...]


def read_crontab(
    text: str,
    *,
    source: str,
    form: Literal["auto", "user", "system"] = "auto",
    default_tz: str,
    known_user: Callable[[str], UserInfo | None],
    owner: UserInfo | None = None,
) -> Crontab:
    """Return every job of a crontab and every problem in it, each with its line number.

    Args:
        text: the file. Windows line ends, a byte order mark and a missing last newline are fine.
        source: its path, for the names of the jobs and to tell the form.
        form: whether a user column stands between schedule and command; see the module.
        default_tz: the zone of the lines that no `CRON_TZ` stands above.
        known_user: looks up the user column; asked once per name.
        owner: whose crontab a user form is. Without it HOME, LOGNAME and USER are left to
            whoever runs the commands.

    Raises:
        InvalidSchedule: `default_tz` is not a zone. What is wrong in the text never raises.
    """
    load_zone(default_tz)
    lines = [_Line.of(at, raw) for at, raw in enumerate(_split(text), start=1)]
    chosen = _form_of(source, lines) if form == "auto" else form
    lookup = known_user if chosen == "system" else None
    reading = _Reading(source, default_tz, known_user=lookup, owner=owner)
    for line in lines:
        if line.said is not None and len(reading.entries) + len(reading.problems) == MAX_JOBS:
            reading.refuse_the_rest(line.at, line.said)
            break
        reading.take(line)
    return Crontab(
        source=source,
        form=chosen,
        entries=tuple(reading.entries),
        problems=tuple(reading.problems),
    )


def _split(text: str) -> list[str]:
    # Not splitlines(): a form feed or U+2028 inside a command ends no line.
    return text.removeprefix(_BYTE_ORDER_MARK).split("\n")


@dataclass(frozen=True, slots=True)
class _Line:
    at: int
    raw: str
    said: Setting | JobLine | Malformed | None
    from_windows: bool

    @classmethod
    def of(cls, at: int, raw: str) -> _Line:
        body = raw.removesuffix("\r")
        return cls(at, body, read_line(body), body != raw)


def _form_of(source: str, lines: list[_Line]) -> Literal["user", "system"]:
    comments = (line.raw for line in lines if line.raw.lstrip(" \t").startswith("#"))
    if any(place in text for text in (source, next(comments, "")) for place in _SYSTEM_PLACES):
        return "system"
    jobs = [line.said for line in lines if isinstance(line.said, JobLine)]
    columns = [job.split_user() for job in jobs]
    root_works = any(user == "root" and command for user, command in columns)
    all_users = all(_USER_SHAPE.fullmatch(user) for user, _ in columns)
    return "system" if root_works and all_users else "user"


class _Reading:
    """The walk down the lines: what is in force, and what was found so far."""

    def __init__(
        self,
        source: str,
        default_tz: str,
        *,
        known_user: Callable[[str], UserInfo | None] | None,
        owner: UserInfo | None,
    ) -> None:
        self.entries: list[CrontabEntry] = []
        self.problems: list[Problem] = []
        self._source = source
        self._default_tz = default_tz
        self._tz = default_tz
        self._tz_given = False
        self._bad_zone_line = 0
        self._known_user = cache(known_user) if known_user else None
        self._owner = owner
        self._parse = cache(parse)
        self._settings: dict[str, str] = {}
        self._environments: dict[str, Mapping[str, str]] = {}
        self._uses = Counter[str]()

    def take(self, line: _Line) -> None:
        """Let one line take effect; what is wrong with it becomes a problem."""
        said = line.said
        if said is None:
            return
        try:
            match said:
                case Setting():
                    self._set(line.at, said)
                case JobLine():
                    self.entries.append(self._entry(line, said))
                case Malformed():
                    self._refuse(line.at, said)
                case _:
                    assert_never(said)
        except InvalidSchedule as error:
            reason = harmless(str(error), MAX_REASON_CHARS)
            self.problems.append(Problem(line=line.at, text=said.text, reason=reason))

    def refuse_the_rest(self, at: int, said: Setting | JobLine | Malformed) -> None:
        """Say that nothing from this line on was read."""
        reason = f"{MAX_JOBS:,} jobs stand above it, and from here on nothing was read: split it"
        self.problems.append(Problem(line=at, text=said.text, reason=reason))

    def _set(self, at: int, setting: Setting) -> None:
        if setting.name == ZONE_SETTING:
            self._set_zone(at, setting.value)
        if setting.name not in self._settings and len(self._settings) == MAX_SETTINGS:
            raise InvalidSchedule(
                f"{MAX_SETTINGS} other settings stand above it: move some into the commands"
            )
        self._settings[setting.name] = setting.value
        self._environments.clear()

    def _set_zone(self, at: int, value: str) -> None:
        self._bad_zone_line = at
        tz = value or self._default_tz
        try:
            load_zone(tz)
        except InvalidSchedule as error:
            hint = "; a comment needs a line of its own" if "#" in value else ""
            raise InvalidSchedule(
                f"{error}{hint}; the jobs below it, up to the next CRON_TZ, are left out"
            ) from error
        self._tz, self._tz_given, self._bad_zone_line = tz, bool(value), 0

    def _refuse(self, at: int, bad: Malformed) -> None:
        if bad.hides_zone:
            self._bad_zone_line = at
        raise InvalidSchedule(bad.reason)

    def _entry(self, line: _Line, job: JobLine) -> CrontabEntry:
        cron = self._parse(job.expression)
        account, shell_text = self._account_and_command(job)
        command, stdin = split_percent(shell_text)
        if not command.strip():
            raise InvalidSchedule("no command stands before the %: write \\% for a plain %")
        if _SIXTH_FIELD.match(command):
            raise InvalidSchedule(
                "a sixth field stands before the command: a crontab has five, without seconds"
            )
        if self._bad_zone_line:
            raise InvalidSchedule(
                f"its zone is not known: put the CRON_TZ in line {self._bad_zone_line} right"
            )
        user = account.name if self._known_user and account else None
        env = self._environment(account)
        identity = (job.expression, self._tz, command, user or "", stdin.decode())
        return CrontabEntry(
            line=line.at,
            name=self._unique(name_of(self._source, command, identity)),
            expression=job.expression,
            cron=cron,
            tz=self._tz,
            tz_given=self._tz_given,
            user=user,
            command=command,
            stdin=stdin,
            shell=env["SHELL"],
            env=env,
            notes=tuple(self._notes(line, job)),
        )

    def _account_and_command(self, job: JobLine) -> tuple[UserInfo | None, str]:
        if self._known_user is None:
            return self._owner, job.rest
        user, command = job.split_user()
        account = self._known_user(user)
        if account is None:
            raise InvalidSchedule(
                f"there is no user {harmless(user, 40)} here: create it, write another one before "
                "the command, or, if this file has no user column, read it as a user's crontab"
            )
        if not command:
            raise InvalidSchedule(
                f"no command stands after the user {harmless(user, 40)}: write it on the same line"
            )
        return account, command

    def _environment(self, account: UserInfo | None) -> Mapping[str, str]:
        """Return what a command of `account` gets here; one snapshot for all jobs it fits."""
        key = account.name if account else ""
        if key not in self._environments:
            env = {"PATH": DEFAULT_PATH, **self._settings}
            env["SHELL"] = env.get("SHELL") or DEFAULT_SHELL
            for name in _ACCOUNT_NAMES:
                env.pop(name, None)
            if account:
                env = {"HOME": account.home, **env, **dict.fromkeys(_ACCOUNT_NAMES, account.name)}
            self._environments[key] = MappingProxyType(env)
        return self._environments[key]

    def _unique(self, name: str) -> str:
        self._uses[name] += 1
        return name if self._uses[name] == 1 else f"{name}-{self._uses[name]}"

    def _notes(self, line: _Line, job: JobLine) -> Iterator[str]:
        if mail_to := self._settings.get("MAILTO"):
            address = harmless(_ADDRESS.sub("@…", mail_to), 60)
            yield f"MAILTO={address}: output is kept with the job instead of mailed"
        if self._settings.get("TZ", self._tz) != self._tz:
            yield "TZ is given to the command only: the schedule follows CRON_TZ"
        if any(name in self._settings for name in _ACCOUNT_NAMES):
            yield "LOGNAME and USER cannot be set: the command gets its account's own name"
        if "$" in self._settings.get("PATH", ""):
            yield "PATH holds a $, which stays as it is: cron expands no variables in settings"
        if job.quiet:
            yield "the leading - asks cron for silence in the system log: it has no effect here"
        if line.from_windows:
            yield "the line ended the Windows way: the carriage return was left out"
