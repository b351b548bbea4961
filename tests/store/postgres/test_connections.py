"""The one door to the database: what goes wrong there has a name, and the next call works."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest
from tests.proxy import proxied
from tests.store.postgres.sessions import claim_of, jobs_json, submit, until, worker_of

from timeball.core.records import JobSpec, Settlement
from timeball.core.states import Ending, State
from timeball.errors import SchemaMismatch, StoreUnavailable, UsageError, WorkerExpired
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore, answers
from timeball.store.postgres import connections as door
from timeball.store.postgres.connections import Connections, in_schema, statement
from timeball.store.postgres.migrate import migrate


@pytest.fixture
def connections(dsn: str) -> Iterator[Connections]:
    connections = Connections(dsn)
    yield connections
    connections.close()


def terminate(dsn: str, pid: int) -> None:
    """End one session, and wait until it is gone."""
    gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        until(lambda: connection.execute(gone, [pid]).fetchone() == (True,), "the session is gone")


def pid_of(connections: Connections) -> int:
    with connections.borrowed() as connection:
        return connection.info.backend_pid


def test_a_session_that_was_ended_is_no_store_and_the_next_call_works(
    connections: Connections, dsn: str
) -> None:
    terminate(dsn, pid_of(connections))
    with pytest.raises(StoreUnavailable):
        connections.run("now")
    assert connections.run("ping") == [(1,)]


def test_who_hears_nothing_any_more_gives_up_and_the_next_call_works(
    direct: str,
) -> None:
    """TCP notices nothing: a proxy takes what is sent, and hands nothing on."""
    with proxied(direct) as proxy:
        connections = Connections(proxy.dsn)
        assert connections.run("ping") == [(1,)]
        proxy.muted, connections.answer_s = True, 0.3
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.3 s"):
            connections.run("ping")
        proxy.muted, connections.answer_s = False, None
        assert connections.run("ping") == [(1,)]
        connections.close()


def test_a_transaction_whose_beginning_is_swallowed_is_given_up(direct: str) -> None:
    """On a connection that was there before, so that no connecting times out."""
    with proxied(direct) as proxy:
        connections = Connections(proxy.dsn)
        assert connections.run("ping") == [(1,)]
        proxy.muted, connections.answer_s = True, 0.3
        with (
            pytest.raises(StoreUnavailable, match=r"no answer within 0\.3 s"),
            connections.transaction() as run,
        ):
            run("ping")
        connections.close()


def test_nor_is_what_may_take_long_waited_for_for_ever(
    direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "LONG_ANSWER_S", 0.3)
    with proxied(direct) as proxy:
        store = PostgresStore(proxy.dsn)
        for ask in (store.counts, store.move_in, lambda: migrate(store.connections)):
            proxy.muted = False
            store.connections.run("ping")
            proxy.muted = True
            with pytest.raises(StoreUnavailable, match=r"no answer within 0\.3 s"):
                ask()
        store.close()


def test_what_is_no_verb_may_take_its_time(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ANSWER_S", 0.2)
    sleep = "SELECT pg_sleep(0.5)"
    connections.run("ping")
    with connections.borrowed() as connection:
        assert connection.execute(sleep).fetchall() == [("",)]


def test_one_broken_session_takes_its_idle_siblings_along(
    connections: Connections, dsn: str
) -> None:
    with connections.borrowed() as one, connections.borrowed() as two:
        pids = [one.info.backend_pid, two.info.backend_pid]
    for pid in pids:
        terminate(dsn, pid)
    with pytest.raises(StoreUnavailable):
        connections.run("ping")
    assert connections.run("ping") == [(1,)]


def test_a_session_is_used_again(connections: Connections) -> None:
    assert pid_of(connections) == pid_of(connections)


def test_sessions_that_nobody_has_needed_for_a_while_are_closed(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connections.borrowed() as one, connections.borrowed() as two:
        pass
    assert (one.closed, two.closed) == (False, False)
    monkeypatch.setattr(door, "SPARE_S", 0.0)
    used = pid_of(connections)
    left = [each for each in (one, two) if not each.closed]
    assert [each.info.backend_pid for each in left] == [used]


def test_who_is_patient_shares_a_session_and_does_not_wait_for_ever(dsn: str) -> None:
    patient, hasty = Connections(dsn, patience_s=30.0), Connections(dsn, patience_s=0.01)
    with ThreadPoolExecutor(8) as pool:
        pids = set(pool.map(lambda _: patient.run("backend")[0], range(64)))
    with hasty.borrowed() as one, hasty.borrowed() as two:
        assert one is not two
    patient.close()
    hasty.close()
    assert len(pids) == 1


def test_a_session_that_could_not_be_made_is_not_waited_for() -> None:
    nowhere = Connections("host=/nonexistent dbname=none", patience_s=3600.0)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            nowhere.run("ping")


def test_who_waits_for_a_session_hears_that_the_store_was_closed(dsn: str) -> None:
    patient = Connections(dsn, patience_s=3600.0)
    with ThreadPoolExecutor(1) as pool, patient.borrowed():
        waiting = pool.submit(patient.run, "ping")
        until(lambda: patient._lock._waiters or waiting.done(), "it waits")
        patient.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            waiting.result(30)


def test_a_session_left_in_a_transaction_is_not_used_again(connections: Connections) -> None:
    with connections.borrowed() as connection:
        first = connection.info.backend_pid
        connection.execute("BEGIN")
    assert pid_of(connections) != first


def test_a_refused_statement_leaves_a_session_that_works(connections: Connections) -> None:
    first = pid_of(connections)
    with pytest.raises(WorkerExpired, match="worker 77 was given up"):
        connections.run("claim", **claim_of(77))
    assert pid_of(connections) == first


def test_no_server_is_no_store() -> None:
    connections = Connections("host=/nonexistent dbname=none")
    with pytest.raises(StoreUnavailable):
        connections.run("ping")


def test_a_closed_store_says_so(connections: Connections) -> None:
    connections.run("ping")
    connections.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        connections.run("ping")


def test_a_session_that_comes_back_to_a_closed_store_is_closed(connections: Connections) -> None:
    with connections.borrowed() as connection:
        connections.close()
    assert connection.closed


def test_a_missing_schema_says_what_to_run(server: str) -> None:
    connections = Connections(server, schema="nowhere")
    for name in ("now", "pulses"):
        with pytest.raises(SchemaMismatch, match="run `timeball db migrate`"):
            connections.run(name)
    connections.close()


def test_a_read_only_database_is_no_store_now(dsn: str) -> None:
    store = PostgresStore(f"{dsn}&options=-cdefault_transaction_read_only%3Don")
    with pytest.raises(StoreUnavailable, match="read-only"):
        worker_of(store)
    store.close()


def test_a_verb_under_another_isolation_says_what_it_needs(dsn: str) -> None:
    setting = "-cdefault_transaction_isolation%3Drepeatable%5C%20read"
    store = PostgresStore(f"{dsn}&options={setting}")
    worker = worker_of(store)
    with pytest.raises(UsageError, match="READ COMMITTED"):
        store.claim(worker, limit=1, request=uuid4(), floors={})
    store.close()


def test_nothing_depends_on_the_search_path(dsn: str) -> None:
    """Nor on what somebody has put there under the name of a table or function of ours."""
    store = PostgresStore(f"{dsn}&options=-csearch_path%3Dpg_temp")
    submit(store, 4)
    (later,) = submit(store, delay_s=60.0)
    worker = worker_of(store)
    turns = store.claim(worker, limit=3, request=uuid4(), floors={})
    endings = (Ending.SUCCEEDED, Ending.RETRIED, Ending.RELEASED)
    said = zip(turns, endings, strict=True)
    store.settle(worker, [Settlement(*turn[:4], ending) for turn, ending in said])
    store.promote(5)
    assert store.cancel(later.uuid) == "cancelled"
    assert store.get(turns[0].uuid).state is State.SUCCEEDED
    assert store.claim(worker, limit=1, request=uuid4(), floors={})
    store.expire(worker, beat=None, begun=None)
    assert sum(store.counts().values()) == len(list(store.histories())) == 5
    assert len(store.jobs(JobFilter())) == 5
    store.close()


def test_a_lane_that_is_missing_says_how_to_make_it(dsn: str) -> None:
    connections = Connections(dsn)
    with pytest.raises(UsageError, match="queue nowhere, priority 5 has no lane yet"):
        connections.run("submit", jobs=jobs_json(1, queue="nowhere"))
    connections.close()


def test_a_wake_up_that_fails_does_not_fail_the_submit(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = store._run

    def broken(name: str, /, **params: object) -> list:
        if name == "notify":
            raise StoreUnavailable("gone")
        return run(name, **params)

    monkeypatch.setattr(store, "_run", broken)
    assert len(submit(store)) == 1
    assert store.counts() == {State.PENDING: 1}


def test_statements_are_cached_by_name_and_schema() -> None:
    assert statement("now") is statement("now")
    assert "other.now()" in statement("now", "other")


def test_only_our_schema_is_renamed() -> None:
    text = "SELECT 'timeball', timeball.now(), 'timeball_wake' FROM mytimeball.x"
    renamed = "SELECT 'timeball', other.now(), 'other_wake' FROM mytimeball.x"
    assert in_schema(text, "other") == renamed


def test_a_job_submitted_within_a_transaction_is_there_iff_that_commits(
    store: PostgresStore, dsn: str
) -> None:
    with psycopg.connect(dsn) as mine:
        store.submit_within(mine, [JobSpec(uuid=uuid4(), kind="a")])
        assert store.counts() == {}
        mine.rollback()
        store.submit_within(mine, [JobSpec(uuid=uuid4(), kind="a")])
        mine.commit()
    assert store.counts() == {State.PENDING: 1}


@pytest.mark.parametrize("dsn", ["nonsense", "host=a password=top secret", "http://u:secret@h/d"])
def test_an_address_that_is_none_is_refused_without_repeating_it(dsn: str) -> None:
    with pytest.raises(UsageError, match="write postgresql://user@host/name") as caught:
        Connections(dsn)
    assert not any(word in str(caught.value) for word in ("nonsense", "secret", "top"))
