"""One line of a crontab: a comment, a setting, a job, or none of these.

What is accepted is what Debian's cron and cronie accept (crontab(5)): blanks and tabs may lead any
line, a comment has a line of its own, a setting is `NAME = value` with optional quotes around
either side and without expansion of variables, and a job is five fields or a nickname followed by
everything else up to the line's end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FIELDS = 5
ZONE_SETTING = "CRON_TZ"
MAX_EXPRESSION_CHARS = 1_000
MAX_LINE_BYTES = 131_071  # what Linux lets one argument or variable of a new process hold
MAX_SHOWN_CHARS = 120

_BLANKS = re.compile(r"[ \t]+")
_UNESCAPED_PERCENT = re.compile(r"(?<!\\)%")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LIKE_A_JOB = re.compile(r"-?[0-9*@]")
_LIKE_A_ZONE_SETTING = re.compile(r"cron.?tz", re.IGNORECASE)
_SETTING = re.compile(
    r"""(?P<quote>["']?)(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)(?P=quote)[ \t]*=[ \t]*(?P<value>.*)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """`NAME = value`: in force from the next line on."""

    name: str
    value: str

    @property
    def text(self) -> str:
        """The line to show in a problem: without its value, which may be a password."""
        shown = self.value if self.name == ZONE_SETTING else "…"
        return harmless(f"{self.name}={shown}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A schedule and what stands after it (the command; the user before it, in the system form)."""

    expression: str
    rest: str
    quiet: bool  # cronie's leading "-": keep the command out of the system log
    text: str

    def split_user(self) -> tuple[str, str]:
        """Return the user and the command, if this is the system form; "" for what is missing."""
        user, *command = _BLANKS.split(self.rest, 1)
        return user, "".join(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A line that is nothing that cron knows, and what to write instead."""

    text: str
    reason: str
    hides_zone: bool  # it may have been meant to change the zone of the lines below it


def read_line(line: str) -> Setting | JobLine | Malformed | None:
    """Return what one line (without its line end) says; None for a blank line or a comment."""
    body = line.lstrip(" \t")
    if "\r" in line:
        return _malformed(body, "it holds a carriage return: save the file with Unix line ends")
    if not body or body.startswith("#"):
        return None
    if fault := _fault(body):
        return _malformed(body, fault)
    if match := _SETTING.fullmatch(body):
        return _setting(match["name"], match["value"], body)
    return _job(body)


def split_percent(text: str) -> tuple[str, bytes]:
    r"""Return the command and its standard input, by cron's rule for `%`.

    The first `%` ends the command, each further one is a newline, `\%` is a plain `%`, and any
    other backslash stays. Input that does not end in a newline gets one; no input stays empty.
    """
    command, *rest = (part.replace("\\%", "%") for part in _UNESCAPED_PERCENT.split(text))
    data = "\n".join(rest)
    if data and not data.endswith("\n"):
        data += "\n"
    return command, data.encode()


def harmless(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """Return `text` safe to print: one line, no terminal escapes, at most `limit` characters."""
    shown = "".join(_harmless_char(char) for char in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _harmless_char(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char == "\t" else ascii(char)[1:-1]


def _fault(body: str) -> str | None:
    """Return why no line may look like this, whatever it was meant to be."""
    if "\0" in body:
        return "it holds a NUL byte: save the file as UTF-8 text"
    if _SURROGATE.search(body):
        return "it is not UTF-8: save the file as UTF-8 text"
    if len(body.encode()) > MAX_LINE_BYTES:
        return f"it is longer than {MAX_LINE_BYTES} bytes: put the command into a script"
    return None


def _setting(name: str, value: str, body: str) -> Setting | Malformed:
    if name != ZONE_SETTING and _LIKE_A_ZONE_SETTING.fullmatch(name):
        # Cron would pass it to the commands and leave the schedules in another zone.
        return _malformed(body, f"write {ZONE_SETTING}, with an underscore and in capitals")
    if not value.startswith(('"', "'")):
        return Setting(name=name, value=value.rstrip(" \t"))
    inner, closing, after = value[1:].partition(value[0])
    if closing and not after.strip(" \t"):
        return Setting(name=name, value=inner)
    return _malformed(
        body,
        f'the quotes do not enclose the whole value: write {harmless(name, 40)}="value" '
        "and nothing after it, no comment either",
    )


def _job(body: str) -> JobLine | Malformed:
    quiet = body.startswith("-")
    line = body[1:].lstrip(" \t") if quiet else body
    fields = 1 if line.startswith("@") else FIELDS
    words = _BLANKS.split(line, fields)
    expression = " ".join(words[:fields])
    if "=" in expression:
        reason = "it is neither a setting nor a job: write NAME=value, or five fields and a command"
        return _malformed(body, reason)
    if len(expression) > MAX_EXPRESSION_CHARS:
        reason = f"its schedule is longer than {MAX_EXPRESSION_CHARS} characters: use fewer lists"
        return _malformed(body, reason)
    if len(words) <= fields or not words[fields]:
        return _malformed(body, _missing(words, fields))
    return JobLine(expression=expression, rest=words[fields], quiet=quiet, text=harmless(body))


def _missing(words: list[str], fields: int) -> str:
    given = len([word for word in words if word])
    if given < fields:
        return (
            f"it has {given} of the five fields of a schedule: write minute, hour, "
            "day of month, month, day of week and then the command"
        )
    return "no command stands after the schedule: write the command on the same line"


def _malformed(body: str, reason: str) -> Malformed:
    job_like = _LIKE_A_JOB.match(body) is not None
    head, equals, _ = body.partition("=")
    # What stands after "=" in a setting may be a password.
    masked = bool(equals) and (not job_like or len(_BLANKS.split(head, FIELDS)) <= FIELDS)
    return Malformed(
        text=harmless(f"{head}=…" if masked else body),
        reason=reason,
        hides_zone=(not job_like or "\r" in body) and bool(_LIKE_A_ZONE_SETTING.search(body)),
    )
