"""Every two verbs that meet on the same limits, in either order: no cycle, each slot in its place.

The first verb runs in an open transaction, the second beside it; the second answers at once or
waits for the first, which then commits or is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from uuid import UUID, uuid4

import pytest
from tests.postgres import empty
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    expire_of,
    settle_of,
    submit,
    until,
)

from timeball.core.audit import audit, stray_violations
from timeball.core.limits import Scope, limit_violations
from timeball.core.records import Settlement
from timeball.core.states import TERMINAL, Ending
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement

Make = Callable[[], Session]
KEYS = ("k", "l", "m", "n")
AT_ONCE = 5
FLOORS = {1: 1}
"""Turns of the only lane stay open from its first lease on."""

# Those whose slots count: of keys from the entry on, of queues from the grant on.
LOOSE = """
WITH wanted AS (
    SELECT 'key' AS scope, job.key AS name, job.id FROM timeball.job
    JOIN timeball.jobs ON jobs.id = job.id
    WHERE job.key IS NOT NULL AND jobs.state IN ('pending', 'running')
      AND NOT EXISTS (SELECT FROM timeball.held WHERE held.job_id = job.id)
    UNION ALL
    SELECT 'queue', jobs.queue, jobs.id FROM timeball.jobs WHERE jobs.state = 'running'
)
(SELECT scope, name, id, 'lacks a slot' FROM wanted
 EXCEPT SELECT scope, name, job_id, 'lacks a slot' FROM timeball.slot)
UNION ALL
(SELECT scope, name, job_id, 'has one for nothing' FROM timeball.slot
 EXCEPT SELECT scope, name, id, 'has one for nothing' FROM wanted)
"""


# A deadline that passes at this instant.
LATE = (
    "UPDATE timeball.job SET expires_at = now() WHERE uuid = %s",
    """UPDATE timeball.entry SET expires_at = job.expires_at FROM timeball.job
    WHERE job.id = entry.job_id AND job.uuid = %s""",
    "INSERT INTO timeball.deadline SELECT id, expires_at FROM timeball.job WHERE uuid = %s",
)


class Scene:
    """Jobs at every place where a limit counts them, and what each verb is to do about them."""

    def __init__(self, store: PostgresStore, watcher: Session) -> None:
        self.store, self._watcher = store, watcher
        empty(watcher.connection, plans=True)
        store._lanes.clear()
        store.limit(Scope.QUEUE, "default", AT_ONCE)
        kinds = {"kinds": ["a"], "queues": ["default"], "lease_s": 30.0}
        self._dying, self.worker = store.register("x", **kinds), store.register("w", **kinds)
        failed, revived = submit(store, 1, key="k"), submit(store, 1, key="l")
        for turn in claim_all(store, self.worker):
            said = Settlement(*turn[:4], Ending.FAILED, began_at=turn.granted_at, reason="x")
            store.settle(self.worker, [said])
        self.jobs = {spec.uuid for spec in (*failed, *revived)}
        self._running("k", self._dying)
        self.turns = [self._running(key) for key in ("l", None)]
        (self.admitted,) = self._pending("m")
        (self.late,) = self._pending("n")
        for change in LATE:
            watcher.run(change, [self.late])
        self.waiting = [uuid for key in KEYS for uuid in self._pending(key, 2)]
        self.verbs = {
            "settle": settle_of(self.worker, self.turns[0]),
            "retry": settle_of(self.worker, self.turns[0], "retried"),
            "release": settle_of(self.worker, self.turns[1], "released"),
            "expire": expire_of(self._dying),
            "claim": claim_of(self.worker, 3) | {"lanes": [1], "floors": [1]},
            "cancel": {"uuid": self.admitted},
            "cancel held": {"uuid": self.waiting[0]},
            "cancel running": {"uuid": self.turns[0].uuid},
            "delete_jobs": {"uuids": [failed[0].uuid]},
            "revive": {"uuids": [failed[0].uuid, revived[0].uuid]},
            "promote": {"limit": 100, "after": ""},
            "lapse": {"limit": 100},
            "admit_keys": {"keys": [*KEYS], "limit": 100},
            "set_limit": {"scope": "queue", "name": "default", "at_once": AT_ONCE + 1},
        }

    def _pending(self, key: str | None, count: int = 1) -> list[UUID]:
        uuids = [spec.uuid for spec in submit(self.store, count, key=key)]
        self.jobs |= set(uuids)
        return uuids

    def _running(self, key: str | None, worker: int | None = None) -> object:
        self._pending(key)
        (turn,) = self.store.claim(worker or self.worker, limit=1, request=uuid4(), floors=FLOORS)
        return turn

    def assert_exact(self) -> None:
        assert self._watcher.run(LOOSE) == []
        report = audit(self.store.histories(), quiesced=False)
        report = report.including(limit_violations(self.store.holdings()))
        report = report.including(stray_violations(self.store.strays()))
        assert report.violations == ()

    def finish(self) -> None:
        """Nobody is stuck: every job that is left ends."""
        for worker in (self._dying, self.worker):
            self.store.expire(worker, beat=None, begun=())
        self.worker = self.store.register("w", kinds=["a"], queues=["default"], lease_s=30.0)
        for _ in range(40):
            self.store.promote(1_000)
            self.store.lapse(100)
            turns = self.store.claim(self.worker, limit=1_000, request=uuid4(), floors={})
            self.store.settle(
                self.worker,
                [Settlement(*t[:4], Ending.SUCCEEDED, began_at=t.granted_at) for t in turns],
            )
            if set(self.store.counts()) <= TERMINAL:
                return
        assert set(self.store.counts()) <= TERMINAL


VERBS = (
    "settle", "retry", "release", "expire", "claim", "cancel", "cancel held", "cancel running",
    "delete_jobs", "revive", "promote", "lapse", "admit_keys", "set_limit",
)  # fmt: skip

NAMES = {
    "retry": "settle", "release": "settle", "cancel held": "cancel", "cancel running": "cancel",
}  # fmt: skip


@pytest.fixture
def store(direct: str) -> Iterator[PostgresStore]:
    """One that goes around any proxy, as the verbs that meet do."""
    store = PostgresStore(direct)
    yield store
    store.close()


@pytest.fixture
def pair(session: Make) -> tuple[Session, Session, Session]:
    return session(), session(), session()


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["commits", "is taken back"])
@pytest.mark.parametrize("first", VERBS)
def test_two_verbs_on_the_same_limits_leave_every_slot_where_it_belongs(
    store: PostgresStore, pair: tuple[Session, Session, Session], first: str, fate: str
) -> None:
    one, two, watcher = pair
    for a, b in permutations(VERBS, 2):
        if a != first:
            continue
        scene = Scene(store, watcher)
        one.begin().run(statement(NAMES.get(a, a)), scene.verbs[a])
        call = two._send(statement(NAMES.get(b, b)), scene.verbs[b])
        until(lambda: call.done() or two.blockers(), "blocked or answered")  # noqa: B023 - now
        one.commit() if fate == "commits" else one.rollback()
        call.result(30)
        scene.assert_exact()
        scene.finish()
        scene.assert_exact()
