"""Defects in how turns end and what follows them, and in how workers are woken."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.defects import InCode, InFunction, Instead
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.overlay import Patch
from timeball.certify.probes import turns, waking

_STORE: Final = "timeball.store.postgres.store"


TURNS: Final = (
    DurableMutant(
        id="M06",
        defect="the turn is not raised when a job comes back",
        probe=turns.AGAIN,
        patches=(InFunction("follow", "done.turn + 1 AS turn", "done.turn AS turn"),),
    ),
    DurableMutant(
        id="M09",
        defect="counts are made of two reads",
        probe=turns.COUNTED,
        patches=(Instead(_STORE, "PostgresStore.counts", turns.counts_twice),),
    ),
    DurableMutant(
        id="M10",
        defect="a cancel decides from what it read before it had the lane",
        probe=turns.CLAIMED_MEANWHILE,
        patches=(
            InFunction(
                "cancel_job",
                "CONTINUE WHEN NOT timeball.enter_lane(p_job, v_entry.turn, v_entry.lane);",
                "",
            ),
        ),
    ),
    DurableMutant(
        id="M34",
        defect="a crash is not counted",
        probe=turns.CRASHES,
        patches=(
            InFunction("follow", "+ (done.event = 'lost')::integer AS crashes", "AS crashes"),
        ),
    ),
    DurableMutant(
        id="M38",
        defect="a request to stop is read without the job's lock",
        probe=turns.CANCEL_MEANWHILE,
        patches=(
            InFunction(
                "follow",
                "PERFORM 1 FROM timeball.job WHERE job.id = ANY (p_job_ids)"
                " ORDER BY job.id FOR NO KEY UPDATE;",
                "",
            ),
        ),
    ),
    DurableMutant(
        id="M39",
        defect="a retry revives a job that was asked to stop",
        probe=turns.CANCEL_THEN_RETRY,
        patches=(InFunction("follow", "AND event.kind = 'cancel_requested'", "AND false"),),
    ),
    DurableMutant(
        id="M42",
        defect="a text with NUL is passed on, and fails all that are settled with it",
        probe=turns.POISON,
        patches=(
            Instead("timeball.certify.probes.turns", "storable", turns.not_made_storable),
            Instead(_STORE, "PostgresStore._settle_apart", turns.fails_all),
        ),
    ),
    DurableMutant(
        id="M43",
        defect="arguments are decoded within a claim, all of them before any job is handed out",
        probe=turns.UNDECODABLE,
        patches=(Instead(_STORE, "PostgresStore.claim", turns.claims_and_decodes),),
    ),
    DurableMutant(
        id="M45",
        defect="attempts are counted in sixteen bits",
        probe=turns.MANY_ATTEMPTS,
        patches=(
            InFunction(
                "follow",
                "coalesce(entry.attempts, 0) + done.began::integer AS attempts",
                "coalesce(entry.attempts, 0)::smallint + done.began::integer AS attempts",
            ),
        ),
    ),
    DurableMutant(
        id="M46",
        defect="what a job writes and its success are two transactions",
        probe=turns.CUT_OFF,
        patches=(
            Instead("timeball.store.postgres.within", "JobTransaction.settle", turns.settles_apart),
        ),
    ),
    DurableMutant(
        id="M47",
        defect="a submission within a transaction goes by a connection of its own",
        probe=turns.TAKEN_BACK,
        patches=(Instead(_STORE, "PostgresStore.submit_within", turns.submits_apart),),
    ),
    DurableMutant(
        id="M51",
        defect="turns that had not begun are blamed for the worker's death",
        probe=turns.NOT_BEGUN,
        patches=(InFunction("expire", "p_begun_jobs IS NULL OR EXISTS (", "true OR EXISTS ("),),
    ),
)

WAKING: Final = (
    DurableMutant(
        id="M36",
        defect="a listener that was cut off does not listen again",
        probe=waking.CUT_OFF,
        patches=(
            InCode(
                Patch(
                    "timeball.store.postgres.listen",
                    "listen",
                    "stop.wait(backoff_s)",
                    "return",
                )
            ),
        ),
    ),
)
