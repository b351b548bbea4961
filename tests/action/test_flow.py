"""Chains, groups and chords are drafts with edges, however they are put into each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import timeball as tb
from timeball.action.draft import Draft, together
from timeball.action.flow import Flow, Part, chain, chord, group
from timeball.errors import UsageError


def named(name: str) -> Draft:
    return tb.draft(name)


def edges(flow: Flow) -> set[tuple[str, str]]:
    """The edges, as parent and child by name."""
    names = {each.uuid: str(each.job) for each in flow}
    return {
        (names[parent], str(each.job))
        for each in flow
        for parent in each.arguments.get("after", ())
    }


def test_a_chain_is_one_after_the_other() -> None:
    assert edges(chain("a", "b", "c")) == {("a", "b"), ("b", "c")}


def test_the_members_of_a_group_do_not_wait_for_each_other() -> None:
    assert edges(group("a", "b", chain("c", "d"))) == {("c", "d")}


def test_a_chord_comes_after_all_of_its_parts() -> None:
    flow = chord([chain("a", "b"), "c"], "d")
    assert edges(flow) == {("a", "b"), ("b", "d"), ("c", "d")}


def test_a_group_in_a_chain_stands_between_all_that_is_before_and_after() -> None:
    flow = chain(group("a", "b"), group("c", chain("d", "e")), "f")
    starts = {(a, b) for a in "ab" for b in "cd"}
    assert edges(flow) == starts | {("d", "e"), ("c", "f"), ("e", "f")}


def test_an_empty_group_in_the_middle_is_as_if_it_were_not_there() -> None:
    assert edges(chain("a", group(), "b")) == {("a", "b")}
    assert edges(chain(group(), "a", chain(group(), chain()), "b")) == {("a", "b")}
    assert edges(chain("a", group("b", group(), chain()), "c")) == {("a", "b"), ("b", "c")}


def test_one_member_is_that_member() -> None:
    assert edges(chain("a", group("b"), chain("c"))) == {("a", "b"), ("b", "c")}
    assert edges(chord(["a"], "b")) == {("a", "b")}


def test_nothing_is_a_flow_too_and_a_chord_of_nothing_waits_for_nothing() -> None:
    assert len(chain()) == len(group()) == len(chain(group(), chain())) == 0
    (only,) = chord([], "a")
    assert "after" not in only.arguments


def test_an_edge_that_is_written_stays_as_it_is() -> None:
    a = named("a")
    b = tb.draft("b", after=[(a, "all_done")])
    (_, child) = chain(a, b)
    assert child.arguments["after"] == [(a, "all_done")]


def test_a_draft_that_is_put_into_a_flow_is_named_by_the_draft_that_was() -> None:
    a, b = named("a"), named("b")
    flow = chain(a, b)
    late = tb.draft("late", after=[b])
    assert [each.uuid for each in together([*flow, late])] == [a.uuid, b.uuid, late.uuid]


def test_drafts_that_cannot_be_one_submission_are_refused() -> None:
    a = named("a")
    b = tb.draft("b", after=[a])
    with pytest.raises(UsageError, match="parents first"):
        together([b, a])
    with pytest.raises(UsageError, match="twice"):
        together([a, b, a])
    with pytest.raises(UsageError, match="is no draft"):
        together(["a"])  # type: ignore[list-item]  # what the text is about
    with pytest.raises(UsageError, match="10,000"):
        together([a] * 10_001)
    with pytest.raises(UsageError, match="uuid"):
        tb.draft("a", uuid="7")


Tree = st.recursive(
    st.just("job"), lambda inner: st.tuples(st.sampled_from("cg"), st.lists(inner, max_size=4))
)


def built(tree: object) -> Part:
    if tree == "job":
        return named("job")
    assert isinstance(tree, tuple)
    kind, parts = tree
    return (chain if kind == "c" else group)(*map(built, parts))


@given(Tree, Tree)
def test_whatever_is_put_together_comes_whole_before_what_follows(one: object, two: object) -> None:
    before, after = group(built(one)), group(built(two))
    flow = chain(before, after)
    assert [each.uuid for each in flow] == [each.uuid for each in [*before, *after]]
    reached: dict[object, set[object]] = {}
    for each in together(flow):
        parents = each.arguments.get("after", ())
        reached[each.uuid] = {*parents}.union(*(reached[parent] for parent in parents))
    sources = {each.uuid for each in before}
    assert all(sources <= reached[each.uuid] for each in after)
    inside = [each.uuid for each in before if not each.arguments.get("after")]
    assert {uuid for uuid in inside if not reached[uuid]} == before.first
