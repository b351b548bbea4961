"""Dependencies: what comes after what around one job or batch, drawn and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from timeball.core.batches import Member, parents_first, with_spawners
from timeball.store.postgres.surroundings import NODES_MAX, surroundings
from timeball.web import graph
from timeball.web.api.jobs import Which
from timeball.web.desk import desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.shell import base_of, rendered

routes = Routes()
_LATEST: Final = 12
_TEXT_MAX: Final = 64
_ENDS_MAX: Final = 8
"""Parents and children of a row that are named one by one."""


class End(NamedTuple):
    """The other end of an edge."""

    job: Member
    rule: str


class Row(NamedTuple):
    """One job of the table, with those that it comes after and those that come after it."""

    job: Member
    parents: Sequence[End]
    children: Sequence[End]


@routes.get("/dependencies", Scope.READ)
def show_where_to_begin(request: Request) -> Response:
    """Show the latest batches, each of which leads to what comes after what around it."""
    asked = request.query_params.get("job", "").strip().removeprefix("#")[:_TEXT_MAX]
    if asked:
        found = desk_of(request).find(asked)
        return RedirectResponse(f"{base_of(request)}/dependencies/{found.uuid}", 303)
    look = desk_of(request).look
    return rendered(
        request,
        "dependencies",
        title="Dependencies",
        here="dependencies",
        batches=look.batches(limit=_LATEST),
        now=look.store.now(),
    )


@routes.get("/dependencies/{job}", Scope.READ)
def show_dependencies(request: Request, job: Which) -> Response:
    """Show what comes after what around one job or batch."""
    desk = desk_of(request)
    found = desk.find(job)
    around = surroundings(desk.look_connections.run, found.id)
    here = next((one for one in around.members if one.id == found.id), None)
    name = here.name if here and here.is_batch else found.kind
    return rendered(
        request,
        "dependency",
        title=f"Around {name or 'batch'} #{found.id}",
        here="dependencies",
        job=found,
        name=name or "batch",
        is_batch=here is not None and here.is_batch,
        around=around,
        drawn=graph.drawn(around.members, base_of(request), most=NODES_MAX, here=found.id),
        rows=rows_of(around.members),
        ends_max=_ENDS_MAX,
    )


def rows_of(members: Sequence[Member]) -> list[Row]:
    """Return the graph as a table: a row for each job, parents before their children."""
    members = with_spawners(members)
    found = {member.id: member for member in members}
    children: defaultdict[int, list[End]] = defaultdict(list)
    for member in members:
        for edge in member.edges:
            children[edge.parent].append(End(member, edge.words))
    return [
        Row(
            member,
            [End(found[edge.parent], edge.words) for edge in member.edges if edge.parent in found],
            children[member.id],
        )
        for member in parents_first(found)
    ]
