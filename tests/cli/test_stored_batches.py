"""`timeball batch` for batches in the database, on a store in memory."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from tests.cli.invoking import document, invoke, said
from tests.store.batches import BAD, GOOD, batch, finish, job, submit
from tests.store.test_spawn import awaiting
from tests.store.world import World

from timeball.cli.batch_graph import NODES_MAX, Graph, Node, dot, graph_of, svg
from timeball.core.batches import BATCH, Member, MemberEdge
from timeball.core.dependencies import Rule, RuledOut
from timeball.core.states import State

SVG = "{http://www.w3.org/2000/svg}"


def pipeline(world: World) -> UUID:
    """Extract, twice transform and load as a batch, of which one has succeeded."""
    extract = job()
    parts = [job(extract.uuid) for _ in range(2)]
    load = job(*(each.uuid for each in parts))
    whole = batch(extract, *parts, load)
    submit(world, extract, *parts, load, whole)
    finish(world, GOOD)
    return whole.uuid


def test_batches_are_listed_newest_first(world: World) -> None:
    first, second = pipeline(world), batch(is_open=True)
    submit(world, second)
    lines = said("batch", "list", "--utc").splitlines()
    assert lines[0].split() == ["NUMBER", "ID", "NAME", "STATE", "JOBS", "LEFT", "CREATED", "ENDED"]
    assert lines[1].split()[:6] == ["6", str(second.uuid), "b", "open", "0", "0"]
    assert lines[2].split()[:6] == ["5", str(first), "b", "waiting", "4", "3"]
    (line,) = document("batch", "list", "--json", "--before", "6")["batches"]
    assert (line["uuid"], line["members"], line["left"]) == (str(first), 4, 3)


def test_a_batch_is_shown_with_its_report(world: World) -> None:
    whole = pipeline(world)
    text = said("batch", "show", str(whole))
    assert "jobs      4: 1 waiting, 2 pending, 1 succeeded" in text
    assert "25.0 %" in text
    assert "Makespan" in text
    assert "Path      a 1" in text
    found = document("batch", "show", "5", "--json")
    assert (found["jobs"], found["ended"], found["report"]["jobs"]) == (4, 1, 4)
    assert invoke("batch", "show", "1").exit_code == 3  # a job, and no batch


def test_the_graph_is_written_drawn_and_given_to_graphviz(world: World, tmp_path: Path) -> None:
    pipeline(world)
    lines = said("batch", "graph", "5").splitlines()
    assert lines[0] == "a: succeeded"
    assert lines[1] == "  2 of a: pending after a"
    assert lines[2] == "    a: waiting after 2 of a"
    assert lines[3].startswith("      b (5): waiting after")
    assert "digraph batch {" in said("batch", "graph", "5", "--dot")
    path = tmp_path / "graph.svg"
    assert said("batch", "graph", "5", "--svg", str(path)) == ""
    assert len(ET.parse(path).findall(f".//{SVG}rect")) == 4


def test_a_stored_batch_has_a_gantt(world: World, tmp_path: Path) -> None:
    pipeline(world)
    path = tmp_path / "gantt.svg"
    assert said("batch", "gantt", "5", "--svg", str(path)) == ""
    titles = [title.text or "" for title in ET.parse(path).findall(f".//{SVG}title")]
    assert any(title.startswith("job a 1, attempt 1: succeeded") for title in titles)


def test_a_batch_is_cancelled_and_started_again(world: World) -> None:
    whole = pipeline(world)
    assert said("batch", "cancel", "5") == "3 cancelled\n"
    assert said("batch", "cancel", "5") == "nothing was left\n"
    assert invoke("batch", "wait", "5").exit_code == 1
    assert said("batch", "retry", "5") == "3 jobs start again\n"
    assert world.state(whole) is State.WAITING
    finish(world, GOOD, GOOD)
    finish(world, GOOD)
    assert said("batch", "wait", "5") == "succeeded: 4 of 4 jobs have ended\n"
    assert said("batch", "retry", "5") == "nothing has failed\n"


def test_an_open_batch_is_closed(world: World) -> None:
    submit(world, batch(is_open=True))
    late = invoke("batch", "wait", "1", "--timeout", "0")
    assert (late.exit_code, "it goes on" in late.output) == (1, True)
    assert said("batch", "close", "1") == "closed\n"
    assert "was not open" in said("batch", "close", "1")


def test_a_job_with_a_batchs_number_is_no_batch(world: World) -> None:
    world.submit()
    for name in ("show", "graph", "cancel", "retry", "wait", "close"):
        assert invoke("batch", name, "1").exit_code == 3


def member(n: int, kind: str, *after: int) -> Member:
    edges = tuple(MemberEdge(parent, Rule.ALL_SUCCESS, None) for parent in after)
    state = State.FAILED if n % 7 == 3 else State.PENDING
    return Member(n, UUID(int=n), kind, state, 1, None, RuledOut.SKIP, "", edges, ())


def test_alike_jobs_are_one_node() -> None:
    members = [member(n, "a") for n in range(1_000)]
    graph = graph_of([*members, member(1_000, "b", *range(1_000))], "g")
    assert [(node.label, node.jobs) for node in graph.nodes] == [
        ("857 of a", 857),
        ("143 of a", 143),
        ("b", 1),
    ]
    assert sum(graph.edges.values()) == 1_000


def test_a_picture_is_bounded_and_says_what_it_leaves_out() -> None:
    graph = graph_of([member(n, f"kind {n}") for n in range(NODES_MAX + 9)], "g")
    text = svg(graph)
    assert len(ET.fromstring(text).findall(f".//{SVG}rect")) == NODES_MAX
    assert "9 more are not drawn" in text


@given(st.text(max_size=300))
def test_no_name_gets_out_of_a_picture(name: str) -> None:
    node = Node(number=0, layer=0, label=name, state=State.PENDING, jobs=1)
    graph = Graph(name=name, nodes=[node], edges={})
    assert ET.fromstring(svg(graph)).tag == f"{SVG}svg"
    inside = dot(graph).replace("\\\\", "").replace('\\"', "")
    assert inside.count('"') % 2 == 0


def test_a_batch_is_a_node_of_its_own(world: World) -> None:
    jobs = [job(), job()]
    nested = [batch(each) for each in jobs]
    outer = batch(*nested)
    submit(world, *jobs, *nested, outer)
    finish(world, BAD)
    lines = said("batch", "graph", str(outer.uuid)).splitlines()
    assert sum("b (" in line for line in lines) >= 3
    assert BATCH not in "\n".join(lines)


def test_what_a_job_has_spawned_comes_after_it_in_the_graph(world: World) -> None:
    member = job(kind="split")
    submit(world, member, batch(member))
    worker = world.worker("split")
    (turn,) = world.claim(worker)
    world.store.spawn(worker, awaiting(turn, *(job(kind="part") for _ in range(3))))
    lines = said("batch", "graph", "2").splitlines()
    assert "  3 of part: pending after split (spawns)" in lines
    assert 'label="3 of spawns"' in said("batch", "graph", "2", "--dot")


def test_a_picture_without_a_name_is_written_out(world: World) -> None:
    pipeline(world)
    assert ET.fromstring(said("batch", "graph", "5", "--svg")).tag == f"{SVG}svg"
