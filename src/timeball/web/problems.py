"""Errors as clients see them: problem details of RFC 9457, without a traceback or any SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import Response

from timeball.errors import (
    JobError,
    JobNotFound,
    QueueFull,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    TimeballError,
    UsageError,
)

MEDIA_TYPE: Final = "application/problem+json"
_SHOWN_MAX: Final = 20
_TEXT_MAX: Final = 500

TITLES: Final = MappingProxyType(
    {
        400: "Bad request",
        401: "A token is needed",
        403: "Not allowed",
        404: "Not found",
        405: "Method not allowed",
        408: "The request took too long",
        409: "Conflict",
        410: "Gone",
        413: "Too large",
        415: "Unsupported media type",
        421: "Unknown host",
        422: "Not understood",
        429: "The queue is full",
        500: "Internal error",
        503: "Unavailable",
    }
)

_FULL: Final = 429
_CANCELED: Final = "57014"
"""What PostgreSQL calls a statement that took longer than it may."""

_DENIED: Final = "42501"
"""What PostgreSQL calls a lack of privilege; its words name tables."""

_STATUSES: Final = (
    (JobNotFound, 404),
    (ScheduleNotFound, 404),
    (JobError, 409),
    (QueueFull, _FULL),
    (UsageError, 400),
)
"""The first that fits is the answer to an error of ours."""


class ProblemDetail(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="forbid")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[str] | None = None


class Problem(HTTPException):
    """Ends a request with an answer that says what is wrong."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))


def problem_response(problem: Problem, errors: list[str] | None = None) -> Response:
    """Return the answer that tells of a problem."""
    body = ProblemDetail(
        title=TITLES.get(problem.status_code, "Error"),
        status=problem.status_code,
        detail=problem.detail[:_TEXT_MAX],
        errors=errors,
    )
    text = json.dumps(body.model_dump(exclude_none=True))
    return Response(text, problem.status_code, problem.headers, MEDIA_TYPE)


def problem_of(error: Exception) -> Problem:
    """Return what a client is told of an error."""
    match error:
        case Problem():
            return error
        case AnyHTTPException():
            return Problem(error.status_code, str(error.detail), headers=error.headers)
        case StoreUnavailable():
            # The driver's own words may hold SQL, and where the database is.
            text = "the database does not answer"
            if _sqlstate(error) == _CANCELED:
                text = (
                    "this takes the database longer than 2 seconds: ask for less, such as one state"
                )
            return Problem(503, text, headers={"Retry-After": "2"})
    if unfit := _unfit(error):
        return Problem(503, unfit)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
    if status is None:
        return Problem(500, "this is a defect of Timeball: its log says more")
    return Problem(status, str(error), headers={"Retry-After": "5"} if status == _FULL else None)


def _unfit(error: Exception) -> str:
    """Return what its operator has to mend of the database; empty if it is not that."""
    if isinstance(error, SchemaMismatch):
        return "the database's schema is missing, or not of this version: see `timeball doctor`"
    if isinstance(error, UsageError) and _sqlstate(error) == _DENIED:
        return "the database does not let the dashboard's user do this: see `timeball db roles`"
    return ""


def _sqlstate(error: Exception) -> str | None:
    """Return what PostgreSQL called it, if it was PostgreSQL."""
    return getattr(error.__cause__, "sqlstate", None)


def answer_with_problems(app: FastAPI, page: Callable[[Request, Exception], Response]) -> None:
    """Let an application answer with problems to all errors that are no defect.

    Args:
        app: The application.
        page: Returns the page that tells a person of an error.
    """

    def told(request: Request, error: Exception) -> Response:
        if wants_page(request):
            return page(request, error)
        return problem_response(problem_of(error))

    def misunderstood(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        texts = [_where(each) for each in error.errors()[:_SHOWN_MAX]]
        return problem_response(Problem(422, "see errors"), texts)

    for kind in (TimeballError, AnyHTTPException):
        app.add_exception_handler(kind, told)
    app.add_exception_handler(RequestValidationError, misunderstood)


def wants_page(request: Request) -> bool:
    """Return whether a person's browser asks, for a page."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and "/api/" not in request.url.path


def said_of_fields(error: ValidationError) -> str:
    """Return what is wrong with the fields of a form; what was written is not repeated."""
    return "; ".join(_where(each) for each in error.errors()[:_SHOWN_MAX])


def _where(error: Mapping[str, Any]) -> str:
    """Return what is wrong with one field; what was written is not repeated."""
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}"[:_TEXT_MAX]
