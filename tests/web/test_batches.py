"""Batches: what the API and the pages tell of them, and what they change."""

from __future__ import annotations

import re
from uuid import UUID, uuid4
from xml.etree import ElementTree as ET

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Browser
from tests.web.test_pages import seen

from timeball.client import Client
from timeball.core.batches import Member
from timeball.core.records import Settlement
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.web import graph
from timeball.web.pages import batches


def made(client: Client) -> UUID:
    """One job, and two that come after it."""
    with client.batch("nightly") as batch:
        first = batch.submit("extract")
        batch.submit_many("load", [{}, {}], after=[first])
    return batch.uuid


def carried_out(store: PostgresStore, *endings: Ending) -> None:
    worker = worker_of(store)
    for ending in endings:
        (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={})
        began = store.now().timestamp() - 1.0
        row = Settlement(turn.lane, turn.seq, turn.job_id, turn.turn, ending, began_at=began)
        store.settle(worker, [row._replace(ran_s=1.0)])


def test_a_batch_is_told_as_the_client_tells_it(client: Client, admin: Browser) -> None:
    batch = made(client)
    (line,) = admin.get("/api/v1/batches").json["batches"]
    assert (line["name"], line["members"], line["left"]) == ("nightly", 3, 3)
    found = admin.get(f"/api/v1/batches/{batch}").json
    assert (found["states"]["pending"], found["states"]["waiting"]) == (1, 2)
    assert admin.get(f"/api/v1/batches/{uuid4()}").status == 404
    assert admin.get("/api/v1/batches/x").status == 422


def test_a_batch_is_cancelled_and_tried_again_on_record(client: Client, admin: Browser) -> None:
    batch = made(client)
    path = f"/api/v1/batches/{batch}"
    assert admin.send("POST", f"{path}/cancel").json == {"answer": "cancelled"}
    assert client.get_batch(batch).state().state is State.CANCELLED
    assert admin.send("POST", f"{path}/retry").json == {"answer": "revived"}
    assert client.get_batch(batch).counts()[State.PENDING] == 1
    whats = [one["what"] for one in admin.get("/api/v1/operations").json["operations"]]
    assert whats == ["batch.retry", "batch.cancel"]


def test_the_page_of_a_batch_that_is_too_large_to_be_counted_says_so_and_acts_all_the_same(
    client: Client, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = made(client)
    monkeypatch.setattr(batches, "COUNTED_MAX", 2)
    text = admin.get(f"/batches/{batch}").text
    assert "3 jobs, 3 of which have not ended" in text
    assert f"timeball batch show {batch}" in text
    monkeypatch.setattr(batches, "COUNT_MAX", 3)
    text = admin.get(f"/batches/{batch}").text
    assert "3+ jobs, 3+ of which" in text
    assert f'action="/batches/{batch}/cancel"' in text
    assert (
        admin.form(f"/batches/{batch}/cancel").header("location")
        == f"/batches/{batch}?told=cancelled"
    )
    assert f'action="/batches/{batch}/retry"' in admin.get(f"/batches/{batch}").text
    job = client.submit("k")
    assert admin.get(f"/batches/{job.uuid}").status == 404


def test_its_page_shows_what_ran_and_what_comes_after_what(
    client: Client, store: PostgresStore, admin: Browser
) -> None:
    batch = made(client)
    assert "makespan" not in admin.get(f"/batches/{batch}").text
    carried_out(store, Ending.SUCCEEDED, Ending.SUCCEEDED, Ending.FAILED)
    text = admin.get(f"/batches/{batch}").text
    for chart in re.findall(r'<svg class="(?:wide gantt|dag)".*?</svg>(?=</div>)', text):
        ET.fromstring(chart)
    assert text.count('<rect class="bar s-') == 3
    assert text.count('<path class="edge"') == 2
    assert "lower bound" in text
    assert "Retry failed part" in text


def member(number: int, *parents: int) -> Member:
    from timeball.core.batches import MemberEdge
    from timeball.core.dependencies import Rule, RuledOut

    edges = tuple(MemberEdge(parent, Rule.ALL_SUCCESS, None) for parent in parents)
    return Member(
        id=number,
        uuid=UUID(int=number),
        kind="<k>",
        state=State.PENDING,
        turn=1,
        reason=None,
        ruled_out=RuledOut.SKIP,
        name="",
        edges=edges,
        attempts=(),
    )


def test_every_edge_of_a_graph_leads_to_the_right_and_no_two_jobs_are_on_one_place() -> None:
    members = [member(1), member(2), member(3, 1, 2), member(4, 3), member(5, 1, 4)]
    chart = str(graph.drawn(members, "/base"))
    ET.fromstring(chart)
    for x1, x2 in re.findall(r'd="M([\d.]+),.*? ([\d.]+),[\d.]+"', chart):
        assert float(x1) < float(x2)
    places = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', chart)
    assert len(set(places)) == len(members)
    assert chart.count("/base/jobs/") == len(members)


def test_a_graph_without_edges_or_too_large_is_left_to_the_table() -> None:
    assert graph.drawn([member(1), member(2)], "") is None
    assert graph.drawn([member(1), *(member(n, 1) for n in range(2, 100))], "") is None


def test_the_overview_names_the_last_batch_and_what_is_left_of_it(
    client: Client, admin: Browser
) -> None:
    assert "last batch" not in admin.get("/").text
    for name in ("first", "second"):
        with client.batch(name) as batch:
            batch.submit("k", queue=name)
            batch.submit("k", queue=name)
    said = " ".join("".join(seen(admin.get("/")).said).split())
    assert "last batch second waiting 2 left" in said
