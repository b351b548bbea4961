"""The plans that the server used, nested statements too, and what each of them touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from timeball.store.postgres.connections import statement

EXPLAIN = (
    "LOAD 'auto_explain'",
    "SET client_min_messages = log",
    "SET auto_explain.log_min_duration = 0",
    "SET auto_explain.log_nested_statements = on",
    "SET auto_explain.log_analyze = on",
    "SET auto_explain.log_buffers = on",
    "SET auto_explain.log_timing = off",
    "SET auto_explain.log_format = json",
)
# A life: `jobs` that ended, a tenth of them retried once; leases of a thousand; and held ones.
SEED = (
    "SELECT timeball.ensure_lane('default', 5)",
    "SELECT timeball.register('w', '{a}', '{default}', 9)",
    """INSERT INTO timeball.job (uuid, lane, kind, args, max_retries, max_crashes, at_most_once)
    SELECT gen_random_uuid(), 1, 'a', '{}', 3, 3, false FROM generate_series(1, %(jobs)s)""",
    "INSERT INTO timeball.entry (lane, job_id) SELECT 1, id FROM timeball.job ORDER BY id",
    """INSERT INTO timeball.entry (lane, job_id, turn, attempts, failures, crashes, delay_s)
    SELECT 1, id, 2, 1, 1, 0, 1.0 FROM timeball.job WHERE id %% 10 = 0""",
    """INSERT INTO timeball.ended (job_id, turn, event, began_at, worker)
    SELECT job_id, turn,
        CASE WHEN turn = 1 AND job_id %% 10 = 0 THEN 'retried' ELSE 'succeeded' END, now(), 1
    FROM timeball.entry ORDER BY job_id, turn""",
    """INSERT INTO timeball.lease
        (lane, seq, worker, request, floor, prev, cur, pos_xid, pos_id, job_ids, turns)
    SELECT 1, job_id / 1000 + 1, 1, gen_random_uuid(), job_id / 1000 + 1,
        pg_current_snapshot(), pg_current_snapshot(), '0', 0, array_agg(job_id), array_agg(turn)
    FROM timeball.entry GROUP BY job_id / 1000""",
    """INSERT INTO timeball.job
        (uuid, lane, kind, args, max_retries, max_crashes, at_most_once, run_at)
    SELECT gen_random_uuid(), 1, kind, '{}', 3, 3, false, run_at
    FROM (SELECT 'a' AS kind, now() + interval '1 day' AS run_at
        FROM generate_series(1, %(jobs)s / 10)
        UNION ALL SELECT 'nobody', NULL FROM generate_series(1, %(jobs)s / 10)) AS t""",
    """INSERT INTO timeball.held (job_id, turn, state, lane, run_at, kind, reason, at)
    SELECT id, 1, CASE WHEN kind = 'a' THEN 'scheduled' ELSE 'pending' END, 1, run_at, kind,
        CASE WHEN kind <> 'a' THEN 'no_worker' END, now() - interval '1 minute'
    FROM timeball.job WHERE id > %(jobs)s""",
    """INSERT INTO timeball.event (kind, job_id, turn, worker)
    SELECT 'stale_settlement', id, 1, 1 FROM timeball.job WHERE id %% 20 = 0""",
)


@dataclass
class Plan:
    """One statement that was carried out."""

    query: str
    root: dict[str, Any]

    @property
    def blocks(self) -> int:
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])

    def nodes(self) -> Iterator[dict[str, Any]]:
        todo = [self.root]
        while todo:
            node = todo.pop()
            yield node
            todo += node.get("Plans", ())

    def scanned(self) -> set[str]:
        """The tables that were read from their beginning."""
        return {node["Relation Name"] for node in self.nodes() if node["Node Type"] == "Seq Scan"}

    def most_rows(self) -> int:
        """Rows that the busiest scan of a table read, also those that it threw away."""
        return max(
            (
                round(node["Actual Loops"] * (node["Actual Rows"] + node.get(removed, 0)))
                for node in self.nodes()
                for removed in ("Rows Removed by Filter",)
                if "Relation Name" in node and "Scan" in node["Node Type"]
            ),
            default=0,
        )


class Explained:
    """A connection that tells how each of its statements was carried out."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.add_notice_handler(self._hear)
        self._heard: list[Plan] = []
        for setting in EXPLAIN:
            self.connection.execute(setting)
        self._heard.clear()

    def run(self, name: str, params: dict[str, Any]) -> tuple[list[tuple[Any, ...]], list[Plan]]:
        """Run the store's statement of that name; return its rows and all plans in it."""
        return self.ask(statement(name), params)

    def ask(
        self, query: str | bytes, params: dict[str, Any] | None = None
    ) -> tuple[list[tuple[Any, ...]], list[Plan]]:
        """Run any query; return its rows and all plans in it."""
        self._heard = []
        cursor = self.connection.execute(query, params)
        return cursor.fetchall() if cursor.description else [], self._heard

    def close(self) -> None:
        self.connection.close()

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            plan = json.loads(text)
            self._heard.append(Plan(plan["Query Text"], plan["Plan"]))


def seed(dsn: str, jobs: int) -> None:
    """Fill the empty tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in SEED:
            connection.execute(text, {"jobs": jobs} if "%" in text else None)
