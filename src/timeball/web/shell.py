"""What all pages have in common: templates, navigation, who is there, and how to answer."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from timeball import __version__
from timeball.core.cron import Zone
from timeball.core.redaction import redacted
from timeball.web import wording
from timeball.web.addresses import segment
from timeball.web.desk import caller_of, desk_of
from timeball.web.gate import Caller, Proof
from timeball.web.problems import TITLES, Problem, problem_of
from timeball.web.scopes import Scope
from timeball.web.search import word
from timeball.web.zones import choice_of

THEMES: Final = ("system", "light", "dark")
THEME_COOKIE: Final = "timeball_theme"
_FIELDS_MAX: Final = 1_100
_LEVEL: Final = 5
"""Of compression: more takes much longer and saves little."""

_TOLD: Final = {
    "cancelled": "Cancelled: it never starts.",
    "requested": "It runs: asked to stop, and no new attempt follows.",
    "revived": "Started again.",
    "deleted": "Deleted.",
    "paused": "Paused: nothing starts there.",
    "was_paused": "It was paused before.",
    "resumed": "Resumed.",
    "was_not_paused": "It was not paused.",
    "active": "Resumed: it fires again.",
    "submitted": "Added one job.",
    "added": "Added: it waits for them too.",
    "declared": "Declared: it fires as shown.",
    "moved": "Moved: it waits there.",
    "snoozed": "Put off: it does not start before then.",
    "closed": "Closed: it ends with the last of its jobs.",
    "was_closed": "It was closed before.",
    "backfilled": "What had not run was added.",
    "removed": "Removed: it fires no more.",
    "set": "From now on.",
    "lifted": "Lifted: it limits nothing more.",
    "refused": "Refused: the job is not in a state that allows it. Nothing was changed.",
    "nothing": "There was nothing to start again.",
    "some": "Some were refused, for their state, or are gone; the others were changed.",
    "all": "All of them were changed.",
    "none": "Nothing was ticked.",
    "matched": "Done: the record says what became of them.",
    "some_left": "A part was changed; some are left.",
    "started": "Started: it plays on databases of its own.",
}
"""What pages say after a change: a link can say nothing else."""


class Entry(NamedTuple):
    """One entry of the navigation."""

    path: str
    title: str
    icon: str
    key: str
    """Pressed after g."""

    scope: Scope = Scope.READ


NAVIGATION: Final = (
    Entry("", "Overview", "overview", "o"),
    Entry("jobs", "Jobs", "jobs", "j"),
    Entry("batches", "Batches", "batches", "b"),
    Entry("dependencies", "Dependencies", "dependencies", "d"),
    Entry("queues", "Queues", "queues", "q"),
    Entry("schedules", "Schedules", "schedules", "s"),
    Entry("workers", "Workers", "workers", "w"),
    Entry("limits", "Limits", "limits", "l"),
    Entry("doctor", "Doctor", "doctor", "c", Scope.OPERATE),
    Entry("certify", "Certify", "certify", "y", Scope.OPERATE),
    Entry("record", "Record", "record", "r", Scope.ADMIN),
    Entry("settings", "Settings", "settings", "t", Scope.ADMIN),
)


def rendered(request: Request, template: str, *, status: int = 200, **facts: Any) -> Response:
    """Return a page.

    Args:
        request: What asks for it.
        template: Its name, without ``.html``.
        status: Of the answer.
        **facts: What the template shows; `here` is the entry of the navigation that it is of,
            `own_zone` the name of the zone of the schedule that it is about.
    """
    caller = getattr(request.state, "caller", None)
    desk, own_zone = desk_of(request), facts.pop("own_zone", None)
    choice = choice_of(request, own_zone)
    theme = request.cookies.get(THEME_COOKIE, "")
    text = (
        _environment()
        .get_template(f"{template}.html")
        .render(
            base=base_of(request),
            instance=desk.title,
            version=__version__,
            entries=[entry for entry in NAVIGATION if caller and caller.may(entry.scope)],
            caller=caller or Caller("nobody", frozenset(), "", Proof.NONE),
            Scope=Scope,
            theme=theme if theme in THEMES else "system",
            told=_TOLD.get(request.query_params.get("told", "")),
            asset=_asset,
            own_zone=own_zone,
            choice=choice,
            zone=choice.zone,
            page=_address(request),
            **{"here": None, "query": "", **facts},
        )
    )
    return packed(request, text.encode(), "text/html; charset=utf-8", status=status)


def packed(request: Request, body: bytes, media_type: str, *, status: int = 200) -> Response:
    """Return an answer that is compressed for who takes it: a table of a hundred rows is light.

    What a page shows of others' secrets beside words of who asks cannot be guessed by its length
    from another site: none can ask with a session, whose cookie is of this site only.
    """
    headers = {"vary": "accept-encoding"}
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, _LEVEL, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(body, status, headers, media_type)


def _takes_gzip(accepted: str) -> bool:
    for each in accepted.lower().split(","):
        name, _, quality = each.replace(" ", "").partition(";q=")
        if name == "gzip":
            return not quality or bool(quality.strip("0."))
    return False


def base_of(request: Request) -> str:
    """Return what comes before every path: the proxy's part, and that of who mounts this."""
    root = request.scope.get("root_path", "")
    return desk_of(request).base_path + quote(root)


