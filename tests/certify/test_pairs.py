"""Every two verbs in every order: no verb is forgotten, and a lock that is missing is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.certify.test_defects import LANE, played
from tests.certify.test_runner import scenario

from timeball.certify.pairs.actors import writing
from timeball.certify.pairs.scenario import End, Pairs
from timeball.certify.pairs.verbs import ALWAYS, CALLS, LOOSE, ROUNDS, verb_of
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Outcome, Status
from timeball.certify.stage import Stage
from timeball.certify.told import READS, verbs

CLAIMS = ("claim", "claim: all")


def test_every_verb_that_changes_anything_is_in_pairs() -> None:
    called = {verb_of(name) for name in CALLS}
    assert called == verbs() - READS
    assert verbs() > READS
    assert called >= ROUNDS
    assert CALLS.keys() >= {*ALWAYS, *CLAIMS}.union(*LOOSE)


def test_a_statement_that_writes_is_known_by_its_text() -> None:
    known = writing()
    assert {"claim", "settle", "beat", "set_limit", "submit", "fire", "ensure_lanes"} <= known
    assert not {"get", "jobs", "counts", "notify", "now", "lease_turns"} & known


def end(*rows: str, answers: tuple[str, str] = ('["new"]', "deleted")) -> End:
    return End(order=(0, 1, 0), waited=0, answers=answers, tables={"job": rows})


def test_who_is_submitted_without_his_parent_may_be_there_and_nothing_else_may_differ() -> None:
    refused = end("other", answers=('"UsageError"', "deleted"))
    assert end("new", "other").spares(refused)
    assert not end("new", "other", "third").spares(refused)
    assert not end("new").spares(refused)
    assert not end("new", "other", answers=('["new"]', "refused")).spares(refused)
    assert not refused.spares(refused)


def run(stage: Stage) -> Outcome:
    pairs = Pairs(stage)
    try:
        pairs.play(CLAIMS)
    finally:
        pairs.close()
    return Outcome(
        expected={"odd": {}},
        observed={"odd": {str(names): text for names, text in pairs.tally.odd.items()}},
        witness={"alternating": pairs.tally.alternating, "waits": pairs.tally.waited},
    )


@pytest.mark.slow
def test_two_claims_come_to_what_a_serial_order_does(server: str, tmp_path: Path) -> None:
    (result,) = certify(Order(scenarios=(scenario(run),), out=tmp_path, dsn=server))
    assert (result.status, result.reason, result.failed) == (Status.PASSED, "", ())


@pytest.mark.slow
def test_without_the_lock_of_a_lane_two_claims_come_to_neither(server: str, tmp_path: Path) -> None:
    result = played(server, tmp_path, scenario(run), "claim", LANE)
    assert result.status is Status.VIOLATED
    assert "odd" in [check.name for check in result.failed]
