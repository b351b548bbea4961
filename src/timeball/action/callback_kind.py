"""`callback`: a job that waits for a call from outside, and the address that is to be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NoReturn, Protocol
from uuid import UUID

from timeball.action.callback_address import shown_address
from timeball.action.job_call import JobCall
from timeball.action.kind import NAME_MAX, Kind
from timeball.action.parameters import Parameters
from timeball.action.secret import Secret
from timeball.chance import now
from timeball.core.callbacks import CALLBACK
from timeball.core.retry import WAIT_LIMIT_S
from timeball.errors import UsageError

SIGNERS_MAX: Final = 4


class _Submitted(Protocol):
    @property
    def uuid(self) -> UUID: ...


def usable() -> bool:
    """Return whether a worker carries callbacks out; none ever does."""
    return False


def _call(**_: Any) -> NoReturn:
    raise AssertionError("nobody runs a callback")


def signers(args: Mapping[str, Any]) -> list[Secret]:
    """Return the keys one of which must have signed the call, from a callback's arguments.

    Raises:
        UsageError: They are none.
    """
    given = args.get("signed_by") or []
    keys = [given] if isinstance(given, Secret) else given
    if not (isinstance(keys, list) and all(isinstance(key, Secret) for key in keys)):
        raise UsageError('signed_by: write Secret("env:KEY"), or a list of them')
    if len(keys) > SIGNERS_MAX:
        raise UsageError(f"signed_by holds {len(keys)} keys: write {SIGNERS_MAX} at most")
    return keys


def _check(args: Mapping[str, Any]) -> None:
    name = args.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= NAME_MAX:
        raise UsageError("a callback has a name: write in a few words what is waited for")
    signers(args)


KIND: Final = Kind(
    name=CALLBACK,
    call=_call,
    parameters=Parameters(accepted=frozenset({"name", "signed_by"}), required=frozenset({"name"})),
    check=_check,
    place=__name__,
)


def callback(name: str, *, within_s: float, signed_by: Secret | Sequence[Secret] = ()) -> JobCall:
    """Return a job that waits for one call to its address, for `submit` and `spawn`.

    No worker runs it. It succeeds with the JSON that the call brings as its result, in the
    commit of the call; what comes after it starts then. If no call has come in time it is
    skipped, with the reason "expired".

    Args:
        name: What is waited for, for people.
        within_s: Seconds from now on in which the call has to come. The option `expires_at` of the
            submit wins.
        signed_by: The keys, as `Secret`, one of which must have signed the call by Standard
            Webhooks as well: for who calls and signs what he sends. `timeball serve` looks them up.

    Raises:
        UsageError: Something that can never work, and what to write instead.
    """
    if isinstance(within_s, bool) or not 0 < within_s <= WAIT_LIMIT_S:
        raise UsageError(f"within_s is {within_s!r}: write seconds, above 0 and at most ten years")
    keys = [signed_by] if isinstance(signed_by, Secret) else list(signed_by)
    args: dict[str, Any] = {"name": name} | ({"signed_by": keys} if keys else {})
    KIND.encode(args)
    options = {"expires_at": now() + timedelta(seconds=within_s)}
    return JobCall(kind=KIND, args=args, options=options)


def callback_url(base: str, job: UUID | _Submitted) -> Secret:
    """Return the address that is to be called, as a secret that workers can look up.

    Pass it on in a job's arguments, such as the `json` of `http`: only a reference is stored. Its
    `reveal()` gives the address itself, where the key of callbacks is.

    Args:
        base: Where `timeball serve` is reached from outside, such as ``https://jobs.example``.
        job: The callback: what `submit` has returned, or its uuid.

    Raises:
        UsageError: `base` is no address.
    """
    return Secret(f"callback:{shown_address(base, job if isinstance(job, UUID) else job.uuid)}")
