"""Many jobs at once: as files, and changed by a filter."""

from __future__ import annotations

import csv
import io
import json
import re
import tracemalloc
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS
from tests.web.test_pages import seen

from timeball.client import Client
from timeball.core.states import State
from timeball.errors import StoreUnavailable
from timeball.web import Scope
from timeball.web.api import exports, matching
from timeball.web.api.exports import cell
from timeball.web.search import WORDS_MAX, understood

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 2 jobs, 4 to a request, files of 6."""
    monkeypatch.setattr(matching, "PART", 2)
    monkeypatch.setattr(matching, "JOBS_MAX", 4)
    monkeypatch.setattr(exports, "_PAGE", 2)
    monkeypatch.setattr(exports, "ROWS_MAX", 6)


def states(client: Client, **only: Any) -> list[State]:
    return [job.state for job in client.jobs(limit=100, **only)][::-1]


def go_on(browser: Browser, action: str, **which: Any) -> list[dict[str, int]]:
    """The answers of requests until nothing is left."""
    found, mark = [], None
    for _ in range(20):
        answer = browser.send("POST", f"/api/v1/matching/{action}", {**which, "mark": mark})
        assert answer.status == 200, answer.text
        found.append(answer.json["answers"])
        mark = answer.json["mark"]
        if mark is None:
            return found
    raise AssertionError(found)


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula_whatever_is_taken_for_the_mark_between_cells(text: str) -> None:
    assert cell(text).startswith("'")
    lines = io.StringIO()
    csv.writer(lines).writerow(["k", cell(f'a;{text};"{text}"; {text}\n{text}'), cell(text)])
    # Quotes do not keep a ; from ending a cell where the first cell of the row has none.
    for piece in re.split("[;\t\r\n]", lines.getvalue()):
        assert piece.lstrip("\"' ")[:1] not in {*"=+-@\uff1d"} or "'" in piece[:3], piece


def test_a_cell_that_is_no_formula_is_as_it_was() -> None:
    for text in ("", "a=1", "a; b", "1;2", '{"n": -1}', "a@b; c+d", "x\ny = 1"):
        assert cell(text) == text
    assert cell(None) == ""
    assert cell("\n" * 16_000).strip("'") == "\n" * 16_000  # and soon


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.slow
def test_a_file_is_sent_while_it_is_read_and_holds_a_part_of_it_in_memory(
    client: Client, admin: Browser, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(exports, "_PAGE", 2)
    jobs, size = 60, 40_000
    for _ in range(jobs):
        client.submit("k", text="x" * size)
    admin.get(f"/api/v1/export.{form}")
    parts = [len(message["body"]) for message in admin.sent if message.get("body")]
    assert len(parts) == jobs / 2
    assert max(parts) < 3 * size
    write = {"csv": exports._csv, "jsonl": exports._jsonl}[form]
    only = {"state": None, "queue": None, "kind": None, "before_id": None}
    tracemalloc.start()
    written = sum(map(len, write(exports._pages(admin.app.state.desk, only), payload=True)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written > jobs * size > 2 * peak


@pytest.mark.usefixtures("small")
def test_a_file_has_the_jobs_of_a_filter_once_each_up_to_its_bound_and_goes_on(
    client: Client, admin: Browser
) -> None:
    client.submit_many("=k", [{"n": n} for n in range(7)])
    client.submit("other", text='a,"b"\nc')
    answer = admin.get("/api/v1/export.csv?kind=%3Dk")
    assert answer.header("content-disposition") == 'attachment; filename="jobs.csv"'
    assert answer.header("content-type").startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == ["7", "6", "5", "4", "3", "2"]
    assert {row["kind"] for row in rows} == {"'=k"}
    assert json.loads(rows[0]["args"]) == {"n": 6}
    more = admin.get("/api/v1/export.csv?kind=%3Dk&before=2").text
    assert [row["id"] for row in csv.DictReader(io.StringIO(more))] == ["1"]
    lines = admin.get("/api/v1/export.jsonl")
    assert lines.header("content-disposition") == 'attachment; filename="jobs.jsonl"'
    found = [json.loads(line) for line in lines.text.splitlines()]
    assert [job["id"] for job in found] == [8, 7, 6, 5, 4, 3]
    assert found[0]["args"] == {"text": 'a,"b"\nc'}


def test_a_file_holds_payloads_for_who_may_see_them_only(app: Any, client: Client) -> None:
    client.submit("k", secret_thing="canary")
    reading = Browser(app, TEXTS[Scope.READ])
    for form in ("csv", "jsonl"):
        assert "canary" not in reading.get(f"/api/v1/export.{form}").text
    assert "args" not in reading.get("/api/v1/export.csv").text.splitlines()[0]


def test_the_list_leads_to_files_of_what_it_finds(client: Client, admin: Browser) -> None:
    client.submit("k", queue="a b")
    client.submit("k", queue="other")
    page = seen(admin.get("/jobs?q=queue:a%2520b"))
    links = [str(a["href"]) for a in page.of("a") if "export" in str(a.get("href"))]
    assert links == [f"/api/v1/export.{form}?queue=a+b" for form in ("csv", "jsonl")]
    assert len(admin.get(links[1]).text.splitlines()) == 1


# Changes by a filter ----------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_all_that_match_are_changed_in_parts_and_no_others(client: Client, admin: Browser) -> None:
    client.submit_many("k", [{} for _ in range(9)])
    client.submit_many("k", [{}], delay_s=3_600)
    client.submit("other")
    assert go_on(admin, "cancel", kind="k", up_to=10) == [{"cancelled": n} for n in (4, 4, 2)]
    assert states(client, kind="k") == [State.CANCELLED] * 10
    assert states(client, kind="other") == [State.PENDING]
    assert sum(part["revived"] for part in go_on(admin, "revive", kind="k")) == 10
    assert set(states(client, kind="k")) == {State.PENDING}
    go_on(admin, "cancel", state="pending", kind="k")
    assert sum(part["deleted"] for part in go_on(admin, "delete", kind="k")) == 10
    assert states(client) == [State.PENDING]
    record = admin.get("/api/v1/operations").json["operations"]
    assert (record[-1]["what"], record[-1]["target"]) == ("jobs.cancel", "jobs: kind:k")


def test_a_batch_is_in_nobodys_way_and_ends_with_its_jobs(client: Client, admin: Browser) -> None:
    with client.batch("b") as batch:
        batch.submit("k")
    assert go_on(admin, "cancel", every=True) == [{"cancelled": 1, "refused": 1}]
    assert {State.PENDING, State.WAITING}.isdisjoint(states(client))


def test_a_batch_that_is_ticked_keeps_no_other_job_from_its_change(
    client: Client, local: Browser
) -> None:
    with client.batch("b", open=True) as batch:
        pass
    job = client.submit("k")
    fields = urlencode([("job", batch.uuid), ("job", job.uuid)]).encode()
    headers = {"origin": "null", "sec-fetch-site": "same-origin"}
    told = local.ask("POST", "/jobs/cancel", fields, headers).header("location")
    assert told == "/jobs?told=some"
    assert (client.get(job).state, client.get(batch.uuid).state) == (State.CANCELLED, State.WAITING)
    assert local.send("POST", f"/api/v1/jobs/{batch.uuid}/cancel").status == 409


def test_a_mark_reaches_no_job_that_came_after_the_question(client: Client, admin: Browser) -> None:
    client.submit_many("k", [{} for _ in range(2)])
    body = {"kind": "k", "up_to": 1, "mark": "pending:9"}
    admin.send("POST", "/api/v1/matching/cancel", body)
    assert states(client) == [State.CANCELLED, State.PENDING]


def test_a_job_that_came_after_the_question_is_not_meant(client: Client, local: Browser) -> None:
    client.submit("k")
    page = seen(local.get("/jobs/matching?action=cancel&q=kind:k"))
    fields = {str(each["name"]): str(each["value"]) for each in page.of("input") if "value" in each}
    client.submit("k")
    fields = {name: fields[name] for name in ("q", "up_to", "mark")}
    there = local.form("/jobs/matching/cancel", **fields).header("location")
    assert there == "/jobs?q=kind%3Ak&told=matched"
    assert states(client) == [State.CANCELLED, State.PENDING]


@pytest.mark.parametrize(
    "text",
    ["nonsense:x kind:k", "state:faild", f"kind:k {'kind:k ' * WORDS_MAX}queue:x", "1", "id:x"],
)
def test_a_search_that_was_not_understood_changes_nothing(
    client: Client, local: Browser, text: str
) -> None:
    """Else a word that is left out would mean more jobs than the person does."""
    assert understood(text).faults or understood(text).path
    client.submit_many("k", [{} for _ in range(3)])
    assert "<button" not in local.get(f"/jobs/matching?q={text}").text.partition("<main")[2]
    assert local.form("/jobs/matching/cancel", q=text, up_to="9").status == 400
    assert set(states(client)) == {State.PENDING}


@pytest.mark.parametrize(
    "fields",
    [
        *({}, {"up_to": "x"}, {"up_to": "9", "mark": "x"}, {"up_to": "9", "mark": "failed:1"}),
        {"up_to": "9", "q": "kind:\0"},
    ],
)
def test_a_form_that_does_not_say_which_jobs_changes_nothing(
    client: Client, local: Browser, fields: dict[str, str]
) -> None:
    client.submit("k")
    assert local.form("/jobs/matching/cancel", **{"q": "kind:k", **fields}).status == 400
    assert states(client) == [State.PENDING]


def test_all_jobs_must_be_asked_for_by_name(client: Client, admin: Browser) -> None:
    client.submit("k")
    assert admin.send("POST", "/api/v1/matching/cancel", {}).status == 400
    assert admin.send("POST", "/api/v1/matching/cancel", {"state": "failed"}).status == 400
    assert admin.send("POST", "/api/v1/matching/cancel", {"queue": "\0"}).status == 400
    assert states(client) == [State.PENDING]
    assert go_on(admin, "cancel", every=True) == [{"cancelled": 1}]


def test_the_page_says_how_many_and_what_only_an_admin_may(app: Any, client: Client) -> None:
    client.submit_many("k", [{} for _ in range(3)])
    operator = Browser(app, TEXTS[Scope.OPERATE])
    text = operator.get("/jobs/matching?action=cancel").text
    assert re.search(r"<h2>3 jobs <small>none that is newer than #3", text)
    assert "all jobs" in text
    client.cancel(client.jobs()[0].uuid)
    asked = operator.get("/jobs/matching?action=delete&q=kind:k").text
    assert "<h2>1 job <small>" in asked
    assert "matching/delete" not in asked
    links = re.findall(r'href="(/jobs/matching[^"]*)"', operator.get("/jobs?q=kind:k").text)
    assert [unescape(link) for link in links] == [
        f"/jobs/matching?action={action}&q=kind%3Ak" for action in ("cancel", "revive")
    ]
    assert operator.get("/jobs/matching?action=drop").status == 400


@pytest.fixture
def going(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Four jobs, and a database that goes away for one part after the first."""
    client.submit_many("k", [{} for _ in range(4)])
    parts = list[Any]()
    cancel = matching._CHANGES["cancel"]

    def away(*given: Any) -> Any:
        parts.append(given)
        if len(parts) == 2:
            raise StoreUnavailable("gone")
        return cancel(*given)

    monkeypatch.setitem(matching._CHANGES, "cancel", away)
    return parts


