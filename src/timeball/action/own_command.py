"""`command`: one command as a job, for workers that allow its program.

Whoever may submit jobs could run anything with it. So a worker takes such jobs only where its
environment names the programs that they may run, in TIMEBALL_COMMAND_ALLOW: whole paths with
colons between them. As whom they may run, TIMEBALL_COMMAND_USERS says in the same form. A command
that the program itself fixes is a kind of its own, and needs no such permission: see
`timeball.action.command_kind`.
"""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

from timeball.action.command import Command
from timeball.action.command_kind import ExitCodes, attempt
from timeball.action.context import Context
from timeball.action.failed import ActionFailed
from timeball.action.job_call import JobCall
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.action.secret import Secret, SecretUnavailable, revealed
from timeball.chance import new_uuid
from timeball.core.outcomes import Outcome
from timeball.core.redaction import holds_secret
from timeball.errors import UsageError

ALLOW_VARIABLE: Final = "TIMEBALL_COMMAND_ALLOW"
USERS_VARIABLE: Final = "TIMEBALL_COMMAND_USERS"
TIMEOUT_S: Final = 3600.0
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Variables by which a loader, a shell or an interpreter is made to run something else.
_STEERING: Final = re.compile(
    r"LD_.*|DYLD_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|_?JAVA_.*|GIT_.*|BASH_.*|ENV|IFS|PATH|SHELLOPTS"
    r"|PS4|PROMPT_COMMAND|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|TIMEBALL_.*"
    r"|(CVS|RSYNC)_RSH|SSH_.*|SUDO_ASKPASS|TAR_OPTIONS|LESS(OPEN|CLOSE)|(MAN)?PAGER|EDITOR|VISUAL"
)


class CommandOptions(TypedDict, total=False):
    """What `command` takes besides the words; see there."""

    env: Mapping[str, str | Secret]
    stdin: str | Secret
    cwd: str
    user: str
    limits: Mapping[str, int]
    success: Sequence[int]
    for_good: Sequence[int]


def usable() -> bool:
    """Return whether this worker allows any program.

    Raises:
        UsageError: What it allows is not written as whole paths, or as users of this machine.
    """
    for user in _users():
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise UsageError(
                f"{USERS_VARIABLE} holds {user[:80]!r}, who is no user of this machine: write "
                "names with colons between them"
            ) from None
    return bool(_allowed())


def _listed(variable: str) -> list[str]:
    return [each for each in os.environ.get(variable, "").split(":") if each]


def _users() -> list[str]:
    """Return as whom jobs may run here; the first is meant where a job names nobody."""
    return _listed(USERS_VARIABLE)


def _allowed() -> list[str]:
    paths = _listed(ALLOW_VARIABLE)
    for path in paths:
        if not path.startswith("/"):
            raise UsageError(
                f"{ALLOW_VARIABLE} holds {path[:80]!r}: write whole paths with colons between "
                "them, such as /usr/local/bin/backup"
            )
    return paths


def _check(args: Mapping[str, Any]) -> None:
    """Raise `UsageError` if the arguments of a job can never work."""
    argv, env = args.get("argv"), args.get("env", {})
    if isinstance(argv, str) or not isinstance(argv, Sequence) or not argv:
        raise UsageError("argv is a list of the program and its arguments: ['/bin/ls', '-l']")
    if not (isinstance(argv[0], str) and argv[0].startswith("/")):
        raise UsageError(f"the program is {argv[0]!r}: write its whole path, such as /bin/ls")
    _check_environment(env)
    stdin = args.get("stdin", "")
    if not isinstance(stdin, str | Secret):
        raise UsageError(f"stdin is a {type(stdin).__name__}: write a text, or a Secret")
    if not isinstance(args.get("limits", {}), Mapping):
        raise UsageError('limits is no table: write limits={"cpu_s": 60}')
    _command(args, {name: str(value) for name, value in env.items()}, str(stdin), own="/")
    _codes(args)


def _user(args: Mapping[str, Any]) -> str | None:
    """Return as whom to run the command; None: as whom the worker runs.

    Raises:
        UsageError: The worker does not allow it.
    """
    users, asked = _users(), args.get("user")
    if asked is None:
        return users[0] if users else None
    if asked not in users:
        raise UsageError(
            f"this worker runs nothing as {asked}: name the user in {USERS_VARIABLE} where it runs"
        )
    return str(asked)


