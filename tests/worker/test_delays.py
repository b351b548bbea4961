"""A job that waits for longer than leases last belongs to nobody meanwhile, and runs once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.worker.supervision import assert_clean, configured, in_state, submit, until

from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.supervisor import SupervisorConfig

SHORT_S = 1.0
WORKERS = 3


@pytest.mark.slow
def test_a_delay_of_three_leases_ends_in_one_run_among_many_workers(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    for _ in range(WORKERS):
        supervise(configured(config.dsn, folder, lease_s=SHORT_S))
    until(lambda: len(list(store.pulses())) == WORKERS, "all are there")
    uuid = submit(store, "note", '{"text": "once"}', delay_s=3 * SHORT_S)
    until(in_state(store, uuid, State.SUCCEEDED), "it has run")
    job = store.get(uuid)
    assert (job.turn, job.attempts, job.crashes) == (1, 1, 0)
    assert (folder / "notes").read_text().split() == ["once"]
    assert_clean(store, 1)
