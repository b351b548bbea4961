"""Calls from outside, for which jobs wait."""

from __future__ import annotations

import logging
from typing import Annotated, Final
from uuid import UUID

from fastapi import Path, Request, Response
from starlette.concurrency import run_in_threadpool

from timeball.action.callback_kind import signers
from timeball.action.secret import SecretUnavailable, referring
from timeball.action.webhook import SignatureInvalid, verify
from timeball.chance import now
from timeball.core.callbacks import CALLBACK, CallAnswer
from timeball.core.payload import RESULT_MAX, encode_said
from timeball.core.records import Job
from timeball.errors import JobNotFound, UsageError
from timeball.web.api.models import Answered, answer
from timeball.web.desk import Desk, desk_of
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

_log = logging.getLogger(__name__)
routes = Routes("callbacks")

_PROBLEMS: Final = {
    CallAnswer.OTHERWISE: (409, "another call came first and said something else; that stays"),
    CallAnswer.CANCELLED: (409, "nobody waits for this call any more: it was cancelled"),
    CallAnswer.EXPIRED: (410, "it is too late: what waited for this call has gone on without it"),
    CallAnswer.NOT_FOUND: (404, "there is no such callback any more"),
}


@routes.post(
    "/api/v1/callbacks/{callback}/{proof}",
    Scope.CALLBACK,
    gives=Answered,
    also=(404, 408, 409, 410, 413),
)
async def call_back(
    request: Request, callback: UUID, _: Annotated[str, Path(alias="proof")]
) -> Response:
    """End a callback with the JSON of the body (waiting -> succeeded)."""
    desk, body = desk_of(request), await request.body()
    if len(body) > RESULT_MAX:
        raise Problem(413, f"a call may say {RESULT_MAX:,} bytes: say where the rest is")
    await run_in_threadpool(_check_signature, desk, callback, request, body)
    said = encode_said(await request.json()) if body.strip() else None
    try:
        given = await run_in_threadpool(desk.client.store.call_back, callback, said)
    except UsageError as error:  # a mistake of ours, such as a seal: who calls is to try again
        _log.error("a call cannot be kept: %s", error)
        raise Problem(503, "the call cannot be kept here: call again") from None
    if given in _PROBLEMS:
        raise Problem(*_PROBLEMS[given])
    return answer(Answered(answer=given))


def _check_signature(desk: Desk, callback: UUID, request: Request, body: bytes) -> None:
    """Refuse what has no signature by a key that the callback names, if it names any.

    Raises:
        Problem: It has none, or the keys are not here.
        JobNotFound: There is no such callback.
    """
    args = referring(_waiting(desk, callback).args)
    if "name" not in args:  # sealed, and not for us to open: who has to sign is in there
        raise Problem(503, "what this callback asks for cannot be read here: see TIMEBALL_SEAL")
    try:
        keys = [key.reveal() for key in signers(args)]
        if keys:
            verify(keys, request.headers, body, now_s=now().timestamp())
    except SignatureInvalid as error:
        raise Problem(403, f"the signature of the call is not valid: {error}") from None
    except (SecretUnavailable, ValueError):
        raise Problem(503, "the key of who signs this call is not here: see signed_by") from None


def _waiting(desk: Desk, callback: UUID) -> Job:
    found = desk.look.get(callback)
    if found.kind != CALLBACK:
        raise JobNotFound(callback)
    return found
