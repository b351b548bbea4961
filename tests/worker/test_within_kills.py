"""A worker that is killed in the middle of a transactional job: its writes are kept once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worker.bank import Bank
from tests.worker.supervision import assert_clean, in_state, submit, until

from timeball.core.states import State
from timeball.worker.child import Load
from timeball.worker.supervisor import SupervisorConfig

APP = """
import os, signal
import psycopg
import timeball as tb
from timeball.store.postgres.within import JobTransaction

armed = None

def deadly(moment, call):
    def killed(*args):
        if armed == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args)
    return killed

JobTransaction.close = deadly("settled", JobTransaction.close)
psycopg.Connection.__exit__ = deadly("committed", psycopg.Connection.__exit__)

@tb.job(name="pay", transactional=True)
def pay(moment: str, ctx: tb.Context):
    global armed
    ctx.connection.execute("INSERT INTO public.effect VALUES (%s)", [ctx.attempt])
    if ctx.attempt == 1:
        armed = moment
        deadly("written", bool)()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "fate", [("written", 2), ("settled", 2), ("committed", 1), ("never", 1)], ids=str
)
def test_a_worker_that_is_killed_leaves_the_writes_of_one_attempt(
    fate: tuple[str, int],
    config: SupervisorConfig,
    bank: Bank,
    folder: Path,
    supervise: Callable,
) -> None:
    (moment, attempts), store = fate, bank.store
    (folder / "pays.py").write_text(APP)
    store.expire(bank.worker, beat=None, begun=())
    supervise(replace(config, loads=(Load(target=str(folder / "pays.py")),)))
    uuid = submit(store, "pay", f'{{"moment": "{moment}"}}')
    until(in_state(store, uuid, State.SUCCEEDED), "it has succeeded")
    assert (store.get(uuid).turn, store.get(uuid).crashes) == (attempts, attempts - 1)
    assert bank.watcher.execute("SELECT n FROM public.effect").fetchall() == [(attempts,)]
    assert_clean(store, 1)
