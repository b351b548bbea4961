"""What the statements about schedules read: no more where there are more, or more has been."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.store.postgres.plans import Explained, Plan, seed
from tests.store.world import schedule

from timeball.core.records import (
    Decision,
    Firing,
    OccurrenceDecision,
    OverlapRuns,
    Schedule,
    Standing,
)
from timeball.store.postgres import PostgresStore

DUE, MANY = 40, 10_000
GROWING = {"schedule", "occurrence", "job", "entry", "ended", "held", "lease", "event"}
HOUR = timedelta(hours=1)
pytestmark = pytest.mark.slow

COLUMNS = """kind, expression, tz, gap, overlap, terms, args, queue, priority, max_retries,
    max_crashes, delivery, catchup, catchup_window_s, catchup_limit, grace_s, overlap_runs,
    source, active_from, cursor_at, zone_version, fingerprint, offset_s"""
SEED = (
    f"""INSERT INTO timeball.schedule (name, next_at, due_at, runs, {COLUMNS})
    SELECT name || n, now() + interval '1 day', now() + interval '1 day', ARRAY[n], {COLUMNS}
    FROM timeball.schedule, generate_series(1, {MANY}) AS n WHERE name = 'allow'""",
    f"""INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, reason)
    SELECT id, now() - (2 + n) * interval '1 day', 'skipped', 'paused'
    FROM timeball.schedule, generate_series(1, 500) AS n WHERE id <= {DUE}""",
)


def fill(dsn: str, store: PostgresStore) -> None:
    """A few schedules that are due, each policy among them, and many that are not."""
    seed(dsn, MANY)
    now = store.now()
    for n in range(DUE):
        policy = list(OverlapRuns)[n % 4]
        name = "allow" if n == 0 else f"due-{n}"
        spec = schedule(name, overlap_runs=policy)
        store.declare(spec, Standing(now - 2 * HOUR, now - HOUR))
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in SEED:
            connection.execute(text.encode())


def early(dsn: str, store: PostgresStore) -> None:
    """Statistics of tables that are all but empty."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")
    fill(dsn, store)


def fresh(dsn: str, store: PostgresStore) -> None:
    """Statistics of the tables as they are."""
    fill(dsn, store)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")


class Heard(PostgresStore):
    """A store whose statements tell their plans."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.explained, self.plans = Explained(dsn), list[tuple[str, list[Plan]]]()
        self._run = self.noted
        self.connections.run = self.noted  # type: ignore[method-assign]  # of this test only

    def noted(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        rows, plans = self.explained.run(name, params)
        self.plans.append((name, plans))
        return rows

    def close(self) -> None:
        self.explained.close()
        super().close()


def firing(read: Schedule, hours: int = 1) -> Firing:
    at = read.cursor + hours * HOUR
    decision = OccurrenceDecision(at, Decision.FIRED, None, "{}")
    return Firing(read, [decision], Standing(at, at + HOUR))


def carried_out(dsn: str) -> Iterator[tuple[str, list[Plan]]]:
    store = Heard(dsn)
    store.plans.clear()
    names = ["allow", *(f"due-{n}" for n in range(1, DUE))]
    assert len(store.noted("take_due", limit=1_000)) == DUE
    for _ in range(2):  # the second time there are runs before
        read = [store.schedule(name) for name in names]
        assert None not in store.fire([firing(each) for each in read])
    store.admit(100)
    first = store.schedule("allow")
    store.backfill(first, [firing(first, -n).decisions[0] for n in range(1, 20)])
    assert len(store.occurrences("allow", limit=20)) == 20
    store.pause("allow")
    paused = store.schedule("allow")
    assert store.resume(paused, Standing(paused.cursor, None))
    store.close()
    yield from store.plans


@pytest.mark.parametrize("statistics", [early, fresh])
def test_no_statement_reads_a_growing_table_from_its_beginning(
    dsn: str, statistics: Callable[[str, PostgresStore], None]
) -> None:
    store = PostgresStore(dsn)
    statistics(dsn, store)
    store.close()
    seen = set()
    for name, plans in carried_out(dsn):
        seen.add(name)
        for plan in plans:
            assert not plan.scanned() & GROWING, f"{name}: {plan.query}"
            if name != "occurrences" or statistics is fresh:  # at worst, one schedule's record
                assert plan.most_rows() <= 8 * DUE, f"{name}: {plan.query}"
    assert {"take_due", "fire", "admit", "backfill", "occurrences", "schedule"} <= seen
