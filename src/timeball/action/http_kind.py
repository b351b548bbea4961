"""`http`: one HTTP request as a job."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, Final, Unpack

from timeball.action.addresses import ALLOW_VARIABLE, Allowed
from timeball.action.context import Context
from timeball.action.failed import ActionFailed
from timeball.action.http_request import NAMES, HttpOptions, HttpRequest, plain_args
from timeball.action.job_call import JobCall
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.action.secret import Secret
from timeball.errors import UsageError

TIMEOUT_S: Final = 60.0
"""For all of one attempt, where neither the job nor its schedule says otherwise."""

_INSTALL: Final = "HTTP jobs need an extra: pip install 'timeball[http]'"


def usable() -> bool:
    """Return whether what HTTP jobs need is installed.

    Raises:
        UsageError: The worker's own allow list cannot be read.
    """
    Allowed.by_worker(os.environ.get(ALLOW_VARIABLE, ""))
    return find_spec("h11") is not None


async def _call(context: Context, **args: Any) -> dict[str, Any]:
    try:
        complaint = None if usable() else _INSTALL
    except UsageError as error:
        complaint = str(error)
    if complaint is not None:
        raise ActionFailed(complaint, error_type="HttpRefused", again=False)
    from timeball.action.http import request

    return await request(context, args)


KIND: Final = Kind(
    name="timeball.http",
    call=_call,
    parameters=Parameters(accepted=NAMES, required=frozenset({"method", "url"}), context="context"),
    is_async=True,
    timeout_s=TIMEOUT_S,
    check=HttpRequest.of,
    place=__name__,
)


def http(
    method: str,
    url: str | Secret,
    *,
    timeout_s: float | None = None,
    **options: Unpack[HttpOptions],
) -> JobCall:
    """Return one HTTP request as a job, for `submit` and `schedule`.

    The job succeeds with ``{"status", "headers", "body", "truncated"}``, where `body` is the
    beginning of the response as text. Any number of attempts send the same ``Idempotency-Key``,
    the job's uuid.

    Args:
        method: "GET", "POST", …
        url: ``http://`` or ``https://``, without user and password. A `Secret` where the address
            itself is one.
        timeout_s: Seconds for one attempt as a whole; 60 if nothing else is said.
        **options: `headers` (credentials as `Secret`); the content as `json` (any JSON value, in
            which a `Secret` may stand) or `body` (a text);
            `auth`, a `Secret` to be sent as bearer token or ``["user", Secret]``;
            `sign`, the `Secret` of a Standard Webhooks key, or during a rotation a list of them;
            `success`, the statuses that are one (["2xx"]);
            `retry_on`, those that are worth another attempt ([408, 425, 429, "5xx"]), with the
            wait of a Retry-After header, at most a day; all others fail for good;
            `expect`, JSON pointers and what has to be there, such as ``{"/status": "ok"}``;
            `allow`, hosts and networks: anything else is refused. Addresses that are not public,
            and ports other than 80, 443, 8080 and 8443, have to be in it, and the former in
            TIMEBALL_HTTP_ALLOW of the worker as well;
            `ca`, the text of a PEM file with the authorities to trust in place of the system's;
            `connect_s` (10) and `read_s` (30, for each wait); `capture_bytes` (16,384, at most
            40,000); `idempotency_header`, another name or None; `redirects`, how many are
            followed (0, at most 10), to other origins without headers, content and methods of the
            job's own; `traceparent`, to go on with a trace.

    Raises:
        UsageError: Something that can never work or is not safe, and what to write instead.
    """
    args = plain_args({"method": method, "url": url, **options})
    KIND.encode(args)
    return JobCall(
        kind=KIND, args=args, options={} if timeout_s is None else {"timeout_s": timeout_s}
    )
