"""`timeball serve`, and the dashboard beside workers."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.cli.invoking import invoke, said
from tests.cli.processes import Home, temporary_home, until

from timeball.cli.serve import command
from timeball.cli.serving import settings_told, web
from timeball.errors import UsageError
from timeball.web import Scope
from timeball.web.server import bound, bound_file
from timeball.web.tokens import read_tokens


class Over(HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def asked(connection: HTTPConnection, path: str, **headers: str) -> tuple[int, Any]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if text.startswith("{") else text


def test_a_new_token_is_shown_once_and_its_line_lets_nobody_in(tmp_path: Path) -> None:
    result = invoke("serve", "--new-token", "ci", "--scope", "read", "--scope", "submit")
    file = tmp_path / "tokens"
    file.write_text(result.stdout)
    (token,) = read_tokens(file)
    assert (token.name, token.scopes) == ("ci", {Scope.READ, Scope.SUBMIT})
    text = re.findall(r"tb_[\w-]{43}", result.stderr)
    assert len(text) == 1
    assert text[0] not in result.stdout
    assert said("serve", "--new-token", "a").split()[1] == "read"


def test_a_new_token_ends_when_it_was_said_to(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(said("serve", "--new-token", "ci", "--expires-in", "90d"))
    (token,) = read_tokens(file)
    assert token.created_at is not None
    assert token.expires_at == token.created_at + timedelta(days=90)
    for text in ("soon", "0", "999999999d"):
        assert invoke("serve", "--new-token", "ci", "--expires-in", text).exit_code == 2


@pytest.mark.parametrize("words", [("--scope", "read"), ("--expires-in", "1d")])
def test_what_a_new_token_is_like_without_one_is_a_mistake(words: tuple[str, str]) -> None:
    assert invoke("serve", *words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "environment", "told"),
    [
        ((), {}, ("the embedded PostgreSQL", "default")),
        (
            (),
            {"DATABASE_URL": "postgresql://a:geheim@h/x"},
            ("user=a dbname=x host=h", "environment"),
        ),
        (("--dsn", "host=h password=geheim"), {"DATABASE_URL": "x"}, ("host=h", "command line")),
    ],
)
def test_a_command_says_who_named_its_database(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    environment: dict[str, str],
    told: tuple[str, str],
) -> None:
    for name in ("TIMEBALL_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    with command.make_context("serve", [*words, "--title", "ops"]) as ctx, ctx.scope():
        found = {each.name: (each.value, each.origin) for each in settings_told(web())}
    assert found["--dsn"] == told
    assert found["--title"] == ("ops", "command line")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.9", "no.such.host.invalid"])
def test_without_tokens_no_other_machine_is_served(host: str) -> None:
    with pytest.raises(UsageError, match="--host"):
        bound(host, 0, tokens=False)


def test_a_port_that_is_taken_is_no_mistake_of_the_caller() -> None:
    with bound("127.0.0.1", 0, tokens=False) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} .* in use; port 0 takes any"):
            bound("127.0.0.1", port, tokens=False)


def test_a_socket_is_for_its_user_alone_and_an_old_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with bound_file(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(UsageError, match="somebody serves"):
            bound_file(path)
    with bound_file(path):  # nobody serves there any more
        pass
    (tmp_path / "text").write_text("mine")
    with pytest.raises(UsageError, match="something else"):
        bound_file(tmp_path / "text")


@pytest.mark.slow
def test_without_the_extra_it_says_how_to_install_it() -> None:
    program = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['timeball', 'serve']\n"
        "from timeball.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"pip install 'timeball[web]'" in done.stderr


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("s") / "h") as home:
        yield home


@pytest.mark.slow
def test_it_serves_on_a_socket_until_it_is_told_to_stop(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with home.start("serve", "--socket", str(path)) as running:
        running.wait_for("dashboard at")
        until(lambda: answers(path), "an answer")
        status, counts = asked(Over(path), "/api/v1/counts")
        assert (status, counts["counts"]["pending"]) == (200, 0)
        assert asked(Over(path), "/")[0] == 200
        assert asked(Over(path), "/", Host="evil.example")[0] == 421
        told = asked(Over(path), "/api/v1/settings")[1]["settings"]
        found = {each["name"]: (each["value"], each["origin"]) for each in told}
        assert found["--socket"] == (str(path), "command line")
        assert found["--dsn"] == ("the embedded PostgreSQL", "default")
        assert found["--host"] == ("127.0.0.1", "default")
        assert found["--results"] == (None, "default")
        assert "--new-token" not in found
        assert running.stop(signal.SIGTERM) in {0, 143, -signal.SIGTERM}


@pytest.mark.slow
def test_up_has_the_dashboard_beside_it(home: Home, tmp_path: Path) -> None:
    table = tmp_path / "crontab"
    table.write_text("0 0 1 1 * true\n")
    with home.start("up", str(table), "--web", "0", "--tz", "UTC") as running:
        running.wait_for("dashboard at")
        (port,) = re.findall(r"dashboard at http://127\.0\.0\.1:(\d+)/", running.written)
        there = HTTPConnection("127.0.0.1", int(port))
        until(lambda: asked(there, "/api/v1/workers")[1]["workers"], "a worker")
        assert len(asked(there, "/api/v1/schedules")[1]["schedules"]) == 1
        told = asked(there, "/api/v1/settings")[1]["settings"]
        found = {each["name"]: (each["value"], each["origin"]) for each in told}
        assert found["files"] == (str(table), "command line")
        assert found["--tz"] == ("UTC", "command line")
        assert found["--slots"] == ("8", "default")
        there.close()
        assert running.stop() == 0


def answers(path: Path) -> bool:
    try:
        return asked(Over(path), "/login")[0] == 200
    except ConnectionError:
        return False
