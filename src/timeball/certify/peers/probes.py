"""The probes: what is done to each product, and what is seen, without looking inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from timeball.certify.peers.adapter import Driver
from timeball.certify.peers.bench import NANO, Bench, Line

AGAIN_S: Final = 60.0
"""So long is waited for a job to run again, or to be picked up."""

_END_S: Final = 20.0
_WATCH_S: Final = 4.0
_JOBS: Final = 24
_CLAIMERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one probe saw of one product."""

    text: str
    """For people, in one line."""

    facts: Mapping[str, Any]
    """For programs; JSON values."""

    fine: bool
    """Whether it is what Timeball promises of itself; no verdict on others."""


class Probe(NamedTuple):
    """One probe."""

    name: str
    title: str
    """What is done, and what it can see."""

    run: Callable[[Bench], Seen]
    alone: bool = False
    """Whether it is about jobs of which no two may run at once."""


def _zombie(bench: Bench) -> Seen:
    """Freeze a worker past its time, have its jobs run elsewhere, and let it wake and fail."""
    refs = bench.submit("first-fails", *_TAGS)
    (first,) = bench.workers()
    if not bench.until(lambda: all(bench.noted("began", tag) for tag in _TAGS), AGAIN_S):
        return _nothing("the jobs did not begin")
    bench.workers()
    first.freeze()
    frozen_ns = time.monotonic_ns()
    again = bench.until(lambda: all(bench.noted("began", tag, 2) for tag in _TAGS), AGAIN_S)
    if not again:
        before, after = bench.states(refs)[0], _woken(bench, first, refs)[0]
        return Seen(
            text=f"not run elsewhere within {AGAIN_S:g} s: {before}; after it has failed {after}",
            facts={"again_s": None, "ended": [before, after]},
            fine=False,
        )
    again_s = _since(frozen_ns, bench.noted("began", "during", 2))
    bench.let_go("late", 2)
    before = bench.settled(refs[:1], _END_S)[0]
    after, meanwhile = _woken(bench, first, refs)
    bench.let_go("during", 2)
    final = bench.settled(refs[1:], _END_S)[0]
    fine = (before, after, meanwhile, final) == ("succeeded", "succeeded", "running", "succeeded")
    return Seen(
        text=(
            f"elsewhere after {again_s:.1f} s; the zombie's failure "
            f"{'changes nothing' if fine else 'is taken'}: of the job that had ended, {before} "
            f"then {after}; of the one that still ran, {meanwhile} then {final}"
        ),
        facts={"again_s": again_s, "ended": [before, after], "ran": [meanwhile, final]},
        fine=fine,
    )


def _woken(bench: Bench, zombie: Driver, refs: Sequence[str]) -> list[str]:
    """Let a frozen worker go on and fail in both jobs; return their states after that."""
    for tag in _TAGS:
        bench.let_go(tag, 1)
    zombie.thaw()
    bench.until(lambda: all(bench.noted("left", tag) for tag in _TAGS), _END_S)
    bench.until(lambda: False, _WATCH_S)  # for what the zombie has to say to arrive
    return bench.states(refs)


def _nul(bench: Bench) -> Seen:
    """Return and raise a NUL byte, and submit another job after each."""
    worker = bench.service()
    ends = {}
    for what in ("result", "exception"):
        ends[what] = bench.settled(bench.submit(f"{_NULS[what]}-nul", what), _END_S)[0]
        tag = f"after the {what}"
        ends[tag] = bench.settled(bench.submit("note", tag.replace(" ", "-")), _END_S)[0]
    good = ends["result"] in {"succeeded", "failed"} and ends["exception"] == "failed"
    return Seen(
        text=(
            f"result: {ends['result']}, the next job {ends['after the result']}; exception: "
            f"{ends['exception']}, the next job {ends['after the exception']}{_ended(worker.codes)}"
        ),
        facts=ends,
        fine=good and ends["after the result"] == ends["after the exception"] == _GOOD,
    )


def _listener(bench: Bench) -> Seen:
    """End the session that listens, and see when the next jobs are picked up."""
    bench.submit("note", "first")
    own = set(bench.ask("client_sessions"))
    worker = bench.service()
    bench.until(lambda: bench.noted("began", "first"), AGAIN_S)
    before_s = _pick_up(bench, "before")
    found = bench.ask("listeners")
    which = "its LISTEN session" if found else "all its sessions (none shows LISTEN last)"
    for (pid,) in found or sorted(set(bench.ask("client_sessions")) - own):
        bench.ask("end_session", pid=pid)
    after_s = _pick_up(bench, "after")
    then_s = _pick_up(bench, "then")
    return Seen(
        text=(
            f"{_seconds(before_s)} before; after the end of {which} {_seconds(after_s)}, "
            f"the job after that {_seconds(then_s)}{_ended(worker.codes)}"
        ),
        facts={"before_s": before_s, "after_s": after_s, "then_s": then_s, "ended": which},
        fine=None not in (before_s, after_s, then_s),
    )


class _Jump(NamedTuple):
    what: str
    zone: str
    cron: str
    day: str
    fine: str


_YORK, _HOWE = "America/New_York", "Australia/Lord_Howe"
_JUMPS: Final = (
    _Jump("New York, gap, 02:30", _YORK, "30 2 * * *", "2027-03-14", "03:00-04:00"),
    _Jump("fold, 01:30", _YORK, "30 1 * * *", "2027-11-07", "01:30-04:00"),
    _Jump("Lord Howe, gap, 02:15", _HOWE, "15 2 * * *", "2027-10-03", "02:30+11:00"),
    _Jump("fold, 01:45", _HOWE, "45 1 * * *", "2027-04-04", "01:45+11:00"),
)


