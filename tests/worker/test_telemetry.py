"""What a worker tells of itself is what the record says (I25), whatever became of its jobs."""

from __future__ import annotations

import random
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.proxy import proxied
from tests.worker.recount import decided, recounted, seconds, told
from tests.worker.supervision import configured, hold, submit, until

from timeball.action.registry import Registry
from timeball.client import Client
from timeball.core.records import CancelAnswer
from timeball.core.states import TERMINAL
from timeball.observe import families
from timeball.observe.board import Board
from timeball.store.postgres import PostgresStore
from timeball.worker.begun import BegunTable, rows
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker
from timeball.worker.supervisor import Supervisor, SupervisorConfig
from timeball.worker.telling import Counts

pytestmark = pytest.mark.slow

APP = """
import timeball as tb

QUICK = tb.Retry(1, base_s=0.01)

@tb.job(name="ok")
def ok(): return "a secret result"

@tb.job(name="flaky", retry=QUICK)
def flaky(context: tb.Context):
    if context.attempt == 1:
        raise OSError("a secret error")

@tb.job(name="bad", retry=QUICK)
def bad(): raise ValueError("always")

@tb.job(name="nap")
def nap(context: tb.Context):
    return tb.Snooze(0.01) if context.attempt == 1 else None

@tb.job(name="quits")
def quits(): return tb.Cancel("a secret reason")

@tb.job(name="wish", retry=QUICK)
def wish():
    (HERE / "wishing").touch()
    while not (HERE / "wished").exists():
        time.sleep(0.01)
    raise OSError
"""
KINDS = {"ok": 5, "flaky": 3, "bad": 2, "nap": 3, "quits": 2}


@pytest.fixture
def folder(folder: Path) -> Path:
    with (folder / "app.py").open("a") as app:
        app.write(APP)
    return folder


@pytest.fixture
def told_supervisor(
    dsn: str, folder: Path, supervise: Callable[[SupervisorConfig], Supervisor]
) -> Supervisor:
    made = configured(dsn, folder, children=2, metrics=("127.0.0.1", 0))
    return supervise(made)


