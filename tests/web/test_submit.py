"""A job that a person adds by a form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS
from tests.web.test_actions import record_of
from tests.web.test_pages import POISON, Seen, seen

from timeball.client import Client
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.web import Scope


def written(browser: Browser, path: str = "/submit") -> dict[str, str]:
    """What the inputs of a page hold before somebody writes into them."""
    page = seen(browser.get(path))
    return {
        str(one["name"]): str(one.get("value", "")) for one in page.of("input") if "name" in one
    }


def test_a_form_adds_one_job_however_often_it_is_sent_and_it_is_on_record(
    client: Client, admin: Browser
) -> None:
    assert 'href="/submit"' in admin.get("/jobs").text
    fields = {
        **written(admin),
        "kind": "mail.welcome",
        "args": '{"user": 12345678901234567890123}',
        "queue": "mail",
        "priority": "9",
        "key": "a",
    }
    for _ in range(2):
        there = admin.form("/submit", **fields)
        assert there.status == 303
    (job,) = client.jobs()
    assert there.header("location") == f"/jobs/{job.uuid}?told=submitted"
    assert "Added one job." in admin.get(there.header("location")).text
    facts = (job.kind, job.queue, job.priority, job.key, client.get(job.uuid).args)
    assert facts == ("mail.welcome", "mail", 9, "a", {"user": 12345678901234567890123})
    assert job.uuid == UUID(fields["uuid"])
    assert record_of(admin) == ("job.submit", {"id": job.id, "uuid": str(job.uuid)})
    (last, _) = admin.get("/api/v1/operations").json["operations"]
    assert (last["target"], last["before"]) == (f"job {job.uuid}", {"kind": "mail.welcome"})


def test_a_form_says_when_and_after_what_by_the_clocks_of_the_zone_that_is_chosen(
    client: Client, local: Browser
) -> None:
    first, second = client.submit("k"), client.submit("k")
    local.form("/zone", zone="America/Lima")
    assert "by the clocks of America/Lima" in local.get("/submit").text
    when = {"run_at": "2099-01-01T09:00", "expires_at": "2099-01-01T09:30-05:00"}
    told = local.form("/submit", kind="k", **when)
    assert told.status == 303, told.text
    (job, *_) = client.jobs()
    assert job.state is State.SCHEDULED
    assert job.run_at == datetime(2099, 1, 1, 14, tzinfo=UTC)
    assert job.expires_at == datetime(2099, 1, 1, 14, 30, tzinfo=UTC)
    after = f"{first.id} {second.uuid}"
    local.form("/submit", kind="k", after=after, rule="all_done", ruled_out="run")
    (job, *_) = client.jobs()
    assert job.state is State.WAITING
    parents = client.store.parents(job.id)
    assert {(one.uuid, str(one.rule)) for one in parents} == {
        (first.uuid, "all_done"),
        (second.uuid, "all_done"),
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "kind"),
        ({"kind": ""}, "kind"),
        ({"kind": "k" * 300}, "kind"),
        ({"kind": "k", "args": "[]"}, "args: write a JSON object"),
        ({"kind": "k", "args": '{"a": 1, "a": 2}'}, "twice"),
        ({"kind": "k", "args": "{"}, "args is not JSON"),
        ({"kind": "k", "priority": "12"}, "priority"),
        ({"kind": "k", "priority": "high"}, "priority: write a number"),
        ({"kind": "k", "run_at": "soon"}, "run_at"),
        ({"kind": "k", "run_at": "2026-02-30T00:00"}, "run_at"),
        ({"kind": "k", "uuid": "1"}, "uuid"),
        ({"kind": "k", "after": "99999"}, "99999"),
        ({"kind": "k", "after": "nobody"}, "nobody"),
        ({"kind": "k", "after": "1 " * 101}, "after: write at most 100 jobs here"),
        ({"kind": "k", "queue": "a\nb"}, "queue"),
    ],
)
def test_what_makes_no_job_is_said_on_the_form_and_what_was_written_stays(
    client: Client, local: Browser, fields: dict[str, str], said: str
) -> None:
    answer = local.form("/submit", **{"key": POISON, **fields})
    assert answer.status in {400, 404}
    page = Seen(answer.text)
    assert len(page.of("script")) == 1
    (alert,) = [one for one in page.of("p") if one.get("role") == "alert"]
    assert said in "".join(page.said), alert
    assert POISON in [one.get("value") for one in page.of("input")]
    assert client.jobs() == []


def test_who_may_only_submit_sees_no_kinds_and_no_jobs_by_it(
    app: Any, client: Client, store: PostgresStore, admin: Browser
) -> None:
    first = client.submit("k")
    worker_of(store, "q")
    browser = Browser(app, TEXTS[Scope.SUBMIT])
    assert seen(admin.get("/submit")).of("datalist")
    assert not seen(browser.get("/submit")).of("datalist")
    assert browser.form("/submit", kind="k", after=str(first.id)).status == 400
    done = browser.form("/submit", kind="k", after=str(first.uuid))
    assert (done.status, done.header("location")) == (303, "/submit?told=submitted")
    assert "Added one job." in browser.get("/submit?told=submitted").text
    assert len(client.jobs()) == 2
