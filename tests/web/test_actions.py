"""What an operator does on the command line, by the API and by buttons too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Browser
from tests.web.test_pages import seen

from timeball.client import Client, Handle
from timeball.core.rate import Rate
from timeball.core.records import Settlement
from timeball.core.states import Ending, State
from timeball.errors import ScheduleNotFound
from timeball.store.postgres import PostgresStore


def record_of(browser: Browser) -> tuple[str, Any]:
    """What was changed last, and what that came to."""
    last = browser.get("/api/v1/operations").json["operations"][0]
    return last["what"], last["after"]


def ended_in(store: PostgresStore, worker: int, handle: Handle, began_at: float) -> None:
    """One that a worker has begun and ended."""
    (turn,) = store.claim(worker, limit=1, request=handle.uuid, floors={}, permits={"q": 1})
    where = (turn.lane, turn.seq, turn.job_id, turn.turn)
    store.settle(worker, [Settlement(*where, Ending.SUCCEEDED, began_at=began_at)])


def buttons(browser: Browser, path: str) -> set[str]:
    """The last words of the addresses to which the forms of a page lead."""
    forms = seen(browser.get(path)).of("form")
    return {
        str(form["action"]).rpartition("/")[2] for form in forms if form.get("method") == "post"
    }


def test_a_job_is_moved_and_put_off_and_both_are_on_record(client: Client, admin: Browser) -> None:
    handle = client.submit("k", queue="a")
    path = f"/api/v1/jobs/{handle.uuid}"
    assert admin.send("POST", f"{path}/move", {"queue": "b", "priority": 9}).status == 200
    job = client.get(handle)
    assert (job.queue, job.priority, job.state) == ("b", 9, State.PENDING)
    assert record_of(admin) == ("job.move", {"answer": "moved", "queue": "b", "priority": "9"})
    assert admin.send("POST", f"{path}/snooze", {"delay_s": 3_600}).status == 200
    assert client.get(handle).state is State.SCHEDULED
    assert record_of(admin) == ("job.snooze", {"answer": "snoozed", "delay_s": "3600.0"})


def test_a_form_moves_and_puts_off_too(client: Client, local: Browser) -> None:
    handle = client.submit("k", queue="a")
    assert {"move", "snooze", "cancel"} <= buttons(local, "/jobs/1")
    titles = [one.get("title") for one in seen(local.get("/jobs/1")).of("summary")]
    assert "pending, here → pending, at the back there" in titles
    assert "pending → scheduled: it does not start before then" in titles
    moved = local.form(f"/jobs/{handle.uuid}/move", queue="b ü", priority="0")
    assert "Moved" in local.get(moved.header("location")).text
    assert (client.get(handle).queue, client.get(handle).priority) == ("b ü", 0)
    local.form(f"/jobs/{handle.uuid}/snooze", minutes="10")
    assert client.get(handle).state is State.SCHEDULED


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("move", {}),
        ("move", {"queue": "a", "priority": "x"}),
        ("move", {"queue": "a", "priority": "12"}),
        ("move", {"queue": "a\nb"}),
        ("snooze", {}),
        ("snooze", {"minutes": "-1"}),
        ("snooze", {"minutes": "9" * 400}),
        ("snooze", {"minutes": "9999999"}),
    ],
)
def test_a_form_that_makes_no_sense_changes_nothing(
    client: Client, local: Browser, word: str, fields: dict[str, str]
) -> None:
    handle = client.submit("k")
    assert local.form(f"/jobs/{handle.uuid}/{word}", **fields).status == 400
    job = client.get(handle)
    assert (job.queue, job.priority, job.state) == ("default", 5, State.PENDING)


def test_what_has_begun_or_ended_is_neither_moved_nor_put_off(
    client: Client, store: PostgresStore, admin: Browser
) -> None:
    running, ended = client.submit("k"), client.submit("k", queue="other")
    worker = worker_of(store, "default")
    assert store.claim(worker, limit=1, request=running.uuid, floors={})
    client.cancel(ended)
    for handle in (running, ended):
        for word, body in (("move", {"queue": "b"}), ("snooze", {"delay_s": 60})):
            assert admin.send("POST", f"/api/v1/jobs/{handle.uuid}/{word}", body).status == 409
        assert not {"move", "snooze"} & buttons(admin, f"/jobs/{handle.uuid}")


def test_a_job_that_waits_is_told_to_wait_for_more(client: Client, admin: Browser) -> None:
    first, second, third = (client.submit("k") for _ in range(3))
    child = client.submit("k", after=[first])
    path = f"/jobs/{child.uuid}/parents"
    assert "parents" in buttons(admin, f"/jobs/{child.uuid}")
    assert "parents" not in buttons(admin, f"/jobs/{first.uuid}")
    titles = [one.get("title") for one in seen(admin.get(f"/jobs/{child.uuid}")).of("summary")]
    assert "waiting \N{RIGHTWARDS ARROW} waiting, for these jobs too" in titles
    told = admin.form(path, parents=f" {second.id}, {first.uuid}", rule="all_success")
    assert "waits for them too" in admin.get(told.header("location")).text
    body = {"after": [{"job": str(third.uuid), "rule": "all_done"}]}
    assert admin.send("POST", f"/api/v1{path}", body).json == {"answer": "added"}
    asked = f"{third.uuid} all_done"
    assert record_of(admin) == ("job.add_parents", {"answer": "added", "after": asked})
    parents = admin.get(f"/api/v1/jobs/{child.uuid}").json["after"]
    rules = {each["uuid"]: each["rule"] for each in parents}
    assert rules == {
        str(first.uuid): "all_success",
        str(second.uuid): "all_success",
        str(third.uuid): "all_done",
    }


def test_parents_that_make_no_sense_are_not_added(client: Client, admin: Browser) -> None:
    first = client.submit("k")
    child = client.submit("k", after=[first])
    last = client.submit("k", after=[child])
    path = f"/jobs/{child.uuid}/parents"
    for status, fields in (
        (400, {"parents": ""}),
        (400, {"parents": f"{first.id} " * 101}),  # to leave one out is to start too early
        (404, {"parents": "999999"}),
        (404, {"parents": "nobody"}),
        (400, {"parents": str(first.id), "rule": "sometimes"}),
        (400, {"parents": str(first.id), "rule": "member"}),
        (400, {"parents": str(last.id)}),  # which waits for the child
    ):
        assert admin.form(path, **fields).status == status, fields
    assert "refused" in admin.form(f"/jobs/{first.uuid}/parents", parents="2").header("location")
    body = {"after": [{"job": str(last.uuid)}]}
    assert admin.send("POST", f"/api/v1/jobs/{first.uuid}/parents", body).status == 409
    assert admin.send("POST", f"/api/v1{path}", body).status == 400
    assert admin.send("POST", f"/api/v1{path}", {"after": []}).status == 422
    assert len(admin.get(f"/api/v1/jobs/{child.uuid}").json["after"]) == 1


def test_an_open_batch_is_closed_once(client: Client, admin: Browser) -> None:
    with client.batch("b", open=True) as batch:
        batch.submit("k")
    path = f"/batches/{batch.uuid}"
    assert "close" in buttons(admin, path)
    answers = [admin.send("POST", f"/api/v1{path}/close").json["answer"] for _ in range(2)]
    assert answers == ["closed", "was_closed"]
    assert "close" not in buttons(admin, path)
    assert admin.form(f"{path}/close").header("location").endswith("told=was_closed")


def test_a_schedule_is_removed_and_its_record_stays(client: Client, admin: Browser) -> None:
    for name in ("a/b", "c"):
        client.schedule(name, "k", cron="@daily", tz="UTC")
    assert "remove" in buttons(admin, "/schedules/c")
    assert admin.send("DELETE", "/api/v1/schedules/a%2Fb").json == {"answer": "removed"}
    assert record_of(admin) == ("schedule.remove", {"answer": "removed"})
    assert admin.form("/schedules/c/remove").header("location") == "/schedules?told=removed"
    assert client.schedules() == []
    with pytest.raises(ScheduleNotFound):
        client.pause_schedule("nothing")
    assert admin.send("DELETE", "/api/v1/schedules/nothing").status == 404


def test_a_limit_is_set_and_lifted_by_forms_and_both_are_on_record(
    client: Client, admin: Browser
) -> None:
    about = {"scope": "queue", "name": "a/b"}
    assert admin.form("/limits", **about, at_once="3", rate="5/s").header("location") == (
        "/limits?told=set"
    )
    (limit,) = client.limits()
    assert (limit.scope, limit.name, limit.at_once, str(limit.rate)) == ("queue", "a/b", 3, "5/s")
    assert record_of(admin) == ("limit.set", {"at_once": 3, "rate": "5/s"})
    admin.form("/limits", **about, at_once="", rate="1/m")  # what is left empty stays
    assert (client.limits()[0].at_once, client.limits()[0].rate) == (3, Rate(1, per_s=60))
    page = seen(admin.get("/limits/queue/a%2Fb"))
    titles = [one.get("title") for one in page.of("summary")]
    assert "at most 1/m \N{RIGHTWARDS ARROW} any number of starts" in titles
    assert "3 at once \N{RIGHTWARDS ARROW} any number" in titles
    for which in ("rate", "at_once"):
        assert admin.form("/limits/lift", **about, which=which).header("location") == (
            "/limits?told=lifted"
        )
    assert client.limits() == []
    assert admin.get("/limits/queue/a%2Fb").status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"scope": "queue", "name": "q"},
        {"scope": "moon", "name": "q", "at_once": "1"},
        {"scope": "queue", "name": "", "at_once": "1"},
        {"scope": "queue", "name": "q\0", "at_once": "1"},
        {"scope": "queue", "name": "q", "at_once": "-1"},
        {"scope": "queue", "name": "q", "at_once": "9" * 400},
        {"scope": "queue", "name": "q", "at_once": "1", "rate": "often"},
        {"scope": "kind", "name": "k", "at_once": "1"},
        {"scope": "queue", "name": "q", "which": "used"},
    ],
)
def test_a_limit_that_makes_no_sense_is_not_set(
    client: Client, local: Browser, fields: dict[str, str]
) -> None:
    path = "/limits/lift" if "which" in fields else "/limits"
    assert local.form(path, **fields).status == 400
    assert client.limits() == []


def test_a_depth_is_limited_by_a_form_and_an_empty_one_lifts_it(
    client: Client, admin: Browser
) -> None:
    client.submit("k", queue="q")
    assert "depth" in buttons(admin, "/queues")
    for text, depth in (("7", 7), ("", None)):
        assert admin.form("/queues/depth", queue="q", max_depth=text).status == 303
        assert client.queues()[0].max_depth == depth
        assert record_of(admin) == ("queue.depth", {"max_depth": depth})
    for text in ("0", "x", "9" * 400, "1000001"):
        assert admin.form("/queues/depth", queue="q", max_depth=text).status == 400
    assert admin.form("/queues/depth", queue="q\0", max_depth="7").status == 400
    body = {"scope": "queue", "name": "q\0", "at_once": 1}
    assert admin.send("PUT", "/api/v1/limits", body).status == 400


def test_what_began_lately_is_shown_against_its_rate(
    client: Client, store: PostgresStore, direct: str, admin: Browser
) -> None:
    client.limit(queue="q", rate="2/s")
    client.limit(queue="other", at_once=2)
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("UPDATE timeball.limiter SET since = since - interval '1 hour'")
    path = "/api/v1/limits/queue"
    assert admin.get(f"{path}/q/proof").json["rates"] == []
    assert "Nothing on record began under it" in admin.get("/limits/queue/q").text
    worker, first = worker_of(store, "q"), store.now().timestamp()
    for n in range(3):
        ended_in(store, worker, client.submit("k", queue="q"), first + n / 100)
    (proof,) = admin.get(f"{path}/q/proof").json["rates"]
    found = [proof[name] for name in ("name", "rate", "starts", "most", "allowed", "early")]
    assert found == ["queue:q", "2/s", 3, 3, 2, 1]
    said = "".join(seen(admin.get("/limits/queue/q")).said)
    assert "at most 3 of 2 starts in any 1 s, in 3 starts on record: 1 too early" in said
    assert [admin.get(f"{path}/{name}/proof").status for name in ("other", "none")] == [404] * 2


def test_past_occurrences_are_counted_first_and_run_once(client: Client, admin: Browser) -> None:
    client.schedule("a/b", "k", cron="0 * * * *", tz="Europe/Paris")
    asked = "start=2026-01-01T01:30&end=2026-01-01T02:30%2B00:00"
    page = seen(admin.get(f"/backfill/a%2Fb?{asked}"))
    assert "2 would run " in "".join(page.said)
    assert "By the clocks of Europe/Paris" in "".join(page.said)
    assert client.jobs() == []
    given = {str(one["name"]): str(one.get("value")) for one in page.of("input")[-2:]}
    assert admin.form("/backfill/a%2Fb", **given).header("location") == (
        "/schedules/a%2Fb?told=backfilled"
    )
    assert len(client.jobs()) == 2
    assert record_of(admin) == ("schedule.backfill", {"jobs": 2})
    body = {"start": "2026-01-01T00:30:00Z", "end": "2026-01-01T03:30:00Z"}
    path = "/api/v1/schedules/a%2Fb/backfill"
    would, did, again = (
        admin.send("POST", path, {**body, "dry_run": dry_run}).json
        for dry_run in (True, False, False)
    )
    assert would == {"fired": ["2026-01-01T03:00:00Z"], "already": 2, "dry_run": True}
    assert did == {**would, "dry_run": False}
    assert again == {"fired": [], "already": 3, "dry_run": False}
    assert len(client.jobs()) == 3


def test_a_range_is_read_by_the_clocks_of_the_schedule_as_on_the_command_line(
    client: Client, local: Browser
) -> None:
    client.schedule("s", "k", cron="*/30 * * * *", tz="Europe/Paris")
    for text in ("2026-10-25T02:30", "2026-03-29T02:30"):  # comes twice, does not exist
        answer = local.get(f"/backfill/s?start={text}&end=2026-10-25T04:00", accept="text/html")
        assert answer.status == 400
        assert "write it with its offset" in answer.text
    local.form("/backfill/s", start="2026-01-01T09:00", end="2026-01-01T09:00[Asia/Tokyo]")
    assert client.jobs() == []  # that is eight hours earlier
    local.form("/backfill/s", start="2026-01-01T09:00", end="2026-01-01T09:00")
    (done,) = client.occurrences("s", 9)
    assert done.nominal_at == datetime(2026, 1, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01T00:30", "9999-12-31T23:00"),
        ("soon", "2026-01-01"),
        ("0001-01-01", "2026-01-01"),
        ("2026-01-02", "2026-01-01"),
        ("2026-01-01", "9999-12-31"),
        ("2025-01-01", "2026-01-01"),
    ],
)
def test_a_range_that_makes_no_sense_runs_nothing(
    client: Client, local: Browser, start: str, end: str
) -> None:
    client.schedule("s", "k", cron="0 * * * *", tz="Europe/Paris")
    assert local.get(f"/backfill/s?start={start}&end={end}").status == 400
    assert local.form("/backfill/s", start=start, end=end).status == 400
    assert client.jobs() == []
