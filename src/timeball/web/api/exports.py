"""Jobs as files: CSV that no spreadsheet takes for formulas, and a JSON object a line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.responses import StreamingResponse

from timeball.core.records import Job
from timeball.core.states import State
from timeball.web.api.jobs import Text, job_out, page_of
from timeball.web.api.models import NUMBER_MAX
from timeball.web.desk import Desk, desk_of, sees_payload
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

ROWS_MAX: Final = 100_000
"""Jobs of one file; `before` asks for those after the last of them."""

CSV: Final = "text/csv"
JSONL: Final = "application/x-ndjson"
_PAGE: Final = 50
_COLUMNS: Final = (
    *("id", "uuid", "kind", "queue", "priority", "state", "reason", "key", "attempts"),
    *("failures", "crashes", "max_retries", "created_at", "run_at", "began_at", "ended_at"),
    *("worker", "error_type"),
)
_PAYLOAD: Final = ("error", "args", "result")
_SIGNS: Final = "=+@\uff1d\uff0b\uff0d\uff20-"
_FORMULA: Final = re.compile(
    rf"""\A(?=[\t\r\n])|(?:\A|(?<=[;\t\r\n]))(?=["' \v\f\xa0]*[{_SIGNS}])"""
)
"""Before what spreadsheets take for a formula, wide signs included.

To one that expects ; between cells the quotes around a cell mean nothing: a cell begins after any ;
and on any new line of a text.
"""

routes = Routes("jobs")
Before = Annotated[int | None, Query(ge=0, le=NUMBER_MAX)]


@routes.get("/api/v1/export.csv", Scope.READ, gives=CSV)
def export_csv(
    request: Request,
    state: State | None = None,
    queue: Text = None,
    kind: Text = None,
    before: Before = None,
) -> Response:
    """Give jobs as CSV, newest first, at most 100,000."""
    return _file(request, _csv, CSV, state=state, queue=queue, kind=kind, before_id=before)


@routes.get("/api/v1/export.jsonl", Scope.READ, gives=JSONL)
def export_jsonl(
    request: Request,
    state: State | None = None,
    queue: Text = None,
    kind: Text = None,
    before: Before = None,
) -> Response:
    """Give jobs as JSON, one a line, newest first, at most 100,000."""
    return _file(request, _jsonl, JSONL, state=state, queue=queue, kind=kind, before_id=before)


def cell(value: Any) -> str:
    """Return a value as a cell that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return _FORMULA.sub("'", text)


def _file(
    request: Request, write: Callable[..., Iterator[str]], form: str, **only: Any
) -> Response:
    # The first page is read before the answer begins: later nobody could be told that it failed.
    pages = _pages(desk_of(request), only)
    first = next(pages)
    text = write(chain([first], pages), payload=sees_payload(request))
    name = "jobs.csv" if form == CSV else "jobs.jsonl"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(text, headers=headers, media_type=form)


def _pages(desk: Desk, only: dict[str, Any]) -> Iterator[list[Job]]:
    """Yield pages up to the bound; between them no connection is held, however slow the reader."""
    before, rows = only.pop("before_id"), 0
    while rows < ROWS_MAX:
        page, before = page_of(desk, only, limit=min(_PAGE, ROWS_MAX - rows), before_id=before)
        rows += len(page)
        yield page
        if before is None:
            return


def _csv(pages: Iterator[list[Job]], *, payload: bool) -> Iterator[str]:
    columns = (*_COLUMNS, *(_PAYLOAD if payload else ()))
    lines = io.StringIO()
    table = csv.writer(lines)
    table.writerow(columns)
    for page in pages:
        table.writerows(_row(job, columns, payload=payload) for job in page)
        yield lines.getvalue()
        lines.seek(0)
        lines.truncate()


def _row(job: Job, columns: Sequence[str], *, payload: bool) -> list[str]:
    facts = job_out(job, payload=payload).model_dump(mode="json")
    for name in ("args", "result"):
        if facts[name] is not None:
            facts[name] = json.dumps(facts[name], ensure_ascii=False)
    return [cell(facts[name]) for name in columns]


def _jsonl(pages: Iterator[list[Job]], *, payload: bool) -> Iterator[str]:
    for page in pages:
        rows = (job_out(job, payload=payload).model_dump(mode="json") for job in page)
        yield "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
