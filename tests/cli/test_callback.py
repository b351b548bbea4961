"""`timeball callback`: a job waits for a call, and somebody is told where to call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import pytest
from tests.cli.invoking import invoke, said
from tests.cli.processes import Home, temporary_home, until
from tests.cli.test_serve import Over, answers
from tests.store.world import World

from timeball.action.webhook import key_of
from timeball.core.callbacks import CALL
from timeball.core.states import State

BASE = "https://jobs.example"


def test_a_new_key_is_one_and_never_the_same() -> None:
    one, other = said("callback", "key").strip(), said("callback", "key").strip()
    assert len(key_of(one)) == len(key_of(other)) == 32
    assert one != other


def test_a_callback_is_added_its_address_told_and_its_end_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", said("callback", "key").strip())
    uuid = uuid4()
    words = ("callback", "add", "payment 7", "--within", "365d", "--at", BASE, "--uuid", str(uuid))
    shown, reference = said(*words).splitlines()
    assert said(*words).splitlines() == [shown, reference]
    assert shown == str(uuid)
    address = f"{BASE}/api/v1/callbacks/{uuid}"
    assert json.loads(reference) == {"$secret": f"callback:{address}"}
    told = said("callback", "url", str(uuid), "--at", BASE).strip()
    assert told.startswith(f"{address}/")
    assert (world.job(uuid).state, world.job(uuid).reason) == (State.WAITING, CALL)
    text = said("jobs", "show", str(uuid))
    assert "waiting" in text
    assert told not in text
    world.store.call_back(uuid, '{"paid": true}')
    assert '{"paid": true}' in said("jobs", "show", str(uuid))


def test_mistakes_are_told_before_anything_has_happened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIMEBALL_SECRET_CALLBACK", raising=False)
    add = ("callback", "add", "a", "--within")
    for words in ((*add, "x"), (*add, "1h", "--at", "jobs.example"),
                  (*add, "1h", "--signed-by", "whsec_x")):  # fmt: skip
        assert invoke(*words).exit_code == 2
    assert world.store.counts() == {} or not any(world.store.counts().values())
    uuid = said(*add, "365d").strip()
    lacking = invoke("callback", "url", uuid, "--at", BASE)
    assert (lacking.exit_code, "timeball callback key" in lacking.output) == (2, True)
    other = str(world.submit())
    assert invoke("callback", "url", other, "--at", BASE).exit_code == 2


@contextmanager
def killed_later(home: Home, path: Path) -> Iterator[HTTPConnection]:
    """A connection to a server that is killed in the end."""
    with home.start("serve", "--socket", str(path)) as running:
        running.wait_for("dashboard at")
        until(lambda: answers(path), "an answer")
        connection = Over(path)
        yield connection
        running.process.kill()
        running.process.wait()
    connection.close()


@pytest.mark.slow
def test_a_server_killed_between_two_calls_tells_the_second_what_it_told_the_first(
    tmp_path: Path,
) -> None:
    with temporary_home(tmp_path / "h") as home:
        home.env["TIMEBALL_SECRET_CALLBACK"] = said("callback", "key").strip()
        uuid = home.said("callback", "add", "a", "--within", "1h").strip()
        url = home.said("callback", "url", uuid, "--at", "http://localhost").strip()
        target = url.removeprefix("http://localhost")
        with killed_later(home, tmp_path / "s") as connection:  # in the middle of a call
            connection.putrequest("POST", target)
            connection.putheader("content-length", "8")
            connection.endheaders(b'{"n"')
        told = []
        for body in (b'{"n": 1}', b'{"n": 1}', b'{"n": 2}'):
            with killed_later(home, tmp_path / "s") as connection:
                connection.request("POST", target, body)
                answer = connection.getresponse()
                told.append((answer.status, answer.read()))
        assert [status for status, _ in told] == [200, 200, 409]
        assert told[0] == told[1]
        assert home.run("audit").returncode == 0
