"""Whatever is sent, by whomever: an answer that says what is wrong, and never a defect of ours."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.web.asgi import Answer, Browser

from timeball.client import Client
from timeball.web.app import ROUTES
from timeball.web.guard import SECURITY

API = [route for route in ROUTES if "events" not in route.path and "static" not in route.path]
NAMES = ("state", "queue", "kind", "before", "limit", "n", "q", "day", "zone", "told", "job", "x")
TEXT = st.text(max_size=40) | st.sampled_from(
    ["", "\0", "../..", "%00", "1" * 40, "-1", "9" * 19, "NaN", "2026-13-40", "9999-12-31", "🙂"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *("kind", "args", "uuid", "queue", "priority", "run_at", "delay_s", "timeout_s", "unique"),
        *("key", "after", "scope", "name", "at_once", "rate", "max_depth", "backfill", "delivery"),
    ]
)
BODY = st.dictionaries(FIELDS, JSON, max_size=5) | JSON


def sane(answer: Answer) -> bool:
    """An answer of ours: no defect, with its headers, and a problem as it should be."""
    headers = {name: answer.header(name) for name, _ in SECURITY} == dict(SECURITY)
    page = answer.header("content-type").startswith("text/html")  # the one that asks for a token
    problem = answer.status < 400 or page or answer.json["status"] == answer.status
    return headers and problem and (answer.status < 500 or answer.status == 503)


@pytest.mark.slow
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],  # the request is in the message
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_request_finds_a_defect(admin: Browser, data: st.DataObject) -> None:
    """Every route once in each example: about five seconds."""
    for route in API:
        path = re.sub(r"\{[^}]*\}", lambda _: quote(data.draw(TEXT), safe=""), route.path)
        query = data.draw(st.dictionaries(st.sampled_from(NAMES), TEXT, max_size=3))
        address = f"{path}?{urlencode(query)}"
        answer = asked(admin, route.method, address, data)
        assert sane(answer), (route.method, address, answer)


def asked(admin: Browser, method: str, address: str, data: st.DataObject) -> Answer:
    if method == "GET":
        return admin.get(address)
    if "/api/" in address:
        value: Any = data.draw(BODY)
        headers = {"content-type": "application/json"}
        return admin.ask(method, address, json.dumps(value).encode(), headers)
    fields = data.draw(st.dictionaries(st.sampled_from(NAMES), TEXT, max_size=3))
    return admin.form(address, **{name: value for name, value in fields.items() if value != "x"})


@pytest.mark.parametrize(
    "address",
    [
        "/schedules?day=9999-12-31&zone=UTC",
        "/schedules?day=0001-01-01&zone=Europe/Berlin",
        "/schedules?zone=../../etc/passwd",
        "/jobs?before=999999999999999999",
        "/jobs?q=queue:%F0%9F%99%82%20kind:%EF%BF%BF",
        f"/jobs?q={'state:failed+' * 500}",
        "/batches?before=999999999999999999",
        "/record?before=999999999999999999",
        "/api/v1/schedules/x?n=101",
    ],
)
def test_what_lies_beyond_all_bounds_is_answered(
    client: Client, local: Browser, address: str
) -> None:
    client.schedule("s", "k", cron="30 2 29 2 *", tz="Europe/Berlin")
    assert local.get(address).status in {200, 404, 422}


@pytest.mark.parametrize("address", ["/jobs?q=%00", "/api/v1/jobs?queue=a%00", "/schedules/%00"])
def test_what_no_name_can_hold_is_refused(local: Browser, address: str) -> None:
    assert local.get(address).status == 400
