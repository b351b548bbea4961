"""Sealed payloads: nothing of them is in the database, and only who has the key reads them."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres import TABLES
from tests.store.world import World, end

import timeball as tb
from timeball.action.context import StopSign
from timeball.action.kind import Kind
from timeball.action.python import carry_out
from timeball.action.registry import Registry
from timeball.client import Client
from timeball.core.batches import BATCH
from timeball.core.dependencies import Edge
from timeball.core.outcomes import Outcome, Raised, Returned, Run, decide
from timeball.core.payload import SEALED
from timeball.core.records import JobSpec, Verdict
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore, sealing
from timeball.store.postgres.encoding import encode_specs
from timeball.store.postgres.panorama import Panorama
from timeball.store.postgres.sealing import Seal

CANARY = "canary-of-a-payload"


class Toy:
    """A seal for tests: a stream of SHA-256 and a MAC. Not to be used for anything else."""

    def __init__(self, key: bytes = b"key") -> None:
        self.key = key

    def _mixed(self, text: bytes, nonce: bytes) -> bytes:
        blocks = (
            sha256(self.key + nonce + n.to_bytes(4, "big")).digest()
            for n in range(len(text) // 32 + 1)
        )
        return bytes(a ^ b for a, b in zip(text, b"".join(blocks), strict=False))

    def close(self, text: bytes, about: bytes) -> bytes:
        nonce = os.urandom(16)
        mixed = self._mixed(text, nonce)
        return nonce + hmac.digest(self.key, about + b"|" + nonce + mixed, "sha256") + mixed

    def open(self, sealed: bytes, about: bytes) -> bytes:
        nonce, mac, mixed = sealed[:16], sealed[16:48], sealed[48:]
        good = hmac.digest(self.key, about + b"|" + nonce + mixed, "sha256")
        if not hmac.compare_digest(mac, good):
            raise ValueError("another key, or another job")
        return self._mixed(mixed, nonce)


def other() -> Toy:
    return Toy(b"another key")


def broken() -> Seal:
    class Broken(Toy):
        def close(self, text: bytes, about: bytes) -> bytes:
            raise RuntimeError("no key today")

    return Broken()


def no_seal() -> object:
    return object()


def failing() -> Seal:
    raise OSError("no key file")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with entry points, as pip would leave it."""
    about = tmp_path / "seals-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: seals\nVersion: 1.0\n")
    lines = [f"{name} = {__name__}:{name}" for name in ("Toy", "other", "broken", "no_seal")]
    lines += [f"failing = {__name__}:failing", "absent = no.such.module:x"]
    (about / "entry_points.txt").write_text("\n".join(["[timeball.seals]", *lines, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))
    sealing._made.cache_clear()
    monkeypatch.setenv(sealing.VARIABLE, "Toy")
    yield
    sealing._made.cache_clear()


@pytest.fixture
def world(store: PostgresStore) -> World:
    return World(store, lambda _step: None)


def kind(call: Callable[..., Any]) -> Kind:
    registry = Registry()
    registry.job(name="a", retry=tb.Retry(0))(call)
    return registry["a"]


def carried(world: World, call: Callable[..., Any]) -> Outcome:
    """Carry out the one turn that is there, as a worker does, and say what became of it."""
    what, worker = kind(call), world.worker()
    (turn,) = world.claim(worker)
    outcome = carry_out(what, turn, StopSign())
    world.settle(worker, decide(turn, outcome, Run(turn.granted_at, 0.0), what.retry, 0.5))
    return outcome


def echo(text: str) -> Any:
    """What a job gives that fails where its text says so."""
    if text.startswith("fail"):
        raise ValueError(text)
    return {"said": text}


def everything(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        tables = [
            connection.execute(f"SELECT t::text FROM timeball.{table} AS t").fetchall()
            for table in TABLES
        ]
    return str(tables)


def args(text: str = CANARY) -> str:
    return json.dumps({"text": text})


def test_nothing_of_a_payload_is_in_the_database_and_who_has_the_key_reads_it(
    world: World, direct: str
) -> None:
    good = world.submit(args=args())
    assert isinstance(carried(world, echo), Returned)
    bad = world.submit(args=args(f"fail {CANARY}"))
    assert isinstance(carried(world, echo), Raised)
    assert CANARY not in everything(direct)
    assert SEALED in everything(direct)
    job = world.job(good)
    assert (job.args, job.result) == ({"text": CANARY}, {"said": CANARY})
    assert world.job(bad).args == {"text": f"fail {CANARY}"}
    assert f"fail {CANARY}" in (world.job(bad).error or "")
    child = world.submit(kind="b", after=(Edge(good),))
    (parent,) = world.store.parents(world.job(child).id)
    assert json.loads(parent.result or "") == {"said": CANARY}
    assert isinstance(world.store, PostgresStore)
    (turn,) = Panorama(world.store.connections).turns(job.id)
    assert turn.result == {"said": CANARY}


def test_what_a_schedule_fires_is_sealed_too(world: World, direct: str) -> None:
    client = Client(world.store)
    client.schedule("s", "a", cron="0 * * * *", tz="UTC", args={"text": "of the schedule"})
    client.run_schedule("s")
    with psycopg.connect(direct) as connection:
        (stored,) = connection.execute("SELECT args FROM timeball.job").fetchone() or ()
    assert stored.keys() == {SEALED}
    (turn,) = world.claim(world.worker())
    assert json.loads(turn.args)["text"] == "of the schedule"


def test_what_is_sealed_is_another_text_each_time_and_is_bound_to_its_job(
    world: World, direct: str
) -> None:
    """Who copies it into a job of his own has no worker open it."""
    first, second = world.submit(args=args()), world.submit(args=args())
    with psycopg.connect(direct) as connection:
        rows = connection.execute("SELECT uuid, args FROM timeball.job").fetchall()
    stored = dict(rows)
    assert stored[first] != stored[second]
    for uuid in (first, second):
        assert world.store.cancel(uuid)
    forged = uuid4()
    copied = {"uuid": str(forged), "kind": "a", "args": stored[first]}
    with psycopg.connect(direct) as connection:
        connection.execute("SELECT timeball.submit(%s)", [json.dumps([copied])])
    found = carried(world, echo)
    assert isinstance(found, Raised)
    assert (found.error_type, found.again) == ("Sealed", True)
    assert CANARY not in found.error
    assert world.job(forged).args == stored[first]


@pytest.mark.parametrize("seal", ["", "other"])
def test_without_the_key_it_is_neither_shown_nor_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, seal: str
) -> None:
    uuid = world.submit(args=args())
    monkeypatch.setenv(sealing.VARIABLE, seal)
    assert CANARY not in str(world.job(uuid))
    turn = world.claim(world.worker())[0]
    assert SEALED in turn.args
    found = carry_out(kind(echo), turn, StopSign())
    assert isinstance(found, Raised)
    assert (found.error_type, found.again) == ("Sealed", True)  # another worker may have it
    assert sealing.VARIABLE in found.error
    monkeypatch.setenv(sealing.VARIABLE, "Toy")
    assert world.job(uuid).args == {"text": CANARY}


def test_what_was_stored_before_or_by_others_is_read_as_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(sealing.VARIABLE)
    plain = world.submit(args=args("plain"))
    assert isinstance(carried(world, echo), Returned)
    monkeypatch.setenv(sealing.VARIABLE, "Toy")
    assert world.job(plain).result == {"said": "plain"}
    looks_like_it = world.submit(args=json.dumps({SEALED: "Toy:bm8gc2VhbA=="}))
    assert world.job(looks_like_it).args == {SEALED: "Toy:bm8gc2VhbA=="}


def test_a_seal_that_fails_stores_nothing_and_blocks_nobody(
    world: World, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = world.submit(args=args())
    monkeypatch.setenv(sealing.VARIABLE, "broken")
    with pytest.raises(UsageError, match=r"the seal broken has failed.*no key today"):
        world.submit(args=args())
    worker = world.worker()
    (turn,) = world.claim(worker)
    end_ = end(turn, result=json.dumps({"said": CANARY}), error=None)
    assert world.settle(worker, end_) == [Verdict.ACCEPTED]
    assert CANARY not in everything(direct)
    assert world.job(uuid).result["unstorable"] == "result"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unheard", "no installed package"),
        ("absent", "has failed"),
        ("failing", "no key file"),
        ("no_seal", "returns no seal"),
    ],
)
def test_a_seal_that_cannot_be_had_stops_a_program_at_its_start(
    direct: str, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.setenv(sealing.VARIABLE, name)
    with pytest.raises(UsageError, match=f"TIMEBALL_SEAL={name}: .*{words}"):
        PostgresStore(direct)


def test_of_a_batch_the_schema_reads_the_arguments() -> None:
    spec = JobSpec(uuid=uuid4(), kind=BATCH, args='{"name":"x","open":true}')
    assert json.loads(encode_specs([spec]))[0]["args"] == {"name": "x", "open": True}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text().filter(lambda text: "\0" not in text))
def test_what_is_closed_opens_to_what_it_was(text: str) -> None:
    text = json.dumps({"x": text})
    about = "args:1"
    stored = json.dumps(json.loads(sealing.closed(text, about)))  # as jsonb writes it
    assert sealing.opened(stored, about) == text
    assert sealing.opened(stored, "args:2") == stored
