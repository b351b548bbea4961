"""Two `timeball up` of the same files on one database: each occurrence is one job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from uuid import uuid4

import psycopg
import pytest
from tests.e2e.programs import Place, Program, until
from tests.e2e.soundness import assert_sound

from timeball.client import Client
from timeball.core.audit import Report
from timeball.core.states import TERMINAL, State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.migrate import migrate

pytestmark = pytest.mark.slow

APP = """
import timeball as tb

@tb.cron("* * * * * *", "UTC", catchup="all")
@tb.job(name="tick")
def tick(context: tb.Context) -> str:
    return context.occurrence.nominal_local
"""
CRONTAB = '* * * * * echo "minute $TIMEBALL_NOMINAL_AT"\n'
SECONDS = 8

# So that the turn of a minute lies within the few seconds of a test, wherever they lie.
TRAVEL = """
CREATE OR REPLACE FUNCTION timeball.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN statement_timestamp() + interval '{shift} s';
CREATE OR REPLACE FUNCTION timeball.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN clock_timestamp() + interval '{shift} s';
"""
LEAD_S = 6


@pytest.fixture
def early(server: str) -> Iterator[str]:
    """A migrated database of its own, whose clock is a few seconds before a full minute."""
    name = f"e2e_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        dsn = server.replace("/postgres?", f"/{name}?")
        connections = Connections(dsn)
        migrate(connections)
        connections.close()
        with psycopg.connect(dsn) as connection:
            row = connection.execute("SELECT extract(second FROM now())").fetchone()
            assert row is not None
            connection.execute(TRAVEL.format(shift=60 - LEAD_S - row[0]).encode())
        yield dsn
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class Site:
    """A place with the two files, and the database on which they are run."""

    def __init__(self, place: Place, store: PostgresStore, dsn: str) -> None:
        self.place, self.store, self.client, self.dsn = place, store, Client(store), dsn
        place.write("app.py", APP)
        place.write("minute.cron", CRONTAB)

    def up(self) -> Program:
        return self.place.start("up", "app.py", "minute.cron", "--slots", "4")

    def decisions(self) -> Counter[str]:
        """How many occurrences of each schedule have been decided; each of them once."""
        found = Counter[str]()
        for record, rows in self.store.schedule_histories():
            nominal = [row.nominal_at for row in rows]
            assert len(nominal) == len(set(nominal))
            found[record.name.partition("-")[0]] += len(nominal)
        return found

    def workers(self, program: Program) -> list[int]:
        """The ids under which a program's processes are registered."""
        with psycopg.connect(self.dsn) as connection:
            query = "SELECT id FROM timeball.worker WHERE name LIKE %s AND ended_at IS NULL"
            return [row[0] for row in connection.execute(query, [f"up-{program.pid}-%"])]

    def at_work(self, program: Program) -> None:
        until(lambda: self.workers(program) != [], "a worker of the program is registered")

    def bury(self, killed: Program) -> None:
        """Give up the workers of a program that has been waited for; else it takes a lease."""
        for worker in self.workers(killed):
            self.store.expire(worker, beat=None, begun=None)

    def ticks(self, number: int) -> None:
        until(lambda: self.decisions()["tick"] >= number, f"{number} occurrences are decided")

    def finish(self) -> Report:
        """End the schedules, wait until all that they have added is done, and audit it."""
        schedules = self.client.schedules()
        for source in {each.spec.source for each in schedules}:
            self.client.withdraw(source, keep=())

        def quiet() -> bool:
            counts = self.client.counts()
            return not any(count for state, count in counts.items() if state not in TERMINAL)

        until(quiet, "all that was added has ended")
        return assert_sound(self.store, sum(self.decisions().values()), schedules)


@pytest.fixture
def site(
    early: str, make_place: Callable[[str], Place], open_store: Callable[[str], PostgresStore]
) -> Site:
    return Site(make_place(early), open_store(early), early)


def test_each_occurrence_is_one_job_though_one_of_two_is_killed_and_comes_back(site: Site) -> None:
    first, second = site.up(), site.up()
    site.at_work(first)  # the ticks below may all be the other one's
    site.ticks(3)
    first.kill()
    site.bury(first)
    site.ticks(5)
    third = site.up()
    until(lambda: site.decisions()["minute:echo"] >= 1, "a minute has turned")
    site.ticks(SECONDS)
    third.wait_for("Ctrl-C stops")
    report = site.finish()
    assert third.stop() == second.stop() == 0
    assert report.jobs >= SECONDS + 1
    assert report.states == {State.SUCCEEDED: report.jobs}
    job = next(job for job in site.client.jobs(limit=500) if job.kind.startswith("minute:"))
    assert job.result["output"].startswith("minute ")


def test_an_edited_file_withdraws_what_it_lost_and_renews_what_it_changed(site: Site) -> None:
    keep, change, drop = ("0 3 * * * echo keep", "0 4 * * * echo change", "0 5 * * * echo drop")
    site.place.write("minute.cron", f"{CRONTAB}{keep}\n{change}\n{drop}\n")
    first = site.up()
    site.ticks(1)
    before = {each.spec.name: each for each in site.client.schedules()}
    assert first.stop() == 0

    site.place.write("minute.cron", f"{CRONTAB}{keep}\n{change.replace('4', '6')}\n")
    second = site.up()
    second.wait_for("Ctrl-C stops")
    assert second.written.count("withdrawn, for it is no longer in its file: minute:") == 2
    after = {each.spec.name: each for each in site.client.schedules()}
    kept, new, gone = before.keys() & after, after.keys() - before, before.keys() - after
    assert sorted(name.partition("-")[0] for name in kept) == ["minute:echo", "minute:echo", "tick"]
    assert [before[name].id for name in sorted(kept)] == [after[name].id for name in sorted(kept)]
    assert [after[name].spec.expression for name in new] == ["0 6 * * *"]
    assert sorted(before[name].spec.expression for name in gone) == ["0 4 * * *", "0 5 * * *"]
    site.ticks(site.decisions()["tick"] + 1)
    site.finish()
    assert second.stop() == 0