def _dst(bench: Bench) -> Seen:
    """Ask when schedules fire on days on which the wall clock jumps."""
    cases = []
    for jump in _JUMPS:
        begin = datetime.fromisoformat(f"{jump.day}T00:00").replace(tzinfo=ZoneInfo(jump.zone))
        end = begin.replace(hour=23, minute=59)
        window = {"after": begin.isoformat(), "until": end.isoformat()}
        cases.append({"cron": jump.cron, "zone": jump.zone, **window})
    found = {
        jump.what: [_local(instant, jump.zone) for instant in instants]
        for jump, instants in zip(_JUMPS, bench.fires(cases), strict=True)
    }
    told = (f"{what}: {' and '.join(times) or 'not that day'}" for what, times in found.items())
    fine = all(found[jump.what] == [jump.fine] for jump in _JUMPS)
    return Seen(text="; ".join(told), facts=found, fine=fine)


def _local(instant: str, zone: str) -> str:
    text = datetime.fromisoformat(instant).astimezone(ZoneInfo(zone)).isoformat()
    return text[11:16] + text[-6:]


def _kill(bench: Bench) -> Seen:
    """Kill a worker (SIGKILL) in the middle of a job, while another one stands by."""
    refs = bench.submit("hold", "held")
    (first,) = bench.workers()
    if not bench.until(lambda: bench.noted("began", "held"), AGAIN_S):
        return _nothing("the job did not begin")
    bench.workers()
    first.kill()
    killed_ns = time.monotonic_ns()
    again = bench.until(lambda: bench.noted("began", "held", 2), AGAIN_S)
    if not again:
        state = bench.states(refs)[0]
        return Seen(
            text=f"not run again within {AGAIN_S:g} s; its record says {state}",
            facts={"again_s": None, "state": state},
            fine=False,
        )
    again_s = _since(killed_ns, bench.noted("began", "held", 2))
    bench.let_go("held", 2)
    state = bench.settled(refs, _END_S)[0]
    return Seen(
        text=f"run again after {again_s:.1f} s, {state}",
        facts={"again_s": again_s, "state": state},
        fine=state == _GOOD,
    )


def _limit(bench: Bench) -> Seen:
    """Have eight workers at once look for jobs of which one at a time may run."""
    tags = [f"job{number}" for number in range(_JOBS)]
    bench.submit("note", "first")  # so that what offers no limit says so at once
    bench.workers(_CLAIMERS)
    bench.submit("brief", *tags)
    began_ns = time.monotonic_ns()
    bench.until(lambda: len(_of(bench, "left")) == _JOBS, AGAIN_S)
    most, ends, pids = 0, _of(bench, "left"), {line.pid for line in _of(bench, "began")}
    under_way = 0
    for line in bench.ledger():
        under_way += 1 if line.what == "began" else -1
        most = max(most, under_way)
    spent_s = (ends[-1].at_ns - began_ns) / NANO if ends else None
    return Seen(
        text=f"{most} at once at most; {len(ends)} of {_JOBS} in {_seconds(spent_s)}, "
        f"by {len(pids)} of {_CLAIMERS} workers",
        facts={"most": most, "ended": len(ends), "spent_s": spent_s, "workers": len(pids)},
        fine=most == 1 and len(ends) == _JOBS,
    )


_GOOD: Final = "succeeded"
_TAGS: Final = ("late", "during")
_NULS: Final = {"result": "return", "exception": "raise"}
PROBES: Final = (
    Probe(
        "zombie",
        "A worker stands still (SIGSTOP) in the middle of two jobs for longer than its time, "
        "another one runs them, then the first goes on and fails in both: once one has ended, "
        "while the other still runs. Seen: the states that the product tells.",
        _zombie,
    ),
    Probe(
        "nul",
        "A job returns a text with a NUL byte, another one raises an exception with one. "
        f"Seen: the states, {_END_S:g} s later at most, and whether the next job runs. A worker "
        "that ends is started again.",
        _nul,
    ),
    Probe(
        "listener",
        "The session that listens is ended by the server. Seen: how long until a job begins. "
        "A worker that ends is started again.",
        _listener,
    ),
    Probe(
        "dst",
        "Daily schedules on days on which the wall clock jumps. Seen: the local times, with "
        "their offset, at which the product reckons that it fires.",
        _dst,
    ),
    Probe(
        "kill",
        "A worker is killed (SIGKILL) in the middle of a job; another one stands by. "
        "Seen: whether and when the job runs again.",
        _kill,
    ),
    Probe(
        "limit",
        f"{_JOBS} jobs of 0.1 s, of which one at a time may run, and {_CLAIMERS} workers. "
        "Seen: how many ran at once.",
        _limit,
        alone=True,
    ),
)


def _of(bench: Bench, what: str) -> list[Line]:
    return [line for line in bench.ledger() if line.what == what and line.tag != "first"]


def _pick_up(bench: Bench, tag: str) -> float | None:
    """Return how long a job waits for its beginning, from before it is submitted."""
    submitted_ns = time.monotonic_ns()
    bench.submit("note", tag)
    bench.until(lambda: bench.noted("began", tag), AGAIN_S)
    line = bench.noted("began", tag)
    return _since(submitted_ns, line) if line else None


def _since(from_ns: int, line: Line | None) -> float:
    assert line is not None
    return round((line.at_ns - from_ns) / NANO, 3)


def _seconds(value: float | None) -> str:
    return f"not within {AGAIN_S:g} s" if value is None else f"{value:.2f} s"


def _ended(codes: Sequence[int]) -> str:
    if not codes:
        return ""
    return f"; the worker ended by itself (exit code {codes[0]}) and was started again"


def _nothing(text: str) -> Seen:
    return Seen(text=text, facts={}, fine=False)
