"""`timeball callback`: jobs that wait for a call from outside."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import write
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from uuid import UUID

_KEY_BYTES: Final = 32

_AT: Final = "Where others reach timeball serve, such as https://jobs.example"


@click.group()
def command() -> None:
    """Have jobs wait for a call from outside: add a callback, and tell whom to call where.

    What it is waiting for, and what was said, is seen by `timeball jobs show ID`; what is to follow
    is submitted with --after ID.
    """


@command.command("key")
def key() -> None:
    """Print a new key, for TIMEBALL_SECRET_CALLBACK of workers and of timeball serve.

    To replace one, put the new one before the old one, with a space between, until the callbacks of
    the old one have ended.
    """
    from secrets import token_bytes

    from timeball.action.webhook import PREFIX

    write(PREFIX + b64encode(token_bytes(_KEY_BYTES)).decode())


@command.command("add")
@click.argument("name")
@click.option(
    "--within", metavar="DURATION", required=True, help="In which the call has to come, such as 2h."
)
@click.option("--at", "base", metavar="URL", help=_AT)
@click.option("--signed-by", multiple=True, metavar="SECRET", help="Who calls signs, by this key.")
@click.option("--uuid", type=click.UUID, help="Adding the same one again adds nothing.")
@dsn_option
def add(
    *,
    name: str,
    within: str,
    base: str | None,
    signed_by: tuple[str, ...],
    uuid: UUID | None,
    dsn: str | None,
) -> None:
    """Add a callback, and print its id.

    With --at a second line says how the arguments of a job name its address: by a reference, which
    is no secret, and in whose place the worker puts the address.
    """
    from timeball import Secret, callback, callback_url
    from timeball.action.secret import KEY
    from timeball.chance import new_uuid
    from timeball.cli.times import seconds

    uuid = uuid or new_uuid()
    signers = [Secret(each) for each in signed_by]
    call = callback(name, within_s=seconds(within), signed_by=signers)
    lines = [str(uuid)]
    if base is not None:
        lines.append(json.dumps({KEY: callback_url(base, uuid).reference}))
    with opened(dsn) as client:
        client.submit(call, uuid=uuid)
    write("\n".join(lines))


@command.command("url")
@click.argument("callback_id", metavar="ID")
@click.option("--at", "base", metavar="URL", required=True, help=_AT)
@dsn_option
def url(*, callback_id: str, base: str, dsn: str | None) -> None:
    """Print the address that is to be called. Whoever knows it can call: it is a secret.

    ID: a uuid, the beginning of one, or a number.
    """
    from timeball import callback_url
    from timeball.action.secret import SecretUnavailable
    from timeball.cli.job_search import find
    from timeball.core.callbacks import CALLBACK

    with opened(dsn) as client:
        found = find(client, callback_id)
    if found.kind != CALLBACK:
        raise UsageError(f"job {found.uuid} is a {found.kind}: name a callback")
    try:
        write(callback_url(base, found).reveal())
    except SecretUnavailable as error:
        raise UsageError(str(error)) from None
