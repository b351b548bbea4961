"""What a server was told and by whom; tokens that end; and no secret of either is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.web.asgi import Browser
from tests.web.conftest import CALLBACK_KEY, TEXTS, TOKENS
from tests.web.test_pages import POISON, seen

import timeball
from timeball import chance
from timeball.client import Client
from timeball.errors import UsageError
from timeball.store.postgres.connections import shown
from timeball.web import Scope, Token, create_app, settings
from timeball.web.sessions import COOKIE
from timeball.web.settings import UNREAD, VARIABLES, Origin, Setting
from timeball.web.tokens import Tokens, read_tokens

CANARY = "geheim-geheim"
DAY_S = 86_400.0


@pytest.fixture
def told(client: Client) -> Iterator[Any]:
    """An application whose settings may be changed."""
    app = create_app(client, tokens=TOKENS, hosts=["jobs.example"], title="ops")
    yield app
    app.state.desk.look_connections.close()


def rows(browser: Browser, part: str) -> dict[str, dict[str, Any]]:
    found = browser.get("/api/v1/settings").json[part]
    return {each["name"]: each for each in found}


def test_a_program_and_its_defaults_are_told_apart(told: Any) -> None:
    found = rows(Browser(told, TEXTS[Scope.ADMIN]), "settings")
    assert {name: (each["value"], each["origin"]) for name, each in found.items()} == {
        "hosts=": ("jobs.example", "program"),
        "base_path=": (None, "default"),
        "title=": ("ops", "program"),
        "results=": (None, "default"),
    }


def test_the_page_and_the_api_say_the_same(told: Any) -> None:
    given = [Setting("--port", "80", Origin.COMMAND, "Where."), Setting("-x", None, Origin.DEFAULT)]
    told.state.desk.settings.tell(given)
    admin = Browser(told, TEXTS[Scope.ADMIN])
    answer = admin.get("/api/v1/settings").json
    assert answer["settings"] == [each._asdict() for each in given]
    assert answer["hosts"] == ["127.0.0.1", "[::1]", "jobs.example", "localhost"]
    said = " ".join(" ".join(seen(admin.get("/settings")).said).split())
    assert "--port Where. 80 command line -x not set default" in said
    assert "jobs.example" in said
    made = answer["made_of"]
    assert made["timeball"] == timeball.__version__
    assert made["db_schema_version"].startswith("0")
    assert made["db_schema_trouble"] is None
    for name in ("timeball", "python", "postgresql", "db_schema_version", "zone_data"):
        assert made[name] in said, name


def test_of_secrets_only_is_shown_that_they_are_there(
    admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "TIMEBALL_DSN", f"postgresql://ada:{CANARY}@db.example/x?sslpassword={CANARY}"
    )
    monkeypatch.setenv("DATABASE_URL", f"mysql://ada:{CANARY}@db.example/x")
    monkeypatch.setenv("TIMEBALL_SECRET_PARTNER", CANARY)
    monkeypatch.setenv("TIMEBALL_SECRT_SLIP", CANARY)
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "10.0.0.0/8")
    monkeypatch.setenv(f"TIMEBALL_{POISON.replace('=', '-')}", POISON)
    texts = [admin.get(path).text for path in ("/settings", "/api/v1/settings")]
    for text in texts:
        assert CANARY not in text
        assert CALLBACK_KEY not in text
        assert not [token.hash for token in TOKENS if token.hash in text]
        assert not [text_ for text_ in TEXTS.values() if text_ in text]
    assert len(seen(admin.get("/settings")).of("script")) == 1
    found = rows(admin, "environment")
    told = {name: (found[name]["value"], found[name]["origin"]) for name in found}
    assert told["TIMEBALL_DSN"] == ("user=ada dbname=x host=db.example", "environment")
    assert told["TIMEBALL_SECRET_PARTNER"] == told["DATABASE_URL"] == ("…", "environment")
    assert told["TIMEBALL_HTTP_ALLOW"] == ("10.0.0.0/8", "environment")
    assert told["TIMEBALL_SEAL"] == (None, "default")
    assert found["TIMEBALL_SECRT_SLIP"]["about"] == UNREAD


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ada:{CANARY}@h/db",
        f"host=h password='{CANARY} x' passfile={CANARY}",
        f"host=h options='-c a.b={CANARY}'",
        CANARY,
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(dsn: str) -> None:
    assert CANARY not in shown(dsn)


def test_every_variable_that_something_reads_is_listed() -> None:
    source = Path(timeball.__file__).parent
    read = set[str]()
    for path in source.rglob("*.py"):
        if "certify" not in path.parts:
            for pattern in (
                r'environ(?:\.get\(|\[)"(\w+)"',
                r'envvar="(\w+)"',
                r'= "(TIMEBALL_\w+)"',
            ):
                read |= set(re.findall(pattern, path.read_text("utf-8")))
    ours = {name for name in read if name.startswith("TIMEBALL_")}
    assert ours - {settings.PREFIX, settings.SECRET} <= VARIABLES.keys()
    assert {"TIMEBALL_DSN", "TIMEBALL_WEB", "TIMEBALL_SEAL", "TIMEBALL_LISTEN_DSN"} <= ours


# Tokens ---------------------------------------------------------------------------------------


def test_a_token_is_listed_with_all_but_what_lets_somebody_in(told: Any) -> None:
    admin = Browser(told, TEXTS[Scope.ADMIN])
    before = rows(admin, "tokens")
    assert before["read"]["used_at"] is None
    assert before["admin"]["used_at"] is not None
    assert before["read"]["scopes"] == ["read"]
    assert before["read"]["created_at"] is not None
    assert before["read"]["expires_at"] is None
    Browser(told, TEXTS[Scope.READ]).get("/jobs")
    assert rows(admin, "tokens")["read"]["used_at"] is not None


def test_a_server_without_tokens_says_how_one_is_made(local: Browser) -> None:
    said = "".join(seen(local.get("/settings")).said)
    assert "timeball serve --new-token NAME" in said
    assert rows(local, "tokens") == {}


def test_a_token_lets_nobody_in_from_its_end_on_and_ends_what_it_began(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, text = Token.new("ci", [Scope.READ], expires_s=DAY_S)
    ops, admin_text = Token.new("ops", [Scope.ADMIN])
    app = create_app(client, tokens=[token, ops])
    program, person = Browser(app, text), Browser(app)
    person.form("/login", token=text)
    assert person.cookies[COOKIE]
    assert [each.get("/jobs").status for each in (program, person)] == [200, 200]
    later = chance.now() + timedelta(seconds=DAY_S)
    monkeypatch.setattr("timeball.web.tokens.now", lambda: later)
    assert [each.get("/jobs").status for each in (program, person)] == [401, 401]
    assert person.form("/login", token=text).status == 400
    admin = Browser(app, admin_text)
    assert rows(admin, "tokens")["ci"]["expired"]
    assert "expired" in admin.get("/settings").text
    app.state.desk.look_connections.close()


def test_the_dates_of_a_token_come_back_from_its_file(tmp_path: Path) -> None:
    made = [
        Token.new(f"t{n}", [Scope.READ], expires_s=end)[0] for n, end in enumerate([None, 60.0])
    ]
    file = tmp_path / "tokens"
    file.write_text("".join(f"{token.line}\n" for token in made))
    assert read_tokens(file) == made
    assert made[1].expires_at == made[1].created_at + timedelta(minutes=1)  # type: ignore[operator]


@pytest.mark.parametrize(
    "more",
    [
        "expires=soon",
        "expires",
        "ends=2030-01-01T00:00Z",
        "expires=2030-01-01T00:00",
        "created=2030-01-01T00:00Z created=2030-01-01T00:00Z",
    ],
)
def test_a_line_with_other_dates_is_refused(tmp_path: Path, more: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{TOKENS[0].name} read {TOKENS[0].hash} {more}\n")
    with pytest.raises(UsageError) as error:
        read_tokens(file)
    assert TOKENS[0].hash not in str(error.value)


def test_a_token_ends_within_the_calendar_and_its_use_is_remembered() -> None:
    with pytest.raises(UsageError, match="beyond all calendars"):
        Token.new("ci", [Scope.READ], expires_s=1e12)
    tokens = Tokens(TOKENS)
    assert tokens.used_at(TOKENS[0]) is None
    tokens.use(TOKENS[0])
    assert abs(datetime.now(UTC) - tokens.used_at(TOKENS[0])) < timedelta(minutes=5)  # type: ignore[operator]
