"""What a store knows of a batch gives the figures that a scheduler has of its own."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core import batch_report as core_batch_report
from timeball.core.batch_report import attempts_of, batch_report, critical_path, record_of
from timeball.core.batches import BATCH, Member, MemberAttempt, MemberEdge
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import Rule, RuledOut
from timeball.core.limits import Scope, StartRate
from timeball.core.makespan import Cause
from timeball.core.rate import Rate
from timeball.core.states import Ending, State

START = 1_700_000_000.0


def member(id_: int, *attempts: MemberAttempt, after: tuple[int, ...] = (), batch: bool = False):
    rule = Rule.MEMBER if batch else Rule.ALL_SUCCESS
    return Member(
        id=id_,
        uuid=uuid4(),
        kind=BATCH if batch else "a",
        state=State.SUCCEEDED,
        turn=1,
        reason=None,
        ruled_out=RuledOut.SKIP,
        name="",
        edges=tuple(MemberEdge(parent, rule, met=True) for parent in after),
        attempts=attempts,
    )


def ran(began_s: float, ran_s: float, queued_s: float | None = None, delay_s: float = 0.0):
    queued_at = START + (began_s if queued_s is None else queued_s)
    return MemberAttempt(1, Ending.SUCCEEDED, queued_at, START + began_s, ran_s, delay_s)


def test_the_figures_of_a_small_batch() -> None:
    members = [
        member(1, ran(0, 2)),
        member(2, ran(0, 1)),
        member(3, ran(1, 2, queued_s=0)),
        member(4, ran(3.5, 1, queued_s=3), after=(5,)),
        member(5, after=(1, 2, 3), batch=True),
    ]
    report = batch_report(members)
    assert (report.workers, report.jobs, report.attempts) == (2, 4, 4)
    assert report.makespan_ns == 4_500_000_000
    assert report.bound.ns == 3_500_000_000  # 5 s of work before the last second, in two slots
    assert str(report.bound.binding) == "before-work"
    assert [each.id for each in critical_path(members)] == [1, 4]
    causes = {cause: ns for cause, ns in report.ledger.causes.items() if ns}
    assert causes == {Cause.DISPATCH: 1_000_000_000, Cause.DEPENDENCY: 1_000_000_000} | {
        Cause.QUEUE: 1_000_000_000
    }


def test_of_a_batch_that_has_not_begun_there_is_a_report() -> None:
    report = batch_report([member(1), member(2, after=(1,), batch=True)])
    assert (report.makespan_ns, report.jobs, report.attempts) == (0, 1, 0)
    assert critical_path([member(1)]) == []
    assert batch_report([member(1, batch=True)]).jobs == 0


def test_a_call_that_was_waited_for_is_no_attempt_and_no_job_of_the_report() -> None:
    call = member(1)._replace(kind=CALLBACK)
    members = [call, member(2, ran(0, 1)), member(3, ran(5, 1, queued_s=5), after=(1, 2))]
    report = batch_report([*members, member(4, after=(1, 2, 3), batch=True)])
    assert (report.jobs, report.attempts, report.states[State.SUCCEEDED]) == (2, 2, 2)
    assert report.ledger.causes[Cause.DEPENDENCY] == 4_000_000_000
    assert [each.id for each in critical_path(members)] == [2, 3]


class Counted(int):
    """A job's number that counts how often it is looked up."""

    looks = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return int(self)


@pytest.mark.parametrize("began_s", [None, 0, 2])
def test_of_two_large_batches_one_after_the_other_not_all_pairs_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, began_s: int | None
) -> None:
    monkeypatch.setattr(core_batch_report, "EDGES_MAX", 1_000)
    many, again = 300, [] if began_s is None else [ran(began_s, 1)]
    early = [member(Counted(n), ran(0, 1)) for n in range(1, many + 1)]
    whole = member(many + 1, after=tuple(each.id for each in early), batch=True)
    late = [member(many + 2 + n, *again, after=(whole.id,)) for n in range(many)]
    Counted.looks = 0
    parents = record_of([*early, whole, *late]).parents
    assert sum(map(len, parents.values())) == (1_000 if began_s == 2 else 0)
    assert Counted.looks < 50 * many