def back(request: Request, path: str, told: str = "") -> Response:
    """Return to a page after a change, which says what became of it."""
    mark = "&" if "?" in path else "?"
    query = f"{mark}{urlencode({'told': told})}" if told else ""
    return RedirectResponse(f"{base_of(request)}{path}{query}", 303)


async def fields_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form.

    Raises:
        Problem: It is none, or has too many.
    """
    try:
        text = (await request.body()).decode()
        return parse_qs(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise Problem(400, "this is no form, or one with too many fields") from None


def changing(
    path: str, change: Callable[[Request, dict[str, list[str]]], str], name: str
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler of forms: it makes a change, and goes back to a page that says so.

    Args:
        path: Of the page, with the names of the route's parameters in braces.
        change: Makes the change; returns what to say of it, a key of what pages can say. A conflict
            that it raises is told as refused.
        name: Of the handler.
    """

    async def handler(request: Request) -> Response:
        fields = await fields_of(request)
        try:
            told = await run_in_threadpool(change, request, fields)
        except Problem as problem:
            if problem.status_code != 409:  # noqa: PLR2004 - of RFC 9110
                raise
            told = "refused"
        names = {each: quote(value, safe="") for each, value in request.path_params.items()}
        return back(request, path.format(**names), told)

    handler.__name__, handler.__doc__ = name, "Make a change, and say what became of it."
    return handler


def trouble(request: Request, error: Exception) -> Response:
    """Return the page that tells a person of an error."""
    problem = problem_of(error)
    return rendered(
        request,
        "trouble",
        status=problem.status_code,
        title=TITLES.get(problem.status_code, "Error"),
        detail=problem.detail,
    )


def may(request: Request, scope: Scope) -> bool:
    """Return whether who asks may do something."""
    return caller_of(request).may(scope)


def _address(request: Request) -> str:
    """Return where a page is, to come back to it after a change of what it looks like."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{desk_of(request).base_path}{request.url.path}{query}"


@pass_context
def _instant(context: Context, at: datetime | None, now: datetime | None = None) -> Markup:
    return wording.instant(at, now, _told_in(context))


@pass_context
def _clock(context: Context, at: datetime) -> str:
    return wording.clock(at, _told_in(context))


def _told_in(context: Context) -> Zone | None:
    zone = context["zone"]
    return None if zone.name == "UTC" else zone


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("timeball.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=wording.number,
        duration=wording.duration,
        instant=_instant,
        clock=_clock,
        pretty=wording.pretty,
        flat=wording.flat,
        hidden=redacted,
        word=word,
        segment=segment,
    )
    environment.globals.update(may_happen=wording.may, step=wording.step)
    return environment


def asset_bytes(name: str) -> bytes | None:
    """Return a file that pages need; None where there is none of that name."""
    return _assets().get(name)


@cache
def _assets() -> dict[str, bytes]:
    # All at once: a cache by name would keep every name that a stranger thinks of.
    return {each.name: each.read_bytes() for each in (files(__package__) / "static").iterdir()}


@cache
def _asset(name: str) -> str:
    """Return the address of such a file, another one whenever it changes."""
    content = asset_bytes(name)
    assert content is not None, name
    return f"static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"
