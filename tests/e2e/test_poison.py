"""Jobs that are as bad as can be: each ends alone, with a reason; its neighbours succeed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.e2e.programs import Place, Program, until
from tests.e2e.soundness import assert_sound

from timeball.client import Client
from timeball.core.records import Job
from timeball.core.states import State
from timeball.errors import InvalidPayload
from timeball.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

APP = r"""
import math, os, sys, time
from pathlib import Path
import timeball as tb

HERE = Path(__file__).parent

@tb.job(name="good")
def good(number: int) -> int:
    return number

@tb.job(name="good-async")
async def good_async(number: int) -> int:
    return number

@tb.job(name="changed")
def changed(renamed: int) -> int:
    return renamed

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text from me")

def raises(error):
    raise error

RESULTS = {
    "nul": lambda: "a\x00b",
    "surrogate": lambda: "\ud800",
    "nan": lambda: {"ratio": math.nan},
    "bytes": lambda: b"\xff",
    "huge": lambda: "x" * 10_000_000,
    "deep": lambda: __import__("functools").reduce(lambda inner, _: [inner], range(5_000), []),
}
ERRORS = {
    "raises-nul": lambda: raises(tb.PermanentError("a\x00b")),
    "raises-surrogate": lambda: raises(tb.PermanentError("\ud800")),
    "raises-mute": lambda: raises(Mute()),
    "raises-huge": lambda: raises(tb.PermanentError("x" * 10_000_000)),
    "exits": lambda: sys.exit(3),
    "interrupts": lambda: raises(KeyboardInterrupt()),
}

def as_jobs(name, call):
    @tb.job(name=name, retry=tb.Retry(0))
    def job():
        return call()
    @tb.job(name=f"{name}-async", retry=tb.Retry(0))
    async def job_async():
        return call()

for name, call in (RESULTS | ERRORS).items():
    as_jobs(name, call)

@tb.job(name="kills")
def kills() -> None:
    os._exit(9)
"""
NEW_APP = """
import timeball as tb

@tb.job(name="brand-new")
def brand_new() -> str:
    return "known now"
