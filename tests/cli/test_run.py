"""`timeball run`: what is refused, what is left to others, and what is carried out here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from tests.action.server import DATA, Answer, plain, serving
from tests.cli.invoking import invoke, said
from tests.cli.processes import Home, temporary_home, until
from tests.store.world import World

from timeball.client import Client

SECONDS = str(900_000 + os.getpid())
"""By which the processes of these tests are known."""

URL = "https://example.org/hook"


@contextmanager
def served(*answers: Answer) -> Iterator[str]:
    """A server with a certificate, in a thread; gives its address."""
    ready, stop, found = Event(), Event(), []

    async def main() -> None:
        async with serving(*answers, certificate="server.pem") as server:
            found.append(server.url)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0]
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("run") / "home") as home:
        home.said("db", "start")
        yield home


def test_a_request_is_left_to_the_next_worker(world: World) -> None:
    words = ("-H", "X-One: 1", "--json", '{"n": 1}', "--auth", "env:T", "--user", "ada")
    uuid = said("run", "http", URL, *words, "--timeout", "5s", "--retries", "2").strip()
    (job,) = Client(world.store).jobs()
    assert (str(job.uuid), job.kind, job.max_retries) == (uuid, "timeball.http", 2)
    assert job.args == {
        "method": "POST",
        "url": URL,
        "headers": {"X-One": "1"},
        "json": {"n": 1},
        "auth": ["ada", {"$secret": "env:T"}],
    }


@pytest.mark.parametrize(
    ("words", "said_"),
    [
        (("http://169.254.169.254/",), "169.254.169.254 is not public (link-local"),
        (("http://127.0.0.1/",), 'allow=["127.0.0.1"]'),
        (("http://localhost/", "--wait"), "localhost is not public"),
        (("ftp://example.org/",), "http:// or https://"),
        ((URL, "--json", "{"), "--json is no JSON"),
        ((URL, "-H", "X-One"), "NAME:VALUE"),
        ((URL, "-H", "Authorization: Bearer abc"), "Secret"),
        ((URL, "--user", "ada"), "--auth"),
        ((URL, "--auth", "hunter22"), "env:NAME"),
    ],
)
def test_what_is_not_safe_is_refused_before_anything_is_submitted(
    world: World, words: tuple[str, ...], said_: str
) -> None:
    result = invoke("run", "http", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said_ in result.stderr
    assert "hunter22" not in result.stderr
    assert Client(world.store).jobs() == []


def test_a_certificate_that_is_no_text_is_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "ca.der"
    path.write_bytes(b"0\x82\xff\xfe")
    result = invoke("run", "http", URL, "--ca", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "ca is no certificate: pass the text of a PEM file" in result.stderr
    assert Client(world.store).jobs() == []


@pytest.mark.slow
def test_a_request_is_carried_out_here_and_its_answer_written(home: Home) -> None:
    with served(plain(b'{"ok": true}\n'), plain(b"because", status="404 X")) as url:
        words = ("run", "http", url, "--allow", "127.0.0.1/32", "--ca", str(DATA / "ca.pem"))
        done = home.run(*words, "--wait")
        assert (done.returncode, done.stdout) == (0, '{"ok": true}\n'), done.stderr
        assert done.stderr.rstrip().endswith(" succeeded")
        done = home.run(*words, "--wait")
        assert (done.returncode, done.stdout) == (1, "")
        assert "the server answered 404\n\nbecause" in done.stderr
    # A name that has no public address is refused where the connection is made.
    done = home.run("run", "http", "http://localhost/", "--allow", "localhost.", "--wait")
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.slow
def test_a_command_is_carried_out_here_and_ended_with_all_that_it_started(home: Home) -> None:
    done = home.run("run", "command", "--env", "WORD=hello", "--", "sh", "-c", 'echo "$WORD $1"')
    assert (done.returncode, done.stdout) == (0, "hello \n"), done.stderr
    done = home.run("run", "command", "--timeout", "1", "--", "sh", "-c", f"sleep {SECONDS} & wait")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ran longer than its time" in done.stderr
    assert not sleeping()
    done = home.run("run", "command", "--json", "--", "/no/such/program")
    assert done.returncode == 1
    assert "exit code 127" in json.loads(done.stdout)["job"]["error"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_ends_with_the_one_who_runs_it(home: Home, number: signal.Signals) -> None:
    with home.start(
        "run", "command", "--", "sh", "-c", f"setsid sleep {SECONDS} & wait"
    ) as running:
        until(sleeping, "it runs")
        running.process.send_signal(number)
        running.process.wait(60)
        until(lambda: not sleeping(), "it has ended")


def sleeping() -> list[int]:
    """The processes that the commands above start."""
    return [
        each.pid
        for each in psutil.process_iter(["cmdline"])
        if each.info["cmdline"] == ["sleep", SECONDS]
    ]


@pytest.mark.slow
def test_a_command_finds_only_what_it_is_given(home: Home, tmp_path: Path) -> None:
    words = ("run", "command", "--cwd", str(tmp_path), "--", "sh", "-c", "pwd; env")
    done = home.run(*words, CANARY_SECRET="geheim")
    first, *rest = done.stdout.splitlines()
    assert first == str(tmp_path)
    names = {line.partition("=")[0] for line in rest}
    own = {"PWD", "OLDPWD", "SHLVL", "_"}  # the shell's
    facts = {"TIMEBALL_JOB_ID", "TIMEBALL_KIND", "TIMEBALL_ATTEMPT"}
    assert names - own == {"PATH", "HOME"} | facts
    assert home.run("run", "command", "--env", "NO_SUCH_VARIABLE", "--", "true").returncode == 2


def test_a_statement_is_left_to_the_next_worker(world: World) -> None:
    words = ("--on", "env:REPORTS", "--param", "shop=7", "--role", "reporter", "--retries", "2")
    uuid = said("run", "sql", "select %(shop)s", *words).strip()
    (job,) = Client(world.store).jobs()
    assert (str(job.uuid), job.kind, job.max_retries) == (uuid, "timeball.sql", 2)
    assert job.args == {
        "statement": "select %(shop)s",
        "dsn": {"$secret": "env:REPORTS"},
        "read_only": True,
        "params": {"shop": 7},
        "role": "reporter",
    }


@pytest.mark.parametrize(
    "words",
    [("select 1",), ("", "--on", "env:X"), ("select 1", "--on", "postgresql://u:hunter22@h/d")],
)
def test_a_statement_without_a_safe_place_is_refused(world: World, words: tuple[str, ...]) -> None:
    result = invoke("run", "sql", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "hunter22" not in result.stderr
    assert Client(world.store).jobs() == []


@pytest.mark.slow
def test_a_statement_is_carried_out_here_and_its_rows_written(home: Home) -> None:
    own = {"TIMEBALL_SECRET_OWN": home.said("db", "url").strip()}
    words = ("run", "sql", "--on", "env:OWN", "--wait")
    statement = "select %(n)s::int as n, null as none union all select 2, 'x' order by n"
    done = home.run(*words, statement, "--param", "n=1", **own)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()] == [["N", "NONE"], ["1"], ["2", "x"]]
    done = home.run(*words, "create table sql_run (n int)", **own)
    assert done.returncode == 1
    assert "read-only" in done.stderr
    done = home.run(*words, "create temporary table sql_run (n int)", "--write", "--json", **own)
    assert json.loads(done.stdout)["job"]["state"] == "succeeded", done.stderr


@pytest.mark.slow
def test_a_worker_with_a_wrong_allow_list_says_so_and_does_not_start(home: Home) -> None:
    for name, text in (("HTTP", "10.0.0.1/8"), ("COMMAND", "ls")):
        variable = f"TIMEBALL_{name}_ALLOW"
        done = home.run("run", "http", URL, "--wait", **{variable: text})
        assert done.returncode != 0
        assert f"{variable}" in done.stderr
        assert "write" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [("run", "http", URL, "--json"), ("submit", "job", "--json")],
)
def test_what_is_nested_without_end_is_refused(world: World, words: tuple[str, ...]) -> None:
    result = invoke(*words, "[" * 100_000)
    assert (result.exit_code, result.stdout) == (2, "")
    assert invoke("submit", "job", "a=" + "[" * 100_000).exit_code == 2
    assert Client(world.store).jobs() == []
