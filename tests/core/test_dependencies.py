"""What a parent's end means for a child: a truth table, and that order changes nothing."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.dependencies import (
    ONE_OF,
    Needs,
    Rule,
    RuledOut,
    Sentence,
    is_met,
    needs_of,
)
from timeball.core.states import TERMINAL, State

ENDS = [State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED, None]
TABLE = {  # succeeded, failed, cancelled, skipped, deleted
    Rule.ALL_SUCCESS: (True, False, False, False, False),
    Rule.ALL_DONE: (True, True, True, True, True),
    Rule.NONE_FAILED: (True, False, False, True, False),
    Rule.ALWAYS: (True, True, True, True, True),
    Rule.ONE_SUCCESS: (True, False, False, False, False),
    Rule.ONE_FAILED: (False, True, True, False, False),
    Rule.MEMBER: (True, False, False, False, False),
}
parents = st.lists(st.tuples(st.sampled_from(Rule), st.sampled_from(ENDS)), min_size=1, max_size=7)


@pytest.mark.parametrize("rule", Rule)
def test_a_rule_is_met_by_the_ends_in_its_row(rule: Rule) -> None:
    assert tuple(is_met(rule, state) for state in ENDS) == TABLE[rule]


def test_every_terminal_state_has_a_column() -> None:
    assert set(ENDS) == {*TERMINAL, None}


def wanted(ends: list[tuple[Rule, State | None]], ruled_out: RuledOut) -> Sentence:
    """The meaning, said at once for parents that have all ended."""
    alls = [is_met(rule, state) for rule, state in ends if rule not in ONE_OF]
    ones = [is_met(rule, state) for rule, state in ends if rule in ONE_OF]
    if all(alls) and (any(ones) or not ones):
        return Sentence.RELEASE
    names = {RuledOut.RUN: "release", RuledOut.SKIP: "skip", RuledOut.FAIL: "fail"}
    return Sentence(names[ruled_out])


def step(needs: Needs, end: tuple[Rule, State | None]) -> Needs:
    rule, state = end
    return needs.after(rule, met=is_met(rule, state))


@given(parents, st.sampled_from(RuledOut), st.randoms(use_true_random=False))
def test_what_follows_is_final_and_depends_on_no_order(ends, ruled_out, random) -> None:
    last = wanted(ends, ruled_out)
    random.shuffle(ends)
    needs = needs_of(rule for rule, _ in ends)
    assert needs.sentence(ruled_out) is Sentence.WAIT
    told = []
    for end in ends:
        needs = step(needs, end)
        told.append(needs.sentence(ruled_out))
    decided = [sentence for sentence in told if sentence is not Sentence.WAIT]
    assert set(decided) == {last}
    assert told == [Sentence.WAIT] * (len(ends) - len(decided)) + decided


@given(parents)
def test_who_is_ruled_out_and_runs_still_starts_after_all_its_parents(ends) -> None:
    needs = reduce(step, ends[:-1], needs_of(rule for rule, _ in ends))
    if needs.sentence(RuledOut.SKIP) is Sentence.SKIP:
        assert needs.sentence(RuledOut.RUN) is Sentence.WAIT


@given(st.lists(st.sampled_from(sorted(ONE_OF)), min_size=1, max_size=5))
def test_one_is_enough_where_the_rule_says_one(rules) -> None:
    needs = needs_of(rules).after(rules[0], met=True)
    assert needs.sentence(RuledOut.SKIP) is Sentence.RELEASE
