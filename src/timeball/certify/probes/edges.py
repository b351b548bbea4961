"""Edges: a child starts once its parents allow it, and never waits for nothing."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.founding.family import Family
from timeball.certify.probes.probe import Probe
from timeball.certify.sessions import Refused
from timeball.certify.stage import Stage
from timeball.core.dependencies import Rule
from timeball.core.states import Ending

_LIMIT: Final = 10


def _fan_in(stage: Stage) -> Any:
    """End two parents one after the other."""
    family = Family(stage)
    parents = family.running(2)
    child = family.child(*parents)
    return [_after(family, parent, child) for parent in parents]


def _after(family: Family, parent: UUID, child: UUID) -> str:
    family.end(parent)
    return str(family.state(child))


def _failure(stage: Stage) -> Any:
    family = Family(stage)
    (parent,) = family.running()
    child = family.child(parent)
    family.end(parent, ending=Ending.FAILED)
    return str(family.state(child))


def _added_late(stage: Stage) -> Any:
    """Add a child once its parent has ended."""
    family = Family(stage)
    (parent,) = family.running()
    family.end(parent)
    return str(family.state(family.child(parent)))


def _linked_meanwhile(stage: Stage) -> Any:
    """Have a parent end between the linking of an edge and its commit."""
    family = Family(stage)
    (parent,), child = family.running(), uuid4()
    one, two = family.session(), family.session()
    one.verb("submit", jobs=family.child_text(parent, child))
    one.begin().verb("link", limit=_LIMIT)
    waits = family.steps(two, "settle", **family.ends(parent))
    one.commit()
    two.outcome()
    return {"waits": waits, "state": str(family.state(child))}


def _together(stage: Stage) -> Any:
    """Have the second parent end between the first one's end and its commit."""
    family = Family(stage)
    parents = family.running(2)
    child = family.child(*parents)
    one, two = family.session().begin(), family.session()
    one.verb("settle", **family.ends(parents[0]))
    family.steps(two, "settle", **family.ends(parents[1]))
    one.commit()
    answer = two.outcome()
    return answer.sqlstate if isinstance(answer, Refused) else str(family.state(child))


def _ended_twice(stage: Stage) -> Any:
    """Have one of three parents end, be revived, and end again."""
    family = Family(stage)
    parents = family.running(3)
    child = family.child(*parents, rule=Rule.ALL_DONE)
    family.end(parents[0], ending=Ending.FAILED)
    stage.store.revive([parents[0]])
    family.child(parents[0])
    family.start_all()
    family.end(parents[0], ending=Ending.FAILED)
    return [_after(family, parent, child) for parent in parents[1:]]


FAN_IN: Final = Probe(
    name="a child waits for all its parents", run=_fan_in, expected=["waiting", "pending"]
)
FAILURE: Final = Probe(
    name="the child of one that fails is skipped", run=_failure, expected="skipped"
)
ADDED_LATE: Final = Probe(
    name="a child that comes late does not wait", run=_added_late, expected="pending"
)
LINKED_MEANWHILE: Final = Probe(
    name="an edge that is linked meanwhile is told",
    run=_linked_meanwhile,
    expected={"waits": True, "state": "pending"},
)
TOGETHER: Final = Probe(
    name="of two that end together one releases the child", run=_together, expected="pending"
)
ENDED_TWICE: Final = Probe(
    name="an edge is decided once", run=_ended_twice, expected=["waiting", "pending"]
)