def page(supervisor: Supervisor, path: str) -> str:
    with urllib.request.urlopen(f"{supervisor.metrics_url}{path}", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def value(supervisor: Supervisor, name: str, **labels: str) -> float:
    for family in text_string_to_metric_families(page(supervisor, "/metrics")):
        for sample in family.samples:
            if (sample.name, sample.labels) == (f"timeball_{name}", labels):
                return float(sample.value)
    pytest.fail(f"{name} is not told")


def test_the_counters_equal_what_the_record_gives(
    store: PostgresStore, folder: Path, told_supervisor: Supervisor
) -> None:
    client, open_ = Client(store), lambda: _open(store)
    lost, _ = hold(store, folder)  # given up while it runs, so that what it says is too late
    job = next(each for each in store.histories() if each.uuid == lost)
    given_up = store.expire(job.grants[0].worker, beat=None, begun={(job.id, 1)})
    assert given_up is not None
    (folder / "go").touch()

    wish = submit(store, "wish")
    until((folder / "wishing").exists, "it runs")
    assert client.cancel(wish) is CancelAnswer.REQUESTED
    (folder / "wished").touch()
    assert client.cancel(client.submit("ok", delay_s=3_600)) is CancelAnswer.CANCELLED
    submit(store, "nobody_knows_it")
    for kind, count in KINDS.items():
        for _ in range(count):
            submit(store, kind)
    until(lambda: open_() == ["nobody_knows_it"], "all have ended")
    # By itself: a turn that has ended and is not settled when its process dies counts as begun
    # for the metrics, and for the record as never begun.
    submit(store, "die")
    until(lambda: open_() == ["nobody_knows_it"], "it has died for good")
    totals = told_supervisor._telemetry._totals
    # What the test itself has given up, no supervisor has counted.
    mine = {(families.TURNS_EXPIRED.name, name): n for name, n in given_up._asdict().items()}

    def same() -> bool:
        expected = recounted(store.histories())
        expected.subtract(mine)
        return told(totals.read()) == +expected

    until(same, "the counters equal the record")
    counted = told(totals.read())
    assert counted[families.STALE.name, "hold"] == 1
    assert counted[families.RELEASES.name, "nobody_knows_it"] == 1
    assert counted[families.RETRIES.name, "wish"] == 1
    assert counted[families.TURNS_EXPIRED.name, "lost"] == 1
    assert counted[families.FINISHED.name, "quits", "cancelled"] == 2
    for family in (families.RUN, families.QUEUE_WAIT):
        recorded, said = seconds(store.histories(), totals.read(), family)
        assert said == pytest.approx(recorded, abs=1e-3)


@pytest.mark.slow
def test_decisions_of_schedules_and_the_clock_s_skew_are_told(
    store: PostgresStore, told_supervisor: Supervisor
) -> None:
    client = Client(store)
    client.schedule("ticking", "ok", cron="* * * * * *", tz="UTC")
    until(lambda: "cron_decisions_total{" in page(told_supervisor, "/metrics"), "one was decided")
    client.pause_schedule("ticking")

    def counted() -> dict[tuple[str, ...], int]:
        samples = told_supervisor._telemetry._totals.read().items()
        name = families.CRON_DECISIONS.name
        return {(name, *labels): n[0] for (found, labels), n in samples if found == name}

    until(lambda: counted() == decided(store.schedule_histories()), "each was counted once")
    assert value(told_supervisor, "cron_decisions_total", schedule="ticking", decision="fired") > 0
    assert abs(value(told_supervisor, "clock_skew_seconds")) < 5


def _is_ready(supervisor: Supervisor) -> bool:
    try:
        return page(supervisor, "/ready").endswith("have registered\n")
    except HTTPError as error:
        error.close()
        return False


def _open(store: PostgresStore) -> list[str]:
    return [job.kind for job in Client(store).jobs(limit=100) if job.state not in TERMINAL]


def test_the_page_tells_the_counters_and_no_secret(
    store: PostgresStore, told_supervisor: Supervisor
) -> None:
    for kind in ("ok", "flaky", "quits"):
        submit(store, kind, "{}")
    until(lambda: not _open(store), "all have ended")
    labels = {"kind": "flaky", "error_type": "OSError"}
    until(lambda: value(told_supervisor, "job_retries_total", **labels) == 1, "it is told")
    assert "secret" not in page(told_supervisor, "/metrics")
    assert value(told_supervisor, "worker_children") == 2
    assert value(told_supervisor, "store_up") == 1


def test_what_waits_is_told_by_queue_and_state(
    store: PostgresStore, told_supervisor: Supervisor
) -> None:
    until(lambda: _is_ready(told_supervisor), "somebody is ready")
    client = Client(store)
    client.submit("ok", delay_s=3_600)
    for _ in range(3):
        client.submit("ok", queue="elsewhere")
    until(
        lambda: value(told_supervisor, "jobs", queue="default", state="scheduled") == 1,
        "the scheduled one is told",
    )
    assert value(told_supervisor, "jobs", queue="default", state="pending") == 0
    assert "elsewhere" not in page(told_supervisor, "/metrics")


def test_ready_means_that_somebody_has_registered_and_live_that_the_loop_turns(
    dsn: str, folder: Path, supervise: Callable[[SupervisorConfig], Supervisor]
) -> None:
    (folder / "app.py").write_text("import time\ntime.sleep(3600)\n")
    supervisor = supervise(configured(dsn, folder, metrics=("127.0.0.1", 0)))
    assert page(supervisor, "/live") == "alive\n"
    with pytest.raises(HTTPError) as caught:
        page(supervisor, "/ready")
    with caught.value as error:
        assert (error.code, error.read()) == (503, b"no worker has registered yet\n")


def test_ready_is_red_for_as_long_as_the_database_is_away(
    direct: str, folder: Path, supervise: Callable[[SupervisorConfig], Supervisor]
) -> None:
    with proxied(direct) as way:
        supervisor = supervise(configured(way.dsn, folder, metrics=("127.0.0.1", 0)))
        until(lambda: _is_ready(supervisor), "it is ready")
        way.down()
        until(lambda: not _is_ready(supervisor), "it is not ready any more")
        with pytest.raises(HTTPError) as caught:
            page(supervisor, "/ready")
        with caught.value as error:
            assert (error.code, error.read()) == (503, b"the database does not answer\n")
        assert page(supervisor, "/live") == "alive\n"
        assert value(supervisor, "store_up") == 0
        way.up()
        until(lambda: _is_ready(supervisor), "it is ready again")


def test_nothing_is_served_unless_asked(
    config: SupervisorConfig, supervise: Callable[[SupervisorConfig], Supervisor]
) -> None:
    assert supervise(config).metrics_url is None


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board.create(rows(2))
    yield board
    board.close()


def test_turns_that_a_stop_gives_back_are_counted_as_the_record_says(
    store: PostgresStore, board: Board
) -> None:
    registry, begun, gate = Registry(), Event(), Event()

    @registry.job(name="wait")
    def wait() -> None:
        begun.set()
        gate.wait(30)

    submit(store, "wait")
    table = BegunTable.create(2)
    table._starts = board.starts
    config = WorkerConfig(name="w", slots=1, drain_s=0.0, poll_s=0.05)
    worker = Worker(store, registry, config, draw=random.random, begun=table)
    worker.tell(Counts(board, registry))
    thread = Thread(target=worker.work)
    thread.start()
    assert begun.wait(30)
    submit(store, "wait")
    worker.stop(now=True)
    until(lambda: told(board.read())[families.RELEASES.name, "wait"], "it is given back")
    gate.set()
    thread.join()
    table.close()
    assert told(board.read()) == recounted(store.histories())