@pytest.mark.usefixtures("small", "going")
def test_a_database_that_goes_away_in_the_middle_leaves_a_mark_to_go_on_from(
    local: Browser,
) -> None:
    answer = local.send("POST", "/api/v1/matching/cancel", {"state": "pending"}).json
    assert answer == {"answers": {"cancelled": 2}, "mark": "pending:3", "away": True}
    assert go_on(local, "cancel", state="pending", mark=answer["mark"]) == [{"cancelled": 2}]


@pytest.mark.usefixtures("small", "going")
def test_a_person_is_told_what_was_done_before_the_database_went_away(local: Browser) -> None:
    fields = {"q": "state:pending", "up_to": "4"}
    answer = local.form("/jobs/matching/cancel", **fields)
    assert answer.status == 503
    assert "2 cancelled until then; go back" in answer.json["detail"]
    there = local.form("/jobs/matching/cancel", **fields).header("location")
    assert there.endswith("told=matched")


def test_what_was_done_is_told_though_it_could_not_be_put_on_record(
    client: Client, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.submit_many("k", [{} for _ in range(3)])
    connections = local.app.state.desk.client.store.connections
    operations = local.app.state.desk.operations

    def away(name: str, /, **params: Any) -> Any:
        if name == "end_operation":
            raise StoreUnavailable("gone")
        return connections.run(name, **params)

    monkeypatch.setattr(operations, "_run", away)
    answer = local.form("/jobs/matching/cancel", q="kind:k", up_to="3")
    assert (answer.status, set(states(client))) == (503, {State.CANCELLED})
    assert "3 cancelled until then; none is left" in answer.json["detail"]
    assert local.get("/api/v1/operations").json["operations"][0]["after"] is None


def test_of_ticked_jobs_a_person_is_told_how_many_were_changed_before_the_database_went_away(
    client: Client, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = client.submit_many("k", [{} for _ in range(4)])
    desk = local.app.state.desk
    cancel, told = desk.client.cancel, list[Any]()

    def away(job: Any) -> Any:
        told.append(job)
        if len(told) == 3:
            raise StoreUnavailable("gone")
        return cancel(job)

    monkeypatch.setattr(type(desk.client), "cancel", lambda _, job: away(job))
    fields = urlencode([("job", handle.uuid) for handle in handles]).encode()
    headers = {"origin": "null", "sec-fetch-site": "same-origin", "accept": "text/html"}
    answer = local.ask("POST", "/jobs/cancel", fields, headers)
    assert answer.status == 503
    assert "2 were changed until then, 0 refused" in answer.text
    assert "the 2 that may be left" in answer.text
