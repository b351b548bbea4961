"""A worker and a client that are not the schema's owner do all their work with their own roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.cli.processes import Home, temporary_home, until

import timeball as tb
from timeball.core.states import State

pytestmark = pytest.mark.slow

APP = """
import timeball as tb

@tb.job(name="plain")
def plain(ctx: tb.Context, text: str = "") -> str:
    ctx.log("a line")
    ctx.progress(1, 2)
    return text

@tb.job(name="flaky", retry=tb.Retry(2, base_s=0.01))
def flaky(ctx: tb.Context) -> int:
    if ctx.attempt == 1:
        raise OSError("once")
    return ctx.attempt

@tb.job(name="child")
def child(ctx: tb.Context) -> int:
    return len(ctx.parents())

@tb.job(name="pays", transactional=True)
def pays(ctx: tb.Context) -> None:
    ctx.connection.execute("INSERT INTO public.payment VALUES (1)")

@tb.job(name="dies", max_crashes=2)
def dies() -> None:
    import os
    os._exit(9)

@tb.job(name="quits")
def quits() -> tb.Cancel:
    return tb.Cancel("a reason")
"""
USERS = """
CREATE TABLE public.payment (n int);
CREATE ROLE runner LOGIN PASSWORD 'word' IN ROLE timeball_worker;
CREATE ROLE web LOGIN PASSWORD 'word' IN ROLE timeball_client;
CREATE ROLE boss LOGIN PASSWORD 'word' IN ROLE timeball_operator;
GRANT INSERT ON public.payment TO runner;
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "app.py").write_text(APP)
    with temporary_home(tmp_path / "home") as home:
        home.said("db", "start")
        yield home


@pytest.fixture
def users(home: Home) -> dict[str, str]:
    """The DSN of a user of each role, by its name."""
    owner = home.said("db", "url").strip()
    home.said("db", "roles", "--apply")
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(USERS.encode())
    return {
        user: psycopg.conninfo.make_conninfo(owner, user=user, password="word")
        for user in ("runner", "web", "boss")
    }


def cancel_twice(web: tb.Client) -> None:
    later = web.submit("plain", delay_s=3_600)
    assert later.cancel() == "cancelled"
    assert web.revive(later) == "revived"
    assert later.cancel() == "cancelled"


def test_a_worker_and_a_client_need_no_right_that_their_role_has_not(
    home: Home, users: dict[str, str]
) -> None:
    """Retries, keys, parents, rates, notes, transactions, crashes, schedules, retention."""
    with tb.connect(users["boss"]) as boss:
        boss.limit(queue="rated", rate="50/s")
        boss.limit(queue="few", at_once=1)
    words = ("-a", "app.py", "--queue", "default", "--queue", "rated", "--queue", "few")
    quick = ("--poll", "0.1s", "--keep", "1s", "--keep-failed", "ever")
    worker = home.start("worker", *words, *quick, "--dsn", users["runner"])
    with worker, tb.connect(users["web"]) as web:
        web.schedule("often", "plain", cron="@every 1s", tz="UTC")
        parent = web.submit("plain", text="x", max_retries=0)
        jobs = [
            *(web.submit("plain", key="k") for _ in range(3)),
            *(web.submit("plain", queue=queue) for queue in ("rated", "few") for _ in range(3)),
            web.submit("plain", unique="u", delay_s=0.1),
            web.submit("child", after=[parent]),
            web.submit("flaky"),
            web.submit("pays"),
        ]
        until(lambda: web.logs(parent), "its line is kept")  # before its process may die
        bad = [web.submit("dies"), web.submit("quits")]
        cancel_twice(web)
        assert [job.wait(40).state for job in bad] == [State.FAILED, State.CANCELLED]
        until(lambda: {decided.job for decided in web.occurrences("often")} - {None}, "it fires")
        web.remove_schedule("often")
        left = (State.PENDING, State.RUNNING, State.SCHEDULED, State.WAITING)
        until(lambda: not any(map(web.counts().get, left)), "all have ended")
        assert {web.get(job).state for job in jobs} == {State.SUCCEEDED}
    again = home.start("worker", *words, *quick, "--dsn", users["runner"])
    with again, tb.connect(users["web"]) as web:  # it looks at what is too old as it starts
        gone = "what has succeeded has been deleted"
        until(lambda: web.counts().get(State.SUCCEEDED, 0) == 0, gone)
    for each in (worker, again):
        assert each.process.returncode == 0, each.written
        assert "denied" not in each.written
        assert "Traceback" not in each.written
    assert home.run("audit", "--dsn", users["web"]).returncode == 0
    with psycopg.connect(home.said("db", "url").strip()) as owner:
        assert owner.execute("SELECT count(*) FROM public.payment").fetchone() == (1,)
