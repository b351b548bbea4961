"""Redaction: no secret is shown, no command is spoilt, no text takes long."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.redaction import holds_secret, redacted, redacted_value

SECRET = "hunter2"


@pytest.mark.parametrize(
    "command",
    [
        "PGPASSWORD=hunter2 pg_dump",
        "x --password hunter2",
        "x --db-password='hunter2'",
        "x -token hunter2",
        "mysqldump -u root -phunter2 db",
        "sshpass -p hunter2 ssh h",
        "docker login -u me -p hunter2 registry",
        "curl -u me:hunter2 https://h",
        "curl -H 'Authorization: Bearer hunter2'",
        'curl -H "X-Cron-Secret: hunter2"',
        "curl 'https://h/x?api_key=hunter2&n=1'",
        "curl 'https://h/x?key=hunter2'",
        "pg_dump postgres://u:hunter2@h/db",
        "curl https://hooks.slack.com/services/hunter2",
        """python -c 'x = {"secret": "hunter2"}'""",
        "AWS_SECRET_ACCESS_KEY=hunter2 aws s3 ls",
        "echo ghp_hunter2hunter2hunter2",
    ],
)
def test_a_secret_is_hidden(command: str) -> None:
    assert SECRET not in redacted(command)
    assert holds_secret(command)


@pytest.mark.parametrize(
    "command",
    [
        'x --password "$DB_PASSWORD"',
        "PGPASSWORD=$(cat /run/pw) pg_dump",
        "maint.purge_tokens --all",
        "docker run -p 80:80 image",
        "cd /srv/secrets && ./rotate-tokens.sh --dry-run",
        "find /logs -name '*.log' -mtime +7 -delete",
    ],
)
def test_what_is_no_secret_stays(command: str) -> None:
    assert redacted(command) == command
    assert not holds_secret(command)


@given(st.text(alphabet="-pu :=/@?&'\"$a.password", max_size=300))
def test_what_is_redacted_stays_as_it_is(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


def test_values_are_hidden_by_their_names_and_by_their_shape() -> None:
    given_args = {"token": SECRET, "url": f"https://u:{SECRET}@h", "deep": [{"api_key": SECRET}]}
    assert SECRET not in str(redacted_value("", given_args))
    assert redacted_value("limit", 500) == 500
    assert redacted_value("", {"n": [1, None, "plain"]}) == {"n": [1, None, "plain"]}


def test_what_is_nested_without_end_is_shown_as_far_as_anybody_reads() -> None:
    value: object = "x"
    for n in range(100_000):
        value = [value] if n % 2 else {"k": value}
    shown = json.dumps(redacted_value("", value), ensure_ascii=False)
    assert "…" in shown
    assert len(shown) < 1_000


@pytest.mark.parametrize(
    "value",
    [
        {"password": {"value": SECRET, "deep": [{"n": SECRET}]}},
        {"password": [SECRET]},
        {"password": {SECRET}},
        {"password": SECRET.encode()},
        {b"password": SECRET},
        {("password", 1): SECRET},
        {"any": f"token={SECRET}".encode()},
        {"any": memoryview(f"token={SECRET}".encode())},
        {f"postgres://u:{SECRET}@h": 1},
        {"$secret": SECRET},
        {"$secret": f"https://u:{SECRET}@h"},
        {"$secret": "env:X", "token": SECRET},
    ],
)
def test_a_secret_is_hidden_however_deep_and_whatever_holds_it(value: object) -> None:
    assert SECRET not in repr(redacted_value("", value))
    assert redacted_value("", value)


def test_a_number_is_hidden_where_it_is_the_secret_and_not_where_it_counts_some() -> None:
    given_args = {"password": 1234, "api_key": 1.5, "max_tokens": 500, "has_password": True, 7: 8}
    shown = {"password": "…", "api_key": "…", "max_tokens": 500, "has_password": True, "7": 8}
    assert redacted_value("", given_args) == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["token", "password-", "mysql ", "docker login ", " -p", " -u a", "a://b", 'token="']
)
def test_a_text_costs_in_proportion_to_its_length(piece: str) -> None:
    # Time is not measured: by a pattern that tries all pairs of places this takes hours.
    text = piece * (1_000_000 // len(piece))
    assert len(redacted(text)) <= len(text)
