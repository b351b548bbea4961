"""What an operator does on the command line, by the API and by buttons too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Browser
from tests.web.test_pages import seen

from timeball.client import Client
from timeball.core.states import State
from timeball.errors import ScheduleNotFound
from timeball.store.postgres import PostgresStore


def record_of(browser: Browser) -> tuple[str, Any]:
    """What was changed last, and what that came to."""
    last = browser.get("/api/v1/operations").json["operations"][0]
    return last["what"], last["after"]


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
