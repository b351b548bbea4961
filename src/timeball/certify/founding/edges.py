"""E: parents that end while others do, while edges are added, while they come and go."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import uuid4

from timeball.certify.founding.family import Family
from timeball.certify.queries import query
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.sessions import Refused
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.core.audit import audit
from timeball.core.dependencies import Rule
from timeball.core.states import Ending, State

FAN_IN: Final = 500
_LIMIT: Final = 10
_REFUSED: Final = "refused"
_ADDED: Final = "added"


def _end_together(family: Family, *, first: int, second: Ending = Ending.SUCCEEDED) -> str:
    """Have the second parent end between the other's end and its commit."""
    parents = family.running(2)
    child = family.child(*parents)
    one, two = family.session().begin(), family.session()
    one.verb("settle", **family.ends(parents[first]))
    family.steps(two, "settle", **family.ends(parents[1 - first], ending=second))
    one.commit()
    two.answer()
    family.ended(*parents)
    return family.state(child)


def _taken_back(family: Family) -> str:
    """Have the first end be taken back while the second one waits for it."""
    parents = family.running(2)
    child = family.child(*parents)
    one, two = family.session().begin(), family.session()
    one.verb("settle", **family.ends(parents[0]))
    family.steps(two, "settle", **family.ends(parents[1]))
    one.rollback()
    two.answer()
    family.ended(parents[1])
    before = family.state(child)
    family.end(parents[0])
    return f"{before}, then {family.state(child)}"


def _added_before(family: Family) -> str:
    (parent,) = family.running()
    child = family.child(parent)
    family.end(parent)
    return family.state(child)


def _added_while_it_ends(family: Family) -> str:
    """Have the child be there before the end commits, and its edge be linked afterwards."""
    (parent,), child = family.running(), uuid4()
    one, two = family.session().begin(), family.session().begin()
    two.verb("submit", jobs=family.child_text(parent, child))
    one.verb("settle", **family.ends(parent))
    two.commit()
    family.blocked += family.store.link(_LIMIT) is None  # the graph is not to be had
    one.commit()
    family.ended(parent)
    family.store.link(_LIMIT)
    family.children.add(child)
    return family.state(child)


def _added_across_the_end(family: Family) -> str:
    """Have the parent end, and commit, while the child's transaction is open."""
    (parent,), child = family.running(), uuid4()
    one = family.session().begin()
    one.verb("submit", jobs=family.child_text(parent, child))
    family.end(parent)
    one.commit()
    family.store.link(_LIMIT)
    family.children.add(child)
    return family.state(child)


def _linked_while_it_ends(family: Family, *, ending: Ending) -> str:
    """Have the parent end between the linking of the edge and its commit."""
    (parent,), child = family.running(), uuid4()
    one, two = family.session(), family.session()
    one.verb("submit", jobs=family.child_text(parent, child))
    one.begin().verb("link", limit=_LIMIT)
    family.steps(two, "settle", **family.ends(parent, ending=ending))
    one.commit()
    two.answer()
    family.ended(parent)
    family.children.add(child)
    return family.state(child)


def _fan_in(family: Family) -> str:
    """Have the two halves of many parents end at once."""
    parents = family.running(FAN_IN)
    child = family.child(*parents)
    half = FAN_IN // 2
    one, two = family.session().begin(), family.session()
    one.verb("settle", **family.ends(*parents[1:half]))
    family.steps(two, "settle", **family.ends(*parents[half:]))
    one.commit()
    two.answer()
    family.ended(*parents[1:])
    before = family.state(child)
    family.end(parents[0])
    return f"{before}, then {family.state(child)}"


def _parent_fails(family: Family) -> str:
    (parent,) = family.running()
    child = family.child(parent)
    family.end(parent, ending=Ending.FAILED)
    return family.state(child)


def _parent_is_cancelled(family: Family) -> str:
    (parent,) = family.pending()
    child = family.child(parent)
    family.store.cancel(parent)
    return family.state(child)


def _parent_is_deleted(family: Family, *, rule: Rule) -> str:
    """Have the parent end and be deleted while the child's transaction is open."""
    (parent,), child = family.running(), uuid4()
    family.end(parent)
    one = family.session().begin()
    one.verb("submit", jobs=family.child_text(parent, child, rule))
    family.store.delete([parent])
    family.stage.accepted.discard(parent)
    one.commit()
    family.store.link(_LIMIT)
    family.children.add(child)
    return family.state(child)


def _parent_is_revived(family: Family) -> str:
    """Have one parent end twice: it counts once, and the other one is still waited for."""
    parents = family.running(2)
    child = family.child(*parents, rule=Rule.ALL_DONE)
    family.end(parents[0], ending=Ending.FAILED)
    family.store.revive([parents[0]])
    family.start_all()
    family.end(parents[0], ending=Ending.FAILED)
    before = family.state(child)
    family.end(parents[1])
    return f"{before}, then {family.state(child)}"


def _crash(family: Family) -> str:
    """End the session that ends a parent when it has written that, and not yet told the child."""
    (parent,) = family.running()
    child = family.child(parent)
    gate, victim = family.session().begin(), family.session()
    gate.run(query("hold_child"), {"job": child})
    family.steps(victim, "settle", **family.ends(parent))
    family.stage.ask("end_session", pid=victim.pid)
    gate.rollback()
    before = f"{family.state(parent)} and {family.state(child)}"
    family.end(parent)
    return f"{before}, then {family.state(child)}"


