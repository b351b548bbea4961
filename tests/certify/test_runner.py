"""The harness itself: what it lends, what it leaves, and what it makes of a scenario's end."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

from timeball.certify.disasters.killed import POINTS
from timeball.certify.kinds import NOTE
from timeball.certify.queries import query
from timeball.certify.registry import SCENARIOS, selected
from timeball.certify.results import Exit
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Check, Outcome, Profile, Result, Scenario, Skipped, Status
from timeball.certify.sessions import Blocked, Refused
from timeball.certify.stage import Stage
from timeball.cli.certify import _ended_in_order
from timeball.cli.commands import timeball
from timeball.core.records import JobSpec
from timeball.errors import UsageError
from timeball.store.postgres.embedded import reset

SEEN = Outcome(expected={}, observed={}, witness={"fault": 1})
LANE = {"queue": "default"}


def scenario(run: Callable[[Stage], Outcome], **fields: object) -> Scenario:
    return Scenario(id="T", title="of a test", run=run, invariants=("I1",), **fields)  # type: ignore[arg-type]  # few


def played(dsn: str, out: Path, run: Callable[[Stage], Outcome], **fields: object) -> Result:
    order = Order(scenarios=(scenario(run, **fields),), out=out, dsn=dsn)
    (result,) = certify(order)
    return result


def databases(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        text = "SELECT count(*) FROM pg_database WHERE datname LIKE 'timeball_certify%'"
        return connection.execute(text).fetchone()[0]  # type: ignore[index]  # always one


@pytest.mark.slow
def test_a_scenario_has_a_database_of_its_own_that_is_gone_afterwards(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(stage: Stage) -> Outcome:
        assert stage.store.counts() == {}
        stage.submit([JobSpec(uuid=uuid4(), kind=NOTE)])
        assert databases(server) == 2
        return SEEN

    place = tmp_path / "t"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    assert [played(server, tmp_path, run).status for _ in range(2)] == [Status.PASSED] * 2
    assert databases(server) == 0
    assert list(place.iterdir()) == []
    events = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    told = [(each["call"], each["event"]) for each in events]
    assert told[:4] == [(call, how) for call in ("counts", "submit") for how in ("invoke", "ok")]
    assert told.count(("submit", "ok")) == 2


@pytest.mark.slow
def test_how_a_scenario_ends_is_told_apart(server: str, tmp_path: Path) -> None:
    def lacking(_: Stage) -> Outcome:
        raise Skipped("no such thing here")

    def stalling(stage: Stage) -> Outcome:
        stage.submit([JobSpec(uuid=uuid4(), kind=NOTE)])
        stage.drain()
        return SEEN

    def failing(_: Stage) -> Outcome:
        raise ZeroDivisionError

    def idle(_: Stage) -> Outcome:
        return Outcome(expected={}, observed={}, witness={"fault": 0})

    scenarios = (
        scenario(lacking),
        scenario(stalling, deadline_s=0.1),
        scenario(failing),
        scenario(idle),
    )
    results = certify(Order(scenarios=scenarios, out=tmp_path, dsn=server))
    assert [each.status for each in results] == [
        *(Status.SKIPPED, Status.VIOLATED, Status.BROKEN, Status.VACUOUS)
    ]
    assert [check.name for check in results[1].failed][:2] == ["progress", "audit"]
    assert "ZeroDivisionError" in results[2].reason
    assert results[3].reason == "never witnessed: fault"


@pytest.mark.slow
def test_a_step_gives_rows_or_who_is_in_the_way_or_the_error(server: str, tmp_path: Path) -> None:
    def run(stage: Stage) -> Outcome:
        stage.store.ensure_lanes([("default", 5)])
        one, two = stage.session().begin(), stage.session()
        assert isinstance(one.step(query("lock_lane"), LANE), list)
        step = two.step(query("lock_lane"), LANE)
        assert step == Blocked((one.pid,))
        one.commit()
        assert isinstance(two.outcome(), list)
        refused = one.step("SELECT 1 / 0")
        assert isinstance(refused, Refused)
        assert refused.sqlstate == "22012"
        one.begin()
        one.step(query("lock_lane"), LANE)
        assert isinstance(two.step(query("lock_lane"), LANE), Blocked)
        return SEEN  # and leaves both where they are

    assert played(server, tmp_path, run).status is Status.PASSED


@pytest.mark.slow
def test_a_session_that_is_left_is_a_violation(server: str, tmp_path: Path) -> None:
    stray: list[psycopg.Connection] = []

    def run(stage: Stage) -> Outcome:
        stray.append(psycopg.connect(stage.dsn))
        return SEEN

    try:
        result = played(server, tmp_path, run, deadline_s=0.3)
    finally:
        stray[0].close()
    assert [check.name for check in result.failed] == ["leaks"]


def test_a_scenario_that_stops_the_server_is_refused_a_server_of_others(
    server: str, tmp_path: Path
) -> None:
    deadly = scenario(lambda _: SEEN, own_server=True)
    order = Order(scenarios=(deadly,), out=tmp_path, dsn=server, named=True)
    with pytest.raises(UsageError, match="leave --dsn out"):
        certify(order)
    assert played(server, tmp_path, lambda _: SEEN, own_server=True).status is Status.SKIPPED


def test_an_id_is_unique_and_an_unknown_one_is_refused() -> None:
    ids = [each.id for each in SCENARIOS]
    assert len(ids) == len(set(ids))
    assert [each.id for each in selected(Profile.QUICK, ["A", "A"])] == ["A"]
    with pytest.raises(UsageError, match="write some of A, "):
        selected(Profile.QUICK, ["A", "Q"])


def test_a_worker_is_killed_at_a_dozen_points() -> None:
    assert len(set(POINTS)) >= 12


def ordered(out: Path, *words: str) -> int:
    return CliRunner().invoke(timeball, ["certify", "--out", str(out), *words]).exit_code


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"scenarios": {}}', b"\xff"])
def test_a_file_that_has_nothing_to_replay_is_refused_in_words(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_bytes(text)
    words = ["certify", "--replay", str(file), "--out", str(tmp_path)]
    done = CliRunner().invoke(timeball, words)
    assert done.exit_code == 2
    assert "has no scenarios to replay" in done.output
    assert file.read_bytes() == text


def test_where_nothing_can_be_written_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert ordered(tmp_path / "file" / "out", "--scenario", "B") == Exit.BROKEN


def test_what_fails_in_the_harness_is_no_broken_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("timeball.certify.runner.certify", fails)
    (tmp_path / "results.json").write_text("of an earlier run")
    assert ordered(tmp_path, "--scenario", "B") == Exit.BROKEN
    assert [path.name for path in tmp_path.iterdir()] == ["history.jsonl"]


def test_what_went_wrong_is_told_once_more_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(order: Order, _say: object) -> list[Result]:
        check = Check("once", holds=False, text="a job began twice")
        fine = Result(
            scenario=order.scenarios[0], seed=1, status=Status.PASSED, outcome=SEEN, checks=()
        )
        return [replace(fine, status=Status.VIOLATED, checks=(check,)), fine]

    monkeypatch.setattr("timeball.certify.runner.certify", some)
    done = CliRunner().invoke(timeball, ["certify", "--out", str(tmp_path), "--scenario", "B"])
    *_, broken, last = done.output.splitlines()
    assert done.exit_code == Exit.VIOLATED
    assert broken == "B: violated in 0.0 s (once: a job began twice)"
    assert last.startswith("violated: see ")
    assert done.output.count("B: ") == 1


def test_without_a_server_nobody_knows(tmp_path: Path) -> None:
    assert ordered(tmp_path, "--dsn", "host=/nowhere dbname=x") == Exit.BROKEN


@pytest.mark.slow
def test_a_server_that_goes_away_breaks_what_follows_and_all_is_told(tmp_path: Path) -> None:
    def kills(stage: Stage) -> Outcome:
        stage.workers()
        stage.session().begin()
        assert stage.terms.own_server is not None
        reset(stage.terms.own_server)
        return SEEN

    scenarios = (scenario(lambda _: SEEN), scenario(kills), scenario(lambda _: SEEN))
    results = certify(Order(scenarios=scenarios, out=tmp_path))
    assert [each.status for each in results] == [Status.PASSED, Status.BROKEN, Status.BROKEN]


def test_one_signal_ends_it_and_those_that_follow_do_not_disturb_that() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    tidied = []

    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            tidied.append(True)

    with pytest.raises(SystemExit) as ended, _ended_in_order():
        interrupted()
    assert (ended.value.code, tidied) == (128 + signal.SIGTERM, [True])
    assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
