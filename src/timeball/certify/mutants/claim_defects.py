"""Defects of claims."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.defects import InFunction, InSchema, InStatement
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.probes import claims

_LANE_LOCK: Final = (
    "PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);"
)
_GRAPH_LOCK: Final = (
    "PERFORM pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);"
)


CLAIMS: Final = (
    DurableMutant(
        id="M01",
        defect="a claim reads, then writes: neither the lane's lock nor the lease's key",
        probe=claims.TWO_AT_ONCE,
        patches=(
            InFunction("claim", _LANE_LOCK, ""),
            InSchema(
                "ALTER TABLE timeball.lease DROP CONSTRAINT lease_pkey;"
                "CREATE INDEX lease_order ON timeball.lease (lane, seq)"
            ),
        ),
    ),
    DurableMutant(
        id="M02",
        defect="a claim does not take the lane's lock: only the lease's key stands between two",
        probe=claims.TWO_AT_ONCE,
        patches=(InFunction("claim", _LANE_LOCK, ""),),
    ),
    DurableMutant(
        id="M04",
        defect="a settlement is accepted from whoever names the lease",
        probe=claims.NOT_ITS_OWN,
        patches=(
            InFunction(
                "settle",
                "AND lease.seq = pair.seq AND lease.worker = p_worker",
                "AND lease.seq = pair.seq",
            ),
        ),
    ),
    DurableMutant(
        id="M05",
        defect="a worker that was given up beats on",
        probe=claims.BEATS_ON,
        patches=(InStatement("beat", "AND worker.ended_at IS NULL", ""),),
    ),
    DurableMutant(
        id="M07",
        defect="the window leaves out the transactions that were in progress at its beginning",
        probe=claims.LATE_COMMIT,
        patches=(InFunction("ahead", "WHERE pg_visible_in_snapshot(x, p_cur)", "WHERE false"),),
    ),
    DurableMutant(
        id="M08",
        defect="the window takes in what its second snapshot does not show",
        probe=claims.WINDOW,
        patches=(
            InFunction(
                "ahead",
                "WHERE x >= pg_snapshot_xmax(p_prev)",
                "WHERE false",
                (("WHERE pg_visible_in_snapshot(x, p_cur)", ""),),
            ),
        ),
    ),
    DurableMutant(
        id="M20",
        defect="a claim does not ask whether its worker was given up",
        probe=claims.GIVEN_UP,
        patches=(
            InFunction(
                "claim",
                "FROM timeball.worker WHERE worker.id = p_worker AND worker.ended_at IS NULL;",
                "FROM timeball.worker WHERE worker.id = p_worker;",
                (
                    (
                        "WHERE worker.id = p_worker AND worker.ended_at IS NULL FOR KEY SHARE",
                        "WHERE worker.id = p_worker FOR KEY SHARE",
                    ),
                ),
            ),
        ),
    ),
    DurableMutant(
        id="M21",
        defect="a claim runs in any transaction, whatever that has written or seen",
        probe=claims.DIRTY,
        patches=(
            InFunction(
                "claim",
                "IF current_setting('transaction_isolation') <> 'read committed'"
                " OR pg_current_xact_id_if_assigned() IS NOT NULL THEN",
                "IF false THEN",
            ),
        ),
    ),
    DurableMutant(
        id="M27",
        defect="a claim locks a table",
        probe=claims.WEAK_LOCKS,
        patches=(
            InFunction(
                "claim", _LANE_LOCK, f"LOCK TABLE timeball.entry IN SHARE MODE; {_LANE_LOCK}"
            ),
        ),
    ),
    DurableMutant(
        id="M28",
        defect="a claim does not ask whether a turn has ended",
        probe=claims.CANCELLED,
        patches=(
            InFunction(
                "claim",
                "WHERE ended.job_id = seen.job_id AND ended.turn = seen.turn ) IS NULL",
                "WHERE false ) IS NULL",
            ),
        ),
    ),
    DurableMutant(
        id="M29",
        defect="rows of several jobs are locked in another order than elsewhere",
        probe=claims.IN_ORDER,
        patches=(
            InFunction("follow", "ORDER BY job.id FOR NO KEY", "ORDER BY job.id DESC FOR NO KEY"),
        ),
    ),
    DurableMutant(
        id="M52",
        defect="the cursor stays in front of what was cancelled",
        probe=claims.MANY_CANCELLED,
        patches=(
            InFunction(
                "claim",
                "(SELECT seen.xid, seen.job_id FROM seen WHERE taken.n < v_limit"
                " ORDER BY seen.xid DESC, seen.job_id DESC LIMIT 1)",
                "(SELECT v_pos_xid, v_pos_id FROM seen WHERE taken.n < v_limit LIMIT 1)",
            ),
        ),
    ),
)
