"""Why slots were idle is remembered for as long as somebody may ask, and no longer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball import Rate, Scheduler
from timeball.core.makespan import Cause
from timeball.engine import engine
from timeball.engine.handles import NEVER_NS
from timeball.engine.idleness import Idleness

INSTANTS = st.integers(0, 50)
CHANGES = st.lists(
    st.tuples(INSTANTS, st.sampled_from(Cause), st.one_of(INSTANTS, st.just(NEVER_NS)))
)


def marked(changes: list[tuple[int, Cause, int]]) -> Idleness:
    idleness = Idleness()
    for now_ns, cause, until_ns in sorted(changes, key=lambda change: change[0]):
        idleness.mark(now_ns, cause, until_ns)
    return idleness


@given(CHANGES, INSTANTS, INSTANTS, INSTANTS)
def test_what_is_forgotten_changes_no_later_answer(changes, before_ns, from_ns, ran_ns) -> None:
    whole, rest = marked(changes), marked(changes)
    rest.forget(before_ns)
    begin_ns, end_ns = before_ns + from_ns, before_ns + from_ns + ran_ns
    assert list(rest.cut(begin_ns, end_ns)) == list(whole.cut(begin_ns, end_ns))
    assert rest.limited()(begin_ns, end_ns) == whole.limited()(begin_ns, end_ns)


@given(CHANGES, INSTANTS)
def test_only_what_was_over_is_forgotten(changes, before_ns) -> None:
    idleness = marked(changes)
    since = sum(at > before_ns for at in idleness._at)
    idleness.forget(before_ns)
    assert since <= len(idleness) <= since + 1


def test_a_copy_is_not_forgotten_with_the_original() -> None:
    idleness = marked([(at, cause, NEVER_NS) for at, cause in enumerate(Cause)])
    copy = idleness.copy()
    idleness.forget(NEVER_NS)
    assert len(idleness) == 1
    assert len(copy) == len(Cause)


@pytest.mark.parametrize("keep_results", ["none", 5])
def test_a_scheduler_that_forgets_jobs_forgets_why_it_was_idle(
    monkeypatch: pytest.MonkeyPatch, keep_results: str | int
) -> None:
    monkeypatch.setattr(engine, "CHANGES", 8)
    with Scheduler(2, rate=Rate(1, per_s=0.001), keep_results=keep_results) as s:
        for _ in range(100):
            s.wait([s.submit(pow, 2, 2)])
        assert len(s._engine.agenda.idleness) <= 64
        report = s.report()
    ledger = report.ledger
    assert ledger.running_ns + sum(ledger.causes.values()) == 2 * report.makespan_ns


def test_one_that_remembers_all_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CHANGES", 8)
    with Scheduler(2) as s:
        for _ in range(20):
            s.wait([s.submit(pow, 2, 2)])
        assert len(s._engine.agenda.idleness) >= 20
