"""What facts lead to, where no test can make them true of a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from timeball.core.diagnosis import Facts, Holder, Server, Severity, diagnosed

SERVER = Server("18.1", 180_001, "on", "on", "on", "on", 100, False, 10, True)
FACTS = Facts(
    server=SERVER,
    skew_s=0.0,
    skew_error_s=0.0,
    schema="timeball",
    mismatch="",
    proxied=False,
    zone_version="2026f",
)


def served(**changes: object) -> Facts:
    return replace(FACTS, server=SERVER._replace(**changes))  # type: ignore[arg-type]  # by name


def test_of_an_installation_in_order_every_check_says_so() -> None:
    found = diagnosed(FACTS)
    assert {one.severity for one in found} == {Severity.OK}
    assert not any(one.mend for one in found)


@pytest.mark.parametrize(
    ("facts", "check", "severity", "mend"),
    [
        (served(version_num=130_005), "server", "trouble", "upgrade"),
        (served(is_replica=True), "server", "trouble", "primary"),
        (served(fsync="off"), "durability", "trouble", "SET fsync = on"),
        (served(full_page_writes="off"), "durability", "trouble", "SET full_page_writes = on"),
        (served(synchronous_commit="off"), "durability", "warning", "synchronous_commit = on"),
        (served(autovacuum="off"), "autovacuum", "trouble", "SET autovacuum = on"),
        (served(connections=80), "connections", "warning", "max_connections = 200"),
        (served(connections=95), "connections", "trouble", "max_connections = 200"),
        (replace(FACTS, skew_s=-2.0, skew_error_s=0.1), "clock", "warning", "chronyc"),
        (replace(FACTS, skew_s=90.0), "clock", "trouble", "chronyc"),
        (replace(FACTS, zone_version=""), "zone data", "warning", "tzdata"),
    ],
)
def test_each_fact_that_is_wrong_is_told_first_and_can_be_mended(
    facts: Facts, check: str, severity: str, mend: str
) -> None:
    first, *others = diagnosed(facts)
    assert (first.check, first.severity) == (check, severity)
    assert mend in first.mend
    assert {one.severity for one in others} == {Severity.OK}


def test_a_clock_that_was_read_slowly_is_no_wrong_clock() -> None:
    found = diagnosed(replace(FACTS, skew_s=4.0, skew_error_s=4.5))
    assert {one.severity for one in found} == {Severity.OK}


@pytest.mark.parametrize(("age", "severity"), [(59, "ok"), (61, "warning"), (601, "trouble")])
def test_a_prepared_transaction_is_the_worse_the_older_it_is(age: float, severity: str) -> None:
    holder = Holder("prepared", "it's", "me", "", age)
    found = {one.check: one for one in diagnosed(replace(FACTS, holders=[holder]))}
    assert found["prepared transactions"].severity == severity
    if severity != "ok":
        assert "ROLLBACK PREPARED" in found["prepared transactions"].mend


def test_who_cannot_see_sessions_is_told_that() -> None:
    found = {one.check: one.evidence for one in diagnosed(served(sees_all=False))}
    assert "hidden" in found["snapshots"]


def test_of_a_schema_that_does_not_fit_nothing_inside_is_said_to_be_in_order() -> None:
    """Nobody has looked at it."""
    first, *others = diagnosed(replace(FACTS, mismatch="it lacks 2 changes"))
    assert (first.check, first.severity) == ("schema", Severity.TROUBLE)
    unseen = {"indexes", "dead rows", "kinds", "workers", "schedules"}
    assert not unseen & {one.check for one in others}
