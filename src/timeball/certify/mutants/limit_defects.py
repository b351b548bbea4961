"""Defects of limits, of pages, and of schedules in the database."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.defects import InFunction, InSchema
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.probes import limits, schedules

LIMITS: Final = (
    DurableMutant(
        id="M03",
        defect="a page is locked by IN (… LIMIT n SKIP LOCKED), which a plan may run many times",
        probe=limits.A_PAGE,
        patches=(
            InFunction(
                "promote",
                "WITH due AS MATERIALIZED ( SELECT held.job_id FROM timeball.held",
                "WITH due AS (UPDATE timeball.held AS again SET at = again.at"
                " WHERE again.job_id IN (SELECT held.job_id FROM timeball.held",
                (
                    (
                        "LIMIT p_limit FOR UPDATE SKIP LOCKED ),",
                        "LIMIT p_limit FOR UPDATE SKIP LOCKED ) RETURNING again.job_id),",
                    ),
                    (
                        "SET enable_seqscan = off",
                        "SET enable_material = off SET enable_hashagg = off SET enable_sort = off",
                    ),
                ),
            ),
        ),
    ),
    DurableMutant(
        id="M37",
        defect="slots are counted and not kept apart: two who count at once both come in",
        probe=limits.ADMITTED_AT_ONCE,
        patches=(InSchema("ALTER TABLE timeball.slot DROP CONSTRAINT slot_pkey"),),
    ),
    DurableMutant(
        id="M40",
        defect="permits are read without their lock",
        probe=limits.ASKED_AT_ONCE,
        patches=(
            InFunction(
                "permits",
                'ORDER BY permit.name COLLATE "C" FOR UPDATE;',
                'ORDER BY permit.name COLLATE "C";',
            ),
        ),
    ),
    DurableMutant(
        id="M41",
        defect="a permit counts as used when it was granted, not when it may have been used",
        probe=limits.NOT_USED_YET,
        patches=(InFunction("permit_take", "p_at + 1001000", "p_at"),),
    ),
    DurableMutant(
        id="M44",
        defect="one slot that somebody else has just taken fails all who are admitted with it",
        probe=limits.ADMITTED_AT_ONCE,
        patches=(InFunction("take_slots", "ON CONFLICT DO NOTHING", ""),),
    ),
    DurableMutant(
        id="M32",
        defect="the next page of a sweep begins where the last one did",
        probe=limits.LAST_PAGE,
        patches=(
            InFunction(
                "trim_jobs",
                "SELECT array_agg(page.id), max(page.id),",
                "SELECT array_agg(page.id), p_after,",
            ),
        ),
    ),
)

SCHEDULES: Final = (
    DurableMutant(
        id="M18",
        defect="an occurrence may have two rows",
        probe=schedules.KEY_HOLDS,
        patches=(InSchema("ALTER TABLE timeball.occurrence DROP CONSTRAINT occurrence_pkey"),),
    ),
    DurableMutant(
        id="M19",
        defect="who has read an older cursor writes nevertheless",
        probe=schedules.READ_BEFORE,
        patches=(InFunction("fire", "AND schedule.cursor_at = asked.seen", ""),),
    ),
)