def test_a_retry_counts_with_the_wait_before_it() -> None:
    again = MemberAttempt(2, Ending.SUCCEEDED, START + 3, START + 3, 1.0, 2.0)
    report = batch_report([member(1, ran(0, 1), again)])
    assert report.makespan_ns == report.bound.ns == 4_000_000_000
    assert report.ledger.causes[Cause.RETRY] == 2_000_000_000


def test_clocks_that_disagree_are_no_proof_of_anything() -> None:
    early = member(2, ran(0.5, 1), after=(1,))  # begun, by its worker's clock, before 1 had ended
    report = batch_report([member(1, ran(0, 1)), early])
    assert report.efficiency <= 1.0


times = st.floats(0, 100).map(lambda s: round(s, 3))
jobs = st.lists(st.tuples(times, times, times), max_size=30)


@given(jobs)
def test_no_slot_does_two_things_and_the_ledger_balances(drawn: list[tuple[float, ...]]) -> None:
    members = [
        member(n, ran(began, long, queued_s=began - wait), after=() if n < 3 else (n - 2,))
        for n, (began, long, wait) in enumerate(drawn)
    ]
    attempts = attempts_of(members)
    assert [each.started_ns for each in attempts] == sorted(each.started_ns for each in attempts)
    report = batch_report(members)
    total = report.ledger.running_ns + sum(report.ledger.causes.values())
    assert total == report.workers * report.makespan_ns
    assert all(ns >= 0 for ns in report.ledger.causes.values())
    assert record_of(members).workers <= max(1, len(drawn))


# Limits on starts


def rate(scope: Scope, name: str, since: float = 0.0) -> StartRate:
    return StartRate(scope, name, Rate(1), START + since)


def test_a_limit_on_starts_that_held_all_the_time_is_a_floor() -> None:
    members = [member(n, ran(n, 0.1, queued_s=0)) for n in range(5)]
    slow = batch_report(members)
    assert slow.efficiency < 0.15
    limited = batch_report(members, [rate(Scope.KIND, "a")])
    assert limited.bound.ns == limited.makespan_ns == 4_100_000_000
    assert limited.efficiency == 1.0
    for other in (rate(Scope.KIND, "b"), rate(Scope.KIND, "a", since=1), rate(Scope.QUEUE, "q")):
        assert batch_report(members, [other]).bound.ns == slow.bound.ns


def test_of_a_limit_for_some_jobs_only_those_are_held_to_it() -> None:
    members = [
        member(n, ran(n // 2, 0.5, queued_s=0))._replace(
            queue="q" if n % 2 else None, key="t-1" if n % 2 == 0 else "t-2"
        )
        for n in range(8)
    ]
    for each in (rate(Scope.QUEUE, "q"), rate(Scope.KEY, "t-*"), rate(Scope.KEY, "t-1")):
        report = batch_report(members, [each])
        assert report.bound.ns == report.makespan_ns == 3_500_000_000
    assert batch_report(members, [rate(Scope.KIND, "a")]).efficiency == 1.0
    assert record_of(members, [rate(Scope.KEY, "t-*"), rate(Scope.KEY, "t-2")]).limits == [
        (Rate(1), [0, 2, 4, 6]),
        (Rate(1), [1, 3, 5, 7]),
    ]


@given(st.lists(st.tuples(times, times), min_size=1, max_size=12), st.integers(1, 4))
def test_no_record_that_obeys_its_limits_is_faster_than_they_allow(
    drawn: list[tuple[float, float]], count: int
) -> None:
    at, members = [0.0] * 2, []
    for n, (ran_s, rest_s) in enumerate(drawn):
        kind = n % 2
        at[kind] += rest_s + 1 / count
        members.append(member(n, ran(at[kind], ran_s))._replace(kind="ab"[kind]))
    rates = [StartRate(Scope.KIND, kind, Rate(count, burst=1), 0.0) for kind in "ab"]
    report = batch_report(members, rates)
    assert report.bound.ns <= report.makespan_ns + 1_000
    assert report.bound.ns >= batch_report(members).bound.ns