def _opposite_edges(family: Family) -> str:
    """Submit a after b and b after a at once, one after the other, and in one submission."""
    a, b = uuid4(), uuid4()
    texts = [family.child_text(b, a), family.child_text(a, b)]
    both = json.dumps([each for text in texts for each in json.loads(text)])
    one, two = family.session().begin(), family.session().begin()
    answers = [one.verb_steps("submit", jobs=texts[0]), two.verb_steps("submit", jobs=texts[1])]
    one.rollback()
    two.rollback()
    answers.append(one.verb_steps("submit", jobs=both))
    answers.append(one.verb_steps("submit", jobs=family.child_text(a, a)))
    return ", ".join(_REFUSED if isinstance(each, Refused) else _ADDED for each in answers)


def _apart(family: Family) -> str:
    """Submit a child while the transaction that submits its parent is open, and afterwards."""
    parent, child = uuid4(), uuid4()
    text = family.child_text(parent, child)
    one, two = family.session().begin(), family.session()
    one.verb("submit", jobs=json.dumps([{"uuid": str(parent), "kind": KIND}]))
    early = two.verb_steps("submit", jobs=text)
    one.commit()
    two.verb("submit", jobs=text)
    family.store.link(_LIMIT)
    family.start_all()
    before = family.state(child)
    family.end(parent)
    family.children.add(child)
    told = _REFUSED if isinstance(early, Refused) else _ADDED
    return f"{told}, {before}, then {family.state(child)}"


class Leg(NamedTuple):
    """One way in which a child and its parents meet."""

    play: Callable[[Family], str]
    """Tells what became of the child, or of those that were added."""

    wanted: str
    waits: bool = False
    """Whether a statement must have had to wait for another one: else nothing has met."""


_FAILED: Final = Ending.FAILED
_SEEN: Final = "waiting, then pending"
LEGS: Final[Mapping[str, Leg]] = MappingProxyType(
    {
        "two end together, one first": Leg(partial(_end_together, first=0), "pending", waits=True),
        "two end together, the other first": Leg(
            partial(_end_together, first=1), "pending", waits=True
        ),
        "two end together, one fails": Leg(
            partial(_end_together, first=0, second=_FAILED), "skipped", waits=True
        ),
        "the first of two ends is taken back": Leg(_taken_back, _SEEN, waits=True),
        "a child is linked before its parent ends": Leg(_added_before, "pending"),
        "a child is added while its parent ends": Leg(_added_while_it_ends, "pending", waits=True),
        "a parent ends while its child is added": Leg(_added_across_the_end, "pending"),
        "a parent ends while its edge is linked": Leg(
            partial(_linked_while_it_ends, ending=Ending.SUCCEEDED), "pending", waits=True
        ),
        "a parent fails while its edge is linked": Leg(
            partial(_linked_while_it_ends, ending=_FAILED), "skipped", waits=True
        ),
        "two halves of 500 parents end together": Leg(_fan_in, _SEEN, waits=True),
        "a parent fails": Leg(_parent_fails, "skipped"),
        "a parent is cancelled": Leg(_parent_is_cancelled, "skipped"),
        "a parent is deleted, and must have succeeded": Leg(
            partial(_parent_is_deleted, rule=Rule.ALL_SUCCESS), "skipped"
        ),
        "a parent is deleted, and must have ended": Leg(
            partial(_parent_is_deleted, rule=Rule.ALL_DONE), "pending"
        ),
        "a parent is revived and ends again": Leg(_parent_is_revived, _SEEN),
        "a crash between ending and telling": Leg(
            _crash, "running and waiting, then pending", waits=True
        ),
        "two opposite edges": Leg(_opposite_edges, ", ".join([_REFUSED] * 4)),
        "a parent and a child in two transactions": Leg(_apart, f"{_REFUSED}, {_SEEN}"),
    }
)


def run(stage: Stage) -> Outcome:
    """Play every leg, in an order that is thrown, then end all and look for what was missed."""
    family = Family(stage)
    told, waited = {}, {}
    for name, leg in stage.dice.shuffled(LEGS.items()):
        before = family.blocked
        told[name] = leg.play(family)
        if leg.waits:
            waited[name] = family.blocked - before
    alive = {each for each in family.children if family.state(each) is not State.SKIPPED}
    family.finish()
    stage.drain()
    found = audit(stage.store.histories(), quiesced=True).found
    starts = Counter(family.starts[each] for each in alive)
    free = sum(leg.wanted.endswith("pending") for leg in LEGS.values())
    return Outcome(
        expected={
            **{name: leg.wanted for name, leg in LEGS.items()},
            "missed": 0,
            "early": 0,
            "cycles": 0,
            "children by starts": {"1": free},
        },
        observed={
            **told,
            "missed": found.get("I14", 0),
            "early": found.get("I13", 0),
            "cycles": found.get("I15", 0),
            "children by starts": {str(count): jobs for count, jobs in starts.items()},
        },
        witness=waited,
    )


E: Final = Scenario(
    id="E",
    title="parents that end together, while edges are added, and while they come and go",
    run=run,
    invariants=("I2", "I13", "I14", "I15"),
    founding="sc_E",
    deadline_s=15.0,
)