def _check_environment(env: Any) -> None:
    if not isinstance(env, Mapping):
        raise UsageError('env is no table: write env={"NAME": "value"}')
    for name, value in env.items():
        fits = isinstance(name, str) and _NAME.fullmatch(name)
        if not fits or _STEERING.fullmatch(name):
            raise UsageError(f"env holds {str(name)[:80]!r}: a job may not set that")
        if not isinstance(value, str | Secret):
            raise UsageError(f"env: {name} is a {type(value).__name__}: write a text, or a Secret")
        if isinstance(value, str) and holds_secret(f"{name}={value}"):
            raise UsageError(f'env: {name} would be stored: pass Secret("env:NAME")')


def _check_allowed(program: str) -> None:
    if program not in _allowed():
        raise UsageError(
            f"this worker does not allow {program}: name it in {ALLOW_VARIABLE} where it runs"
        )


def _own_folder(args: Mapping[str, Any]) -> str:
    """Return which folder is to be made for an attempt, where the job names none."""
    if args.get("cwd") is not None:
        return "/"
    return f"{tempfile.gettempdir()}/timeball-{new_uuid().hex}"


def _command(args: Mapping[str, Any], env: Mapping[str, str], stdin: str, *, own: str) -> Command:
    given = args.get("cwd")
    return Command(
        argv=tuple(args["argv"]),
        env={"PATH": _PATH, **({"TMPDIR": own} if given is None else {}), **env},
        cwd=own if given is None else given,
        own_cwd=given is None,
        user=args.get("user"),
        stdin=stdin.encode(errors="surrogateescape"),
        no_new_privs=True,
        limits=dict(args.get("limits", {})),
    )


def _codes(args: Mapping[str, Any]) -> ExitCodes:
    found = {"success": args.get("success", (0,)), "for_good": args.get("for_good", ())}
    for name, codes in found.items():
        if isinstance(codes, str) or not isinstance(codes, Iterable):
            raise UsageError(f"{name} is {codes!r}: write a list of exit codes")
    return ExitCodes(**{name: frozenset(codes) for name, codes in found.items()})


def _call(context: Context, **args: Any) -> Outcome:
    try:
        _check(args)
        _check_allowed(args["argv"][0])
        env, stdin = revealed(args.get("env", {})), revealed(args.get("stdin", ""))
        command = _command(args, env, stdin, own=_own_folder(args))
        command = replace(command, user=_user(args))
    except (UsageError, SecretUnavailable, FileNotFoundError) as error:
        again = not isinstance(error, UsageError)
        raise ActionFailed(str(error), error_type="CommandRefused", again=again) from None
    return attempt(command, context, _codes(args))


KIND: Final = Kind(
    name="timeball.command",
    call=_call,
    parameters=Parameters(
        accepted=frozenset({"argv"} | CommandOptions.__optional_keys__),
        required=frozenset({"argv"}),
        context="context",
    ),
    timeout_s=TIMEOUT_S,
    runner="thread",
    check=_check,
    place=__name__,
)


def command(
    argv: Sequence[str], *, timeout_s: float | None = None, **options: Unpack[CommandOptions]
) -> JobCall:
    """Return one command as a job, for the `submit` and `schedule` of a client.

    Only workers take it whose TIMEBALL_COMMAND_ALLOW names its program. There is no shell, the
    environment is what `env` says and a PATH, set-user-id programs gain nothing, and whatever it
    starts ends with it. The job succeeds with ``{"exit_code", "output"}``.

    Each attempt has a working folder of its own, which nobody else can read, TMPDIR names, and
    which is removed with all that is in it when the command has ended.

    Args:
        argv: The whole path of the program, and its arguments.
        timeout_s: Seconds for one attempt; an hour if nothing else is said.
        **options: `env`, whose values may be a `Secret`; `stdin`, a text or a `Secret`; `cwd`,
            the whole path of another working folder, which stays; `user`, one of those in
            TIMEBALL_COMMAND_USERS of the worker, whose first is taken else; `limits`, see
            `timeball.action.command_limits`; `success`, the exit codes that are one ([0]);
            `for_good`, those of failures that are not tried again.

    Raises:
        UsageError: Something that can never work or is not safe, and what to write instead.
    """
    args: dict[str, Any] = {"argv": argv, **options}
    KIND.encode(args)
    return JobCall(
        kind=KIND, args=args, options={} if timeout_s is None else {"timeout_s": timeout_s}
    )
