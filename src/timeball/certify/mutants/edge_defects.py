"""Defects of dependencies."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.defects import InFunction
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.probes import edges

_GRAPH_LOCK: Final = (
    "PERFORM pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);"
)


EDGES: Final = (
    DurableMutant(
        id="M11",
        defect="parents that have ended are looked at when a child is submitted, and not when its"
        " edges are linked",
        probe=edges.ADDED_LATE,
        patches=(InFunction("link", "timeball.tell_children(v_looked)", "NULL::text[]"),),
    ),
    DurableMutant(
        id="M12",
        defect="who ends a job does not take the graph's lock",
        probe=edges.LINKED_MEANWHILE,
        patches=(InFunction("settle", _GRAPH_LOCK, ""),),
    ),
    DurableMutant(
        id="M13",
        defect="whether a child may start is read from its parents, of which two end at once",
        probe=edges.TOGETHER,
        patches=(
            InFunction(
                "tell_children",
                "PERFORM 1 FROM timeball.held"
                " WHERE held.job_id = ANY (v_touched) AND held.state = 'waiting'"
                " ORDER BY held.job_id FOR UPDATE;",
                "",
            ),
            InFunction(
                "decide_edges",
                "held.all_left - told.alls AS all_left",
                "(SELECT count(*)::integer FROM timeball.dependency AS e WHERE e.child = told.child"
                " AND NOT timeball.has_ended(e.parent)) AS all_left",
            ),
        ),
    ),
    DurableMutant(
        id="M14",
        defect="which edges a parent has is read in the statement that waits for the graph's lock",
        probe=edges.LINKED_MEANWHILE,
        patches=(
            InFunction(
                "settle",
                _GRAPH_LOCK,
                "SELECT EXISTS (SELECT FROM timeball.dependency AS edge"
                " WHERE edge.parent = ANY (p_job_ids) AND edge.decided_at IS NULL"
                " AND edge.linked_at IS NOT NULL) INTO v_parents FROM timeball.share_graph();",
            ),
            InFunction("settle", "v_parents := EXISTS (", "v_limited := EXISTS ("),
        ),
    ),
    DurableMutant(
        id="M15",
        defect="a child starts while one parent is left",
        probe=edges.FAN_IN,
        patches=(InFunction("sentence", "AND p_all_left = 0", "AND p_all_left <= 1"),),
    ),
    DurableMutant(
        id="M16",
        defect="a parent that failed satisfies its child",
        probe=edges.FAILURE,
        patches=(InFunction("is_met", "WHEN 'all_success' THEN p_event = 'succeeded'", ""),),
    ),
    DurableMutant(
        id="M17",
        defect="children are not told in the transaction that ends their parents",
        probe=edges.FAN_IN,
        patches=(InFunction("settle", "v_parents := EXISTS (", "v_parents := false AND EXISTS ("),),
    ),
    DurableMutant(
        id="M50",
        defect="an edge is decided again when its parent ends again",
        probe=edges.ENDED_TWICE,
        patches=(
            InFunction(
                "decide_edges",
                "AND edge.decided_at IS NULL AND edge.linked_at",
                "AND edge.linked_at",
            ),
        ),
    ),
)