"""

REASONS = {
    **dict.fromkeys(("nul", "surrogate", "nan", "bytes", "huge", "deep"), "result"),
    **dict.fromkeys(("raises-nul", "raises-surrogate", "raises-huge"), "permanent"),
    **dict.fromkeys(("exits", "interrupts"), "permanent"),
    "raises-mute": "exhausted",
}
TEXTS = {
    "nul": "U+0000",
    "surrogate": "surrogate",
    "nan": "nan",
    "bytes": "binary",
    "huge": "10,000,002 bytes",
    "raises-nul": r"a\x00b",
    "raises-surrogate": r"\ud800",
    "raises-mute": "Mute",
    "exits": "3",
}
UNDECODABLE = {
    "a list": "'[1, 2]'",
    "a text": "'\"text\"'",
    "nothing": "'null'",
    "a number": "'7'",
    "an endless number": "'{\"number\": 1e100000}'",
    "a deep hole": """('{"number": ' || repeat('[', 3000) || repeat(']', 3000) || '}')::jsonb""",
    "a false occurrence": """'{"__occurrence__": 7}'""",
}


class Ward:
    """One database with one worker, and neighbours around every patient."""

    def __init__(self, place: Place, store: PostgresStore, dsn: str) -> None:
        self.place, self.store, self.client, self.dsn = place, store, Client(store), dsn
        place.write("app.py", APP)
        place.write("new_app.py", NEW_APP)
        self._neighbours: list[tuple[UUID, int]] = []

    def worker(self, *apps: str) -> Program:
        words = [word for app in apps for word in ("-a", app)]
        return self.place.start("worker", *words, "--threads", "4", "--poll", "0.1s")

    def submit(self, kind: str, **options: Any) -> UUID:
        """Submit one, with a good one before it and one after it."""
        self._submit_good("good")
        uuid = self.client.submit(kind, **options).uuid
        self._submit_good("good-async")
        return uuid

    def _submit_good(self, kind: str) -> None:
        number = len(self._neighbours)
        self._neighbours.append((self.client.submit(kind, number=number).uuid, number))

    def spoil(self, uuid: UUID, args: str) -> None:
        """Write arguments that no client would."""
        with psycopg.connect(self.dsn) as connection:
            query = f"UPDATE timeball.job SET args = {args} WHERE uuid = %s"
            connection.execute(query.encode(), [uuid])

    def ended(self, *uuids: UUID) -> list[Job]:
        return self.client.wait(uuids, 60)

    def assert_unharmed(self) -> None:
        jobs = self.ended(*(uuid for uuid, _ in self._neighbours))
        assert [job.result for job in jobs] == [number for _, number in self._neighbours]
        assert {(job.attempts, job.crashes) for job in jobs} == {(1, 0)}


@pytest.fixture
def ward(
    dsn: str, make_place: Callable[[str], Place], open_store: Callable[[str], PostgresStore]
) -> Ward:
    return Ward(make_place(dsn), open_store(dsn), dsn)


def test_bad_results_and_errors_fail_alone_and_say_why(ward: Ward) -> None:
    kinds = [f"{kind}{form}" for kind in REASONS for form in ("", "-async")]
    uuids = [ward.submit(kind, max_retries=0) for kind in kinds]
    worker = ward.worker("app.py")
    jobs = dict(zip(kinds, ward.ended(*uuids), strict=True))
    ward.assert_unharmed()
    assert worker.stop() == 0
    assert "WARNING child" not in worker.written
    for kind, job in jobs.items():
        plain = kind.removesuffix("-async")
        assert (kind, job.state, job.reason) == (kind, State.FAILED, REASONS[plain])
        assert TEXTS.get(plain, "") in f"{job.error_type} {job.error}", kind
        assert len(job.error or "") < 20_000
        assert (job.attempts, job.crashes) == (1, 0)
    assert_sound(ward.store)


def test_arguments_that_cannot_be_stored_are_refused_at_submit(ward: Ward) -> None:
    bad = {
        "NUL": ("a\x00b", "U+0000"),
        "surrogate": ("\ud800", "surrogate"),
        "NaN": (float("nan"), "nan"),
        "bytes": (b"\xff", "binary"),
        "huge": ("x" * 10_000_000, "at most 262,144 fit"),
    }
    for value, text in bad.values():
        with pytest.raises(InvalidPayload, match=text.replace("+", r"\+")):
            ward.client.submit("good", number=value)
    refused = ward.place.run("submit", "good", "--json", '{"number": "a\\u0000b"}')
    assert refused.returncode == 2
    assert "U+0000" in refused.stderr
    huge = ward.place.run("submit", "good", "--json", "-", given=json.dumps({"n": "x" * 10**7}))
    assert huge.returncode == 2
    assert "at most 262,144 fit" in huge.stderr
    assert ward.client.jobs() == []


def test_arguments_that_were_spoilt_or_do_not_fit_any_more_fail_alone(ward: Ward) -> None:
    spoilt = {what: ward.submit("good", number=1) for what in UNDECODABLE}
    for what, uuid in spoilt.items():
        ward.spoil(uuid, UNDECODABLE[what])
    outdated = ward.submit("changed", number=7)
    worker = ward.worker("app.py")
    ward.ended(*spoilt.values(), outdated)
    ward.assert_unharmed()
    assert worker.stop() == 0
    for what, uuid in spoilt.items():
        job = ward.client.get(uuid)
        assert (what, job.state, job.reason) == (what, State.FAILED, "undecodable")
        assert "reason    undecodable\n" in ward.place.said("jobs", "show", str(uuid))
    job = ward.client.get(outdated)
    assert (job.state, job.reason) == (State.FAILED, "arguments")
    assert "takes other arguments now" in (job.error or "")
    assert ward.place.said("jobs", "list", "--state", "failed").count("\n") == len(spoilt) + 2
    assert_sound(ward.store)


def test_a_job_that_kills_its_worker_is_quarantined_and_its_neighbours_run(ward: Ward) -> None:
    killer = ward.submit("kills")
    worker = ward.worker("app.py")
    (job,) = ward.ended(killer)
    assert (job.state, job.reason) == (State.FAILED, "quarantined")
    assert (job.crashes, job.failures) == (3, 0)
    after = ward.submit("good", number=5)
    assert ward.ended(after)[0].state is State.SUCCEEDED
    jobs = ward.client.jobs(state=State.SUCCEEDED)
    assert len(jobs) == 5
    assert worker.stop() == 0
    assert_sound(ward.store)


def test_a_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(ward: Ward) -> None:
    unknown = ward.submit("brand-new")
    worker = ward.worker("app.py")
    ward.assert_unharmed()
    until(lambda: ward.client.get(unknown).reason == "no_worker", "it is known to wait")
    assert ward.client.get(unknown).state is State.PENDING
    capable = ward.worker("app.py", "new_app.py")
    (job,) = ward.ended(unknown)
    assert (job.state, job.result, job.attempts) == (State.SUCCEEDED, "known now", 1)
    assert worker.stop() == capable.stop() == 0
    assert_sound(ward.store)
