"""Secrets by reference: a job stores where a value is kept, and its worker looks it up.

Of the places that a reference may name, only those hold anything that whoever runs the worker has
put there for jobs, because whoever submits a job may ask for any reference:

- ``env:NAME`` is the variable ``TIMEBALL_SECRET_NAME`` of the worker's environment,
- ``file:NAME`` is the file of that name in the folder that ``TIMEBALL_SECRETS`` names, else
  ``/run/secrets``; one line end behind the value is taken off,
- ``callback:ADDRESS`` is the address of a callback with the proof that belongs to it; see
  `timeball.action.callback_kind`,
- any other provider is what the program has given to `Secret.provider`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from timeball.action.callback_address import proof
from timeball.action.webhook import key_of
from timeball.errors import UsageError
from timeball.observe.concealment import conceal

KEY: Final = "$secret"
"""The one name in the JSON object that stands for a secret among a job's arguments."""

VALUE_MIN: Final = 4
"""Characters of a value; anything shorter could not be concealed without spoiling other text."""

VALUE_MAX: Final = 64 * 1024
_REFERENCE: Final = re.compile(r"([a-z][a-z0-9_-]{0,31}):((?!//)[!#-\[\]-~]{1,256})")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_FILE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")
_DEFAULT_FOLDER: Final = "/run/secrets"

Fetch = Callable[[str], str]
F = TypeVar("F", bound=Fetch)


class SecretUnavailable(Exception):
    """The worker has no value for a reference; the text says where to put it."""


class Secret(msgspec.Struct, frozen=True):
    """The reference of a secret value, as an argument of a job: ``Secret("env:STRIPE_KEY")``.

    Only the reference is stored and shown. A job's function receives this object and calls
    `reveal`; the HTTP, command and SQL actions do that by themselves. From then on the value is
    left out of the errors, results and log lines of the worker.

    Args:
        reference: ``provider:name``, see `timeball.action.secret`.

    Raises:
        UsageError: It has another form.
    """

    reference: str = msgspec.field(name=KEY)

    def __post_init__(self) -> None:
        reference = self.reference
        if not (isinstance(reference, str) and _REFERENCE.fullmatch(reference)):
            # What is written here by mistake is the value itself, so it is not repeated.
            raise UsageError('a secret is given by its reference: write Secret("env:NAME")')

    def __str__(self) -> str:
        return f"[secret {self.reference}]"

    def reveal(self) -> str:
        """Return the value, looked up now.

        Raises:
            SecretUnavailable: There is none here, or none that can be used.
        """
        provider, _, name = self.reference.partition(":")
        fetch = _PROVIDERS.get(provider)
        if fetch is None:
            raise SecretUnavailable(
                f"no provider {provider!r} is known here: register it with Secret.provider"
            )
        value = fetch(name)
        if not (isinstance(value, str) and VALUE_MIN <= len(value) <= VALUE_MAX):
            raise SecretUnavailable(
                f"the value of {self.reference} is not a text of {VALUE_MIN} to {VALUE_MAX:,} "
                "characters: store another one"
            )
        conceal(value, self.reference)
        return value

    @staticmethod
    def provider(name: str) -> Callable[[F], F]:
        """Return a decorator that makes a function the source of the secrets ``name:…``.

        The function is given what follows the colon and returns the value. It is called in the
        worker, once for each attempt that needs it.

        Raises:
            UsageError: The name is taken, or no word of small letters.
        """
        if not _REFERENCE.fullmatch(f"{name}:x"):
            raise UsageError(f"provider {name!r}: write a word of small letters, such as 'vault'")
        if name in _OWN:
            raise UsageError(f"provider {name!r} is Timeball's own: use another word")

        def register(fetch: F) -> F:
            _PROVIDERS[name] = fetch
            return fetch

        return register


def _from_environment(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise SecretUnavailable(f"env:{name} names no variable: write letters, digits and _")
    value = os.environ.get(f"TIMEBALL_SECRET_{name}")
    if value is None:
        raise SecretUnavailable(
            f"env:{name} is not here: set TIMEBALL_SECRET_{name} for the worker"
        )
    return value


def _from_file(name: str) -> str:
    if not _FILE.fullmatch(name):
        raise SecretUnavailable(f"file:{name} names no file: write its name without a folder")
    path = Path(os.environ.get("TIMEBALL_SECRETS") or _DEFAULT_FOLDER) / name
    try:
        with path.open(encoding="utf-8", newline="") as file:
            value = file.read(VALUE_MAX + 3)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SecretUnavailable(
            f"file:{name} cannot be read: {why}: put it into {path.parent}, or have "
            "TIMEBALL_SECRETS name the folder"
        ) from None
    return value.removesuffix("\n").removesuffix("\r")


def callback_keys() -> list[str]:
    """Return the keys of callbacks: the one by which addresses are made, and older ones.

    Raises:
        SecretUnavailable: There is none here, or one of them is no key.
    """
    name = "env:CALLBACK" if "TIMEBALL_SECRET_CALLBACK" in os.environ else "file:CALLBACK"
    try:
        keys = Secret(name).reveal().split()
        for key in keys:
            key_of(key)
    except SecretUnavailable:
        raise SecretUnavailable(
            "the key of callbacks is not here: set TIMEBALL_SECRET_CALLBACK, the same for "
            "workers, `timeball serve` and whoever makes addresses; `timeball callback key` makes "
            "one"
        ) from None
    except ValueError as error:
        raise SecretUnavailable(f"{name}: {error}; `timeball callback key` makes one") from None
    for key in keys:
        conceal(key, name)
    return keys


def _of_callback(address: str) -> str:
    try:
        callback = UUID(address.rpartition("/")[2])
    except ValueError:
        raise SecretUnavailable(
            "callback: does not end in the uuid of one: write what tb.callback_url returns"
        ) from None
    made = proof(callback_keys()[0], callback)
    conceal(made, f"callback:{address}")  # also where an answer repeats only a part of it
    return f"{address}/{made}"


_PROVIDERS: Final[dict[str, Fetch]] = {
    "env": _from_environment,
    "file": _from_file,
    "callback": _of_callback,
}
_OWN: Final = tuple(_PROVIDERS)


def referring(value: Any) -> Any:
    """Return a decoded argument with a `Secret` in place of each object that stands for one.

    Raises:
        UsageError: Such an object holds no reference.
    """
    match value:
        case dict() if value.keys() == {KEY}:
            return Secret(value[KEY])
        case dict():
            return {key: referring(inner) for key, inner in value.items()}
        case list():
            return [referring(inner) for inner in value]
        case _:
            return value


def revealed(value: Any) -> Any:
    """Return a value with what each `Secret` in it refers to.

    Raises:
        SecretUnavailable: One of them is not here.
    """
    match value:
        case Secret():
            return value.reveal()
        case Mapping():
            return {key: revealed(inner) for key, inner in value.items()}
        case list() | tuple():
            return [revealed(inner) for inner in value]
        case _:
            return value
