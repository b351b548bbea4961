"""The REST API: what it gives is what the client gives, and what it changes is on record."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS, path_of

from timeball.client import Client
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.web import Scope
from timeball.web.app import ROUTES

HUGE = int("1234567890" * 4)


def ended(
    store: PostgresStore,
    ending: Ending,
    *,
    turn: Turn | None = None,
    worker: int | None = None,
    **facts: Any,
) -> None:
    """Let one pending job run and end so."""
    worker = worker or worker_of(store)
    turn = turn or store.claim(worker, limit=1, request=uuid4(), floors={})[0]
    settled = Settlement(turn.lane, turn.seq, turn.job_id, turn.turn, ending, **facts)
    store.settle(worker, [settled])


@pytest.mark.slow
def test_paging_through_jobs_of_one_transaction_loses_none_and_repeats_none(
    client: Client, admin: Browser
) -> None:
    handles = client.submit_many("k", [{"n": n} for n in range(230)], queue="q")
    seen: list[int] = []
    path = "/api/v1/jobs?limit=20&queue=q"
    page = admin.get(path).json
    while True:
        seen += [job["id"] for job in page["jobs"]]
        if page["before"] is None:
            break
        page = admin.get(f"{path}&before={page['before']}").json
    assert seen == sorted((handle.id for handle in handles), reverse=True)


def test_filters_are_those_of_the_command_line(client: Client, admin: Browser) -> None:
    client.submit("a", queue="x")
    client.submit("b", queue="y", delay_s=60)
    for query, kinds in (
        ("queue=x", ["a"]),
        ("kind=b", ["b"]),
        ("state=scheduled", ["b"]),
        ("state=running", []),
        ("", ["b", "a"]),
    ):
        found = admin.get(f"/api/v1/jobs?{query}").json["jobs"]
        assert [job["kind"] for job in found] == kinds


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "before=-1",
        f"before={2**63}",
        "state=lost",
        "queue=",
        "limit=x",
        f"kind={'x' * 300}",
    ],
)
def test_a_question_out_of_bounds_is_not_understood(admin: Browser, query: str) -> None:
    answer = admin.get(f"/api/v1/jobs?{query}")
    assert (answer.status, answer.json["title"]) == (422, "Not understood")


def test_integers_beyond_2_to_the_53_come_and_go_exactly(client: Client, admin: Browser) -> None:
    made = admin.send("POST", "/api/v1/jobs", {"kind": "k", "args": {"n": HUGE}})
    assert made.status == 201
    assert str(HUGE) in admin.get(f"/api/v1/jobs/{made.json['id']}").text
    assert client.get(client.jobs()[0].uuid).args == {"n": HUGE}


def test_a_job_is_found_by_its_uuid_and_by_its_number(client: Client, admin: Browser) -> None:
    handle = client.submit("k", n=1)
    for name in (handle.id, handle.uuid):
        assert admin.get(f"/api/v1/jobs/{name}").json["job"]["uuid"] == str(handle.uuid)


@pytest.mark.parametrize("name", ["7", "x", str(2**70), str(UUID(int=7)), "'; --", "🙂"])
def test_a_job_that_is_not_there_is_not_found(admin: Browser, name: str) -> None:
    assert admin.get(f"/api/v1/jobs/{name}").status == 404


def test_a_job_has_its_turns(client: Client, store: PostgresStore, admin: Browser) -> None:
    handle = client.submit("k", n=1)
    began = store.now().timestamp()
    ended(store, Ending.RETRIED, began_at=began, ran_s=0.5, error_type="E", error="no", delay_s=9.0)
    found = admin.get(f"/api/v1/jobs/{handle.uuid}").json
    (turn,) = found["turns"]
    assert (turn["turn"], turn["ending"], turn["error_type"]) == (1, "retried", "E")
    assert turn["lined_at"] <= turn["granted_at"]
    assert turn["ran_s"] == 0.5
    assert found["job"]["state"] == "scheduled"


def test_without_read_payload_nobody_sees_what_jobs_are_given_give_and_say(
    app: Any, client: Client, store: PostgresStore
) -> None:
    handle = client.submit("k", word="canary")
    ended(store, Ending.FAILED, error_type="E", error="canary", result='"canary"')
    client.schedule("s", "k", cron="@daily", tz="UTC", args={"word": "canary"})
    paths = ("/api/v1/jobs", f"/api/v1/jobs/{handle.id}", "/api/v1/schedules")
    blind, seeing = Browser(app, TEXTS[Scope.READ]), Browser(app, TEXTS[Scope.READ_PAYLOAD])
    for path in (*paths, "/api/v1/schedules/s"):
        assert "canary" not in blind.get(path).text
        assert "canary" in seeing.get(path).text


def test_what_looks_like_a_secret_is_hidden(client: Client, admin: Browser) -> None:
    handle = client.submit("k", password="canary", url="postgresql://me:canary@host/x")
    assert "canary" not in admin.get(f"/api/v1/jobs/{handle.id}").text


def test_what_is_submitted_is_what_the_client_would_submit(client: Client, admin: Browser) -> None:
    parent = client.submit("p")
    body = {
        "kind": "k",
        "args": {"a": [1, None, {"b": "ü"}]},
        "queue": "q",
        "priority": 9,
        "delay_s": 30,
        "max_retries": 0,
        "timeout_s": 2.5,
        "key": "tenant-1",
        "unique": "u",
        "unique_scope": "global",
        "after": [{"job": str(parent.uuid), "rule": "all_done"}],
        "ruled_out": "fail",
    }
    job = client.get(client.jobs(limit=1)[0].uuid)
    made = admin.send("POST", "/api/v1/jobs", body)
    job = client.jobs(limit=1)[0]
    assert (made.status, made.json["id"]) == (201, job.id)
    assert (job.kind, job.queue, job.priority, job.key) == ("k", "q", 9, "tenant-1")
    assert job.args == body["args"]
    assert admin.send("POST", "/api/v1/jobs", {**body, "on_clash": "reject"}).status == 409
    assert admin.send("POST", "/api/v1/jobs", {**body, "queue": "q" * 257}).status == 422
    assert admin.send("POST", "/api/v1/jobs", {**body, "extra": 1}).status == 422
    assert admin.send("POST", "/api/v1/jobs", {"kind": "k", "run_at": "2030-01-01"}).status == 422


def test_a_full_queue_says_so(client: Client, admin: Browser) -> None:
    client.limit_depth("q", 1)
    assert admin.send("POST", "/api/v1/jobs", {"kind": "k", "queue": "q"}).status == 201
    answer = admin.send("POST", "/api/v1/jobs", {"kind": "k", "queue": "q"})
    assert (answer.status, answer.header("retry-after")) == (429, "5")


def test_a_change_of_a_job_is_on_record(client: Client, admin: Browser) -> None:
    handle = client.submit("k")
    path = f"/api/v1/jobs/{handle.uuid}"
    assert admin.send("POST", f"{path}/cancel").json == {"answer": "cancelled"}
    assert admin.send("POST", f"{path}/cancel").status == 409
    assert admin.send("DELETE", path).json == {"answer": "deleted"}
    assert admin.send("DELETE", path).status == 404
    records = admin.get("/api/v1/operations").json["operations"]
    assert [(one["what"], one["target"]) for one in records] == [
        ("job.delete", f"job {handle.uuid}"),
        ("job.cancel", f"job {handle.uuid}"),
        ("job.cancel", f"job {handle.uuid}"),
    ]
    assert [one["after"] for one in records] == [
        {"answer": "deleted"},
        {"error": "Problem"},
        {"answer": "cancelled"},
    ]
    assert {(one["who"], one["origin"]) for one in records} == {("admin", "127.0.0.1")}
    assert records[-1]["before"] == {"state": "pending", "turn": 1}


def test_a_failed_job_is_revived(client: Client, store: PostgresStore, admin: Browser) -> None:
    handle = client.submit("k")
    ended(store, Ending.FAILED)
    assert admin.send("POST", f"/api/v1/jobs/{handle.id}/revive").json == {"answer": "revived"}
    assert client.get(handle).state is State.PENDING
    assert admin.send("POST", f"/api/v1/jobs/{handle.id}/revive").status == 409
    events = admin.get(f"/api/v1/jobs/{handle.id}").json["events"]
    assert [event["what"] for event in events] == ["revived"]


def test_a_change_that_nobody_survives_is_on_record(store: PostgresStore, direct: str) -> None:
    """The record is there before the change begins."""
    from timeball.store.postgres.operations import Operations

    seen: list[Any] = []

    def change() -> dict[str, Any]:
        with psycopg.connect(direct) as other:
            seen.extend(other.execute("SELECT who, after FROM timeball.operation").fetchall())
        return {}

    facts: dict[str, Any] = {"who": "me", "origin": "here", "before": {}}
    Operations(store.connections, store.connections).record("a", "b", change=change, **facts)
    assert seen == [("me", None)]


def test_queues_are_paused_resumed_and_bounded(client: Client, admin: Browser) -> None:
    client.submit("k", queue="q")
    assert admin.send("POST", "/api/v1/queues/q/pause").json == {"answer": "paused"}
    assert admin.send("POST", "/api/v1/queues/q/pause").json == {"answer": "was_paused"}
    (queue,) = admin.get("/api/v1/queues").json["queues"]
    assert (queue["paused_by"], queue["pending"]) == ("admin", 1)
    assert admin.send("POST", "/api/v1/queues/q/resume").json == {"answer": "resumed"}
    assert admin.send("PUT", "/api/v1/queues/q/depth", {"max_depth": 5}).status == 200
    assert client.queues()[0].max_depth == 5
    assert admin.send("PUT", "/api/v1/queues/q/depth", {"max_depth": 0}).status == 422


def test_limits_are_set_and_lifted(client: Client, admin: Browser) -> None:
    body = {"scope": "queue", "name": "q", "at_once": 3, "rate": "5/s"}
    assert admin.send("PUT", "/api/v1/limits", body).status == 200
    (limit,) = admin.get("/api/v1/limits").json["limits"]
    assert (limit["at_once"], limit["rate"]) == (3, str(client.limits()[0].rate))
    assert admin.send("PUT", "/api/v1/limits", {**body, "rate": "often"}).status == 400
    assert admin.send("PUT", "/api/v1/limits", {"scope": "queue", "name": "q"}).status == 400
    only = {"scope": "queue", "name": "q", "at_once": None}
    assert admin.send("PUT", "/api/v1/limits", only).status == 200
    (limit,) = admin.get("/api/v1/limits").json["limits"]
    assert (limit["at_once"], limit["rate"] is None) == (None, False)


def test_schedules_are_shown_paused_resumed_and_run(client: Client, admin: Browser) -> None:
    client.schedule("s", "k", cron="30 2 * * *", tz="Europe/Paris", args={"n": HUGE})
    found = admin.get("/api/v1/schedules/s?n=3").json
    assert len(found["next"]) == 3
    assert found["next"][0] == found["schedule"]["next_at"]
    assert found["schedule"]["args"] == {"n": HUGE}
    assert admin.send("POST", "/api/v1/schedules/s/pause").json == {"answer": "paused"}
    assert admin.get("/api/v1/schedules/s").json["next"] == []
    assert admin.send("POST", "/api/v1/schedules/s/resume").json == {"answer": "active"}
    made = admin.send("POST", "/api/v1/schedules/s/run")
    assert made.status == 201
    assert client.jobs()[0].id == made.json["id"]
    assert admin.send("POST", "/api/v1/schedules/no/run").status == 404


def test_workers_are_listed_while_they_live_and_a_while_longer(
    store: PostgresStore, client: Client, admin: Browser
) -> None:
    client.submit("k")
    worker = worker_of(store)
    store.claim(worker, limit=1, request=uuid4(), floors={})
    gone = worker_of(store)
    store.retire(gone)
    found = admin.get("/api/v1/workers").json["workers"]
    assert [(one["id"], one["running"], one["end_reason"]) for one in found] == [
        (worker, 1, None),
        (gone, 0, "retired"),
    ]


def test_counts_are_those_of_the_store(
    client: Client, store: PostgresStore, admin: Browser
) -> None:
    client.submit_many("k", [{} for _ in range(5)])
    client.submit("k", delay_s=99)
    for ending in (Ending.SUCCEEDED, Ending.FAILED):
        ended(store, ending)
    client.revive(client.jobs(state=State.FAILED)[0].uuid)
    found = admin.get("/api/v1/counts").json["counts"]
    assert {State(state): n for state, n in found.items()} == client.counts()


def test_metrics_are_what_prometheus_reads(client: Client, admin: Browser) -> None:
    client.submit("k", queue="mail")
    answer = admin.get("/metrics")
    assert answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    assert 'timeball_jobs{queue="mail",state="pending"} 1' in answer.text


@pytest.mark.slow
def test_looking_changes_nothing(client: Client, direct: str, admin: Browser) -> None:
    """Every GET reads in a transaction that cannot write; the ledger is as it was."""
    client.submit("k")
    client.schedule("s", "k", cron="@daily", tz="UTC")
    looking = [route for route in ROUTES if route.method == "GET"]
    with psycopg.connect(direct) as other:
        rows = [
            f"(SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), ''))"
            f" FROM timeball.{t} AS t)"
            for t in ("job", "entry", "held", "lease", "event", "operation", "schedule", "queue")
        ]
        look = f"SELECT {', '.join(rows)}"
        before = other.execute(look.encode()).fetchone()
        other.commit()
        for route in looking:
            admin.get(path_of(route, schedule="s"))
        assert other.execute(look.encode()).fetchone() == before


def test_the_description_names_every_route_its_scope_and_its_answers(admin: Browser) -> None:
    described = admin.get("/api/v1/openapi.json").json
    listed = {
        (method.upper(), path): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    wanted = {
        (route.method, route.path.replace(":path", "")): route
        for route in ROUTES
        if route.tag is not None
    }
    assert listed.keys() == wanted.keys()
    for key, operation in listed.items():
        assert operation["x-scope"] == wanted[key].scope
        by_token = wanted[key].scope is not Scope.CALLBACK
        assert operation["security"] == [{"token": []}] * by_token
        assert {"401", "403", "422", "503", str(wanted[key].status)} <= operation[
            "responses"
        ].keys()
        problem = operation["responses"]["401"]["content"]["application/problem+json"]
        assert problem["schema"] == {"$ref": "#/components/schemas/ProblemDetail"}
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    ids = [operation["operationId"] for operation in listed.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("jobs/{job}/move", {"queue": "q", "priority": True}),
        ("jobs/{job}/snooze", {"delay_s": False}),
        ("jobs/{job}/snooze", {"delay_s": "60"}),
        ("jobs/{job}/snooze", {"until": 1_800_000_000}),
        ("matching/cancel", {"every": 1}),
    ],
)
def test_what_the_description_calls_a_number_is_no_text_and_no_truth(
    client: Client, admin: Browser, path: str, body: Any
) -> None:
    handle = client.submit("k")
    answer = admin.send("POST", f"/api/v1/{path.format(job=handle.uuid)}", body)
    assert answer.status == 422
    assert any([*body][-1] in error for error in answer.json["errors"])


def test_a_whole_number_is_one_however_it_is_written(client: Client, admin: Browser) -> None:
    handle = client.submit("k")
    answer = admin.send("POST", f"/api/v1/jobs/{handle.uuid}/move", {"priority": 6.0})
    assert answer.status == 200
    assert client.get(handle.uuid).priority == 6
