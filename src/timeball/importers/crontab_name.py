"""The name of a crontab's job: one that stays the same when lines are moved or added."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePath

_STEM_CHARS = 40
_WORD_CHARS = 32
_DIGEST_CHARS = 6
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_SEPARATORS = re.compile(r"&&|\|\||[;|&(){}\n]")
_SUFFIX = re.compile(r"\.(?:sh|bash|py|pl|rb|php|js|jar|exe)$")
_UNTELLING = re.compile(r"-.*|[0-9][0-9.]*[smhd]?|[A-Za-z_][A-Za-z0-9_]*=.*|[0-9]*[<>].*")
# Commands that only prepare the one that follows them in the line.
_PREPARATIONS = frozenset({".", "[", "cd", "export", "set", "source", "test", "umask"})
# Commands that run the one that is their argument.
_WRAPPERS = frozenset(
    {"chronic", "env", "exec", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo"}
    | {"systemd-cat", "time", "timeout"}
    | {"bash", "dash", "node", "perl", "php", "python", "python3", "ruby", "sh", "zsh"}
)


def name_of(source: str, command: str, identity: tuple[str, ...]) -> str:
    """Return `<file>:<telling word>-<digest of the identity>`.

    Args:
        source: the file's path; only its name without the extension counts.
        command: the shell text, of which the most telling word is shown.
        identity: what makes this job another job when it changes. The line's number and the
            environment are not in it, so a job keeps its name, and with it its history, when
            the lines around it change.
    """
    digest = sha256(json.dumps(identity).encode()).hexdigest()[:_DIGEST_CHARS]
    stem = _slug(PurePath(source).stem, _STEM_CHARS) or "crontab"
    return f"{stem}:{telling_word(command)}-{digest}"


def telling_word(command: str) -> str:
    """Return the word that says most about a command: `cd /srv && ./load.sh -v` is `load`."""
    plain = command.replace('"', " ").replace("'", " ")
    fallback = ""
    for part in _SEPARATORS.split(plain):
        words = part.split()
        for word in _candidates(words):
            slug = _slug(_SUFFIX.sub("", PurePath(word).name), _WORD_CHARS)
            if slug and word not in _PREPARATIONS:
                return slug
            fallback = fallback or slug
            break
    return fallback or _slug(plain, _WORD_CHARS) or "job"


def _candidates(words: list[str]) -> Iterator[str]:
    """Give the words of one simple command that may name it: wrappers and options left out."""
    lock_file_next = False
    for word in words:
        if _UNTELLING.fullmatch(word):
            continue
        name = PurePath(word).name
        if lock_file_next:
            lock_file_next = False
        elif name in _WRAPPERS:
            lock_file_next = name == "flock"
        else:
            yield word


def _slug(text: str, limit: int) -> str:
    return _NOT_SLUG.sub("-", text.lower()).strip("-")[:limit].strip("-")
