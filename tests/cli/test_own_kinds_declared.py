"""HTTP and SQL jobs in a schedules.toml: declared without code, checked when it is read."""

from __future__ import annotations

import json
from pathlib import Path

from timeball.cli.declared import Asked, Reading, read

GOOD = """
[schedules.ping]
cron = "*/5 * * * *"
kind = "timeball.http"
timeout_s = 10
[schedules.ping.args]
method = "POST"
url = "https://example.org/ping"
json = { text = "{{7*7}} ${HOME} {url}" }
auth = { "$secret" = "env:PING_TOKEN" }

[schedules.tidy]
cron = "0 3 * * *"
kind = "timeball.sql"
args = { statement = "delete from log", read_only = false, dsn = { "$secret" = "env:LOG_DSN" } }
"""
BAD = """
[schedules.metadata]
cron = "0 3 * * *"
kind = "timeball.http"
args = { method = "GET", url = "http://169.254.169.254/" }

[schedules.plain]
cron = "0 3 * * *"
kind = "timeball.http"
args = { method = "GET", url = "https://a.example/", headers = { Authorization = "B hunter22" } }

[schedules.dsn]
cron = "0 3 * * *"
kind = "timeball.sql"
args = { statement = "select 1", dsn = "postgresql://u:hunter22@h/d" }
"""


def reading(tmp_path: Path, text: str) -> Reading:
    path = tmp_path / "schedules.toml"
    path.write_text(text)
    return read([str(path)], Asked(tz="UTC"))


def test_http_and_sql_jobs_are_declared_without_code(tmp_path: Path) -> None:
    found = reading(tmp_path, GOOD)
    assert found.faults == []
    ping, tidy = found.schedules
    assert ping.notes == tidy.notes == ()
    assert (ping.spec.kind, ping.spec.timeout_s, tidy.spec.timeout_s) == ("timeball.http", 10, 60)
    # Nothing is evaluated, and a secret stays a reference.
    args = json.loads(ping.spec.args)
    assert args["json"] == {"text": "{{7*7}} ${HOME} {url}"}
    assert args["auth"] == {"$secret": "env:PING_TOKEN"}


def test_what_is_not_safe_is_refused_with_its_line_and_without_its_secret(tmp_path: Path) -> None:
    found = reading(tmp_path, BAD)
    assert found.schedules == []
    told = [str(fault) for fault in found.faults]
    assert [fault.line for fault in found.faults] == [2, 7, 12]
    for word, text in zip(("not public", "Authorization", "dsn is stored"), told, strict=True):
        assert word in text
        assert "hunter22" not in text
