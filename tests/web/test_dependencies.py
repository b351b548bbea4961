"""Dependencies: the graph around a job or a batch, drawn and as a table."""

from __future__ import annotations

import re
from contextlib import closing
from uuid import UUID
from xml.etree import ElementTree as ET

import psycopg
from tests.store.postgres.plans import Explained, seed
from tests.web.asgi import Browser
from tests.web.test_batches import carried_out, member

from timeball.client import Client
from timeball.core.batches import MemberEdge
from timeball.core.dependencies import Rule
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.surroundings import FOUND_MAX, NODES_MAX, surroundings
from timeball.web import graph
from timeball.web.pages.dependencies import rows_of


def ids(store: PostgresStore, job_id: int) -> list[int]:
    return [each.id for each in surroundings(store.connections.run, job_id).members]


def test_all_that_is_connected_is_found_from_wherever_one_looks(
    client: Client, store: PostgresStore
) -> None:
    """Also once it has ended: the children of 1 are in no index by their parent then."""
    first = client.submit("extract")
    client.submit("alone")
    second, third = (client.submit("clean", after=[first]) for _ in range(2))
    client.submit("load", after=[second, third])
    wanted = [[1, 3, 4, 5], [2], [1, 3, 4, 5], [1, 3, 4, 5]]
    assert [ids(store, each) for each in (1, 2, 3, 5)] == wanted
    carried_out(store, *[Ending.SUCCEEDED] * 5)
    assert {job.state for job in client.jobs()} == {State.SUCCEEDED}
    assert [ids(store, each) for each in (1, 2, 3, 5)] == wanted


def test_a_batch_has_its_members_and_one_that_a_member_is_in_stands_for_itself(
    client: Client, store: PostgresStore
) -> None:
    with client.batch("nightly") as batch:
        first = batch.submit("extract")
        batch.submit("load", after=[first])
        batch.submit("other")
    client.submit("report", after=[batch.uuid])
    (line,) = client.batches()
    number = {job.kind: job.id for job in client.jobs()}
    every = sorted(number.values())
    assert ids(store, line.id) == every
    assert ids(store, number["extract"]) == [one for one in every if one != number["other"]]


def test_what_there_is_too_much_of_is_counted_and_not_drawn(
    client: Client, store: PostgresStore, admin: Browser
) -> None:
    first = client.submit("extract")
    client.submit_many("load", [{} for _ in range(NODES_MAX + 9)], after=[first])
    found = surroundings(store.connections.run, 1)
    assert (len(found.members), found.more, found.capped) == (NODES_MAX, 10, False)
    text = admin.get("/dependencies/1").text
    assert "10 more are not drawn" in text
    assert text.count('<path class="edge"') == NODES_MAX - 1
    client.submit_many("load", [{} for _ in range(FOUND_MAX)], after=[first])
    assert surroundings(store.connections.run, 1).capped


def test_the_page_draws_the_graph_and_tells_the_same_as_a_table(
    client: Client, admin: Browser
) -> None:
    first = client.submit("<extract>")
    second = client.submit("load", after=[first], rule="all_done")
    text = admin.get(f"/dependencies/{second.uuid}").text
    (chart,) = re.findall(r'<svg class="dag".*?</svg>(?=</div>)', text)
    ET.fromstring(chart)
    assert ">all_done</text>" in chart
    assert chart.count("/jobs/") == 2
    assert chart.count(" here") == 1
    table = text.split('id="table"')[1]
    assert table.count('<tr id="d') == 2
    assert table.count("all_done") == 2
    assert "<extract>" not in text


def test_who_is_alone_is_told_what_to_write(client: Client, admin: Browser) -> None:
    handle = client.submit("k")
    text = admin.get("/dependencies/1").text
    assert '<svg class="dag"' not in text
    assert f"after=[UUID(&#34;{handle.uuid}&#34;)]" in text
    assert "client.submit(" in admin.get("/dependencies").text


def test_a_number_leads_to_its_page_and_one_of_nobody_to_none(
    client: Client, admin: Browser
) -> None:
    handle = client.submit("k")
    answer = admin.get("/dependencies?job=%231")
    assert (answer.status, answer.header("location")) == (303, f"/dependencies/{handle.uuid}")
    assert admin.get("/dependencies?job=7", accept="text/html").status == 404
    assert admin.get(f"/dependencies/{UUID(int=1)}", accept="text/html").status == 404


def test_rules_are_words_at_edges_and_membership_is_dashed() -> None:
    edges = (MemberEdge(1, Rule.ONE_FAILED, None), MemberEdge(2, Rule.MEMBER, None))
    members = [member(1), member(2), member(3)._replace(edges=edges)]
    chart = str(graph.drawn(members, "", here=3))
    assert chart.count(">one_failed</text>") == 1
    assert chart.count('class="edge member"') == 1
    assert ">member</text>" not in chart


def test_of_the_members_of_a_batch_the_last_lead_to_it() -> None:
    """The others do by way of those: what is drawn is clear, and the table tells all."""
    batch = (MemberEdge(1, Rule.MEMBER, None), MemberEdge(2, Rule.MEMBER, None))
    members = [member(1), member(2, 1), member(3)._replace(edges=batch), member(4, 1)]
    chart = str(graph.drawn(members, ""))
    assert chart.count('class="edge member"') == 1
    assert chart.count('class="edge"') == 2


def test_in_the_table_parents_come_before_their_children() -> None:
    rows = rows_of([member(1, 3), member(2, 1), member(3)])
    assert [row.job.id for row in rows] == [3, 1, 2]
    assert [[end.job.id for end in row.children] for row in rows] == [[1], [2], []]


def test_every_read_is_a_probe_of_an_index(direct: str) -> None:
    """A chain beside many edges: no table is read from its beginning, and few rows of any."""
    seed(direct, 3_000)
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(
            """INSERT INTO timeball.dependency
                (child, parent, parent_uuid, rule, linked_at, decided_at, met)
            SELECT id, id - 1, gen_random_uuid(), 'all_success', now(), now(), true
            FROM timeball.job WHERE id % 10 <> 0 AND id > 1"""
        )
        connection.execute("ANALYZE")
    with closing(Explained(direct)) as explained, explained.connection.transaction():
        explained.run("begin_reading", {"timeout_ms": 60_000})
        rows, plans = explained.run("around", {"job": 1_505, "most": 500, "window": 100})
        near = [each for (each,) in rows]
        assert sorted(near) == list(range(1_500, 1_510))
        plans = plans + explained.run("around_jobs", {"jobs": near})[1]
    assert not {table for plan in plans for table in plan.scanned()} - {"lane", "queue"}
    assert max(plan.most_rows() for plan in plans) <= 100 * len(near)


def test_what_a_job_has_spawned_is_drawn_after_it_and_named_in_the_table() -> None:
    one, two = member(1)._replace(spawned=(2,)), member(2)
    picture = graph.drawn([one, two], "")
    assert picture is not None
    assert picture.count('class="edge member"') == 1
    assert "spawns" in picture
    first, second = rows_of([one, two])
    assert [(end.job.id, end.rule) for end in first.children] == [(2, "spawns")]
    assert [(end.job.id, end.rule) for end in second.parents] == [(1, "spawns")]
