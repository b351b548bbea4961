"""A schedule that a person declares: a form says first when it would come due; and by PUT."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.web.asgi import Browser
from tests.web.test_actions import record_of
from tests.web.test_pages import POISON, Seen, seen

from timeball.client import Client

NIGHTLY = {"name": "nightly", "kind": "mail.report", "cron": "30 2 * * *", "tz": "Europe/Berlin"}


def test_a_form_says_when_it_would_come_due_and_adds_nothing_until_it_is_told_to(
    client: Client, admin: Browser
) -> None:
    assert 'href="/declare"' in admin.get("/schedules").text
    fields = {**NIGHTLY, "args": '{"user": 7}', "exclude": "2026-12-25\r\n2026-12-26/2027-01-01"}
    page = Seen(admin.form("/declare", **fields, act="look").text)
    said = " ".join("".join(page.said).split())
    assert "nightly would come due" in said
    assert "Europe/Berlin" in said
    assert "02:30:00" in said
    assert "02:00 becomes 20" in said
    titles = [one.get("title") for one in page.of("button")]
    assert "nothing \N{RIGHTWARDS ARROW} active: it fires from now on" in titles
    assert client.schedules() == []
    done = admin.form("/declare", **fields, act="add")
    assert (done.status, done.header("location")) == (303, "/schedules/nightly?told=declared")
    assert "Declared: it fires as shown." in admin.get(done.header("location")).text
    (found,) = client.schedules()
    assert (found.spec.kind, found.spec.tz, json.loads(found.spec.args)) == (
        "mail.report",
        "Europe/Berlin",
        {"user": 7},
    )
    assert "2026-12-26/2027-01-01" in found.spec.terms
    what, after = record_of(admin)
    assert (what, after["expression"], after["state"]) == (
        "schedule.declare",
        "30 2 * * *",
        "active",
    )
    assert "user" not in str(admin.get("/api/v1/operations").json)


def test_one_that_is_there_is_changed_only_if_that_is_ticked(
    client: Client, admin: Browser
) -> None:
    client.schedule("nightly", "old", cron="@daily", tz="UTC", source="a crontab")
    page = admin.form("/declare", **NIGHTLY, act="look")
    assert "declared in a crontab, which brings its own back" in page.text
    assert "active → active, as written here" in page.text
    answer = admin.form("/declare", **NIGHTLY, act="add")
    assert answer.status == 409
    assert "tick that it is to be changed" in answer.text
    assert client.get_schedule("nightly").spec.kind == "old"
    assert admin.form("/declare", **NIGHTLY, act="add", replace="1").status == 303
    assert client.get_schedule("nightly").spec.kind == "mail.report"
    last = admin.get("/api/v1/operations").json["operations"][0]
    assert (last["before"]["kind"], last["after"]["kind"]) == ("old", "mail.report")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "name"),
        ({"kind": ""}, "kind"),
        ({"kind": "/bin/true"}, "is a command"),
        ({"cron": "61 * * * *"}, "61"),
        ({"cron": "0 0 30 2 *"}, "30 2"),
        ({"cron": ""}, "cron"),
        ({"tz": "Nowhere/Land"}, "Nowhere/Land"),
        ({"args": "[1]"}, "args: write a JSON object"),
        ({"gap": "sometimes"}, "gap"),
        ({"catchup": "x"}, "catchup"),
        ({"priority": "12"}, "priority"),
        ({"jitter_s": "99999"}, "jitter"),
        ({"start_at": "2026-03-29T02:30"}, "does not exist"),
        ({"end_at": "2000-01-01T00:00", "start_at": "2001-01-01T00:00"}, ""),
        ({"exclude": "sundays"}, "sundays"),
    ],
)
def test_what_makes_no_schedule_is_said_on_the_form_and_what_was_written_stays(
    client: Client, local: Browser, fields: dict[str, str], said: str
) -> None:
    for act in ("look", "add"):
        answer = local.form("/declare", **{**NIGHTLY, "key": POISON, **fields}, act=act)
        assert answer.status == 400
        page = Seen(answer.text)
        assert len(page.of("script")) == 1
        assert [one for one in page.of("p") if one.get("role") == "alert"]
        assert said in "".join(page.said)
        assert POISON in [one.get("value") for one in page.of("input")]
    assert client.schedules() == []


def test_a_put_adds_a_schedule_once_and_says_what_may_surprise(
    client: Client, admin: Browser
) -> None:
    path = "/api/v1/schedules"
    body: dict[str, Any] = {
        "name": "a/b",
        "kind": "k",
        "cron": "30 2 * * *",
        "tz": "Europe/Berlin",
        "gap": "skip",
        "any_of": ["0 12 * * 6"],
        "start_at": "2026-01-01T00:00:00+01:00",
        "max_runs": 9,
        "catchup": "all",
        "priority": 9,
    }
    for _ in range(2):
        answer = admin.send("PUT", path, body)
        assert (answer.status, answer.json["name"], answer.json["state"]) == (200, "a/b", "active")
    assert any("times is missing" in text for text in answer.json["warnings"]), answer.json
    (found,) = client.schedules()
    assert (found.spec.gap, found.spec.catchup, found.spec.priority) == ("skip", "all", 9)
    for wrong in ({"cron": "x"}, {"tz": "x"}, {"kind": "./x"}, {"max_runs": 0}):
        assert admin.send("PUT", path, {**body, **wrong}).status == 400
    for wrong in ({"cron": None}, {"source": "x"}, {"max_runs": True}, {"gap": "x"}):
        assert admin.send("PUT", path, {**body, **wrong}).status == 422
    assert len(client.schedules()) == 1


def test_a_form_without_a_schedule_is_empty_and_names_a_zone(
    local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    inputs = {one.get("name"): one.get("value") for one in seen(local.get("/declare")).of("input")}
    assert (inputs["tz"], inputs["name"], inputs["cron"]) == ("Asia/Tokyo", "", "")
