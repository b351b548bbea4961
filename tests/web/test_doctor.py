"""The doctor's page."""

from __future__ import annotations

from typing import Any

import psycopg
from tests.store.postgres.test_doctor import schedule
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS

from timeball.web import Scope


def test_it_shows_each_check_with_word_icon_and_what_mends_it(direct: str, admin: Browser) -> None:
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(schedule("error").encode())
    text = admin.get("/doctor").text
    for check in ("server", "durability", "snapshots", "schema", "indexes", "clock", "zone data"):
        assert f"<td>{check}</td>" in text
    assert text.count("<tr") == 1 + text.count('<span class="pill v-')
    assert "does not fire: no zone" in text
    assert "timeball cron show &#39;it&#39;&#34;&#39;&#34;&#39;s&#39;" in text
    assert text.index('v-trouble">') < text.index("pill v-ok")


def test_it_names_sessions_and_so_is_for_those_who_operate(app: Any) -> None:
    assert Browser(app, TEXTS[Scope.READ]).get("/doctor").status == 403
    reader = Browser(app, TEXTS[Scope.READ])
    assert 'href="/doctor"' not in reader.get("/").text
    assert Browser(app, TEXTS[Scope.OPERATE]).get("/doctor").status == 200
