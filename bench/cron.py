"""How many next occurrences a second, and how that compares to croniter and cronsim.

    .venv/bin/python bench/cron.py [--rounds 5] [--strict]

Each asks for the next occurrence after the last, as a scheduler does. Seconds are those of this
process on the processor. Ratios are medians over rounds in which all three take turns, so that a
busy machine slows all of them down.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

import croniter
import cronsim

import timeball
from timeball.core.cron import Terms, Timetable, agenda, load_zone, parse, resolve

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ORDINARY = [
    ("*/5 * * * *", "UTC"),
    ("30 2 * * *", "America/New_York"),
    ("0 9 * * 1-5", "Europe/Berlin"),
    ("0 12 L * *", "Australia/Sydney"),
]
RARE = ("0 0 29 2 *", "UTC")
CALLS, PEER_CALLS, LINES = 20_000, 1_000, 20_000


class Figure(NamedTuple):
    what: str
    value: float
    target: float
    at_most: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args()
    peers = ", ".join(f"{name} {version(name)}" for name in ("croniter", "cronsim"))
    print(f"timeball {timeball.__version__}, CPython {platform.python_version()}, {peers}")
    print(f"{'figure':52} {'measured':>12} {'target':>10}  verdict")
    missed = 0
    for figure in figures(options.rounds):
        sign, verdict = "<=" if figure.at_most else ">=", "ok" if figure.met else "MISSED"
        missed += not figure.met
        print(f"{figure.what:52} {figure.value:12,.1f} {sign} {figure.target:7,g}  {verdict:7}"
              f"{figure.note}", flush=True)  # fmt: skip
    return 1 if missed and options.strict else 0


def figures(rounds: int) -> Iterator[Figure]:
    for text, zone in [*ORDINARY, RARE]:
        rare = (text, zone) == RARE
        speeds = compared(text, zone, rounds)
        ours, *theirs = (statistics.median(side) for side in zip(*speeds, strict=True))
        yield Figure(f"next/s, {text} in {zone}", ours, 10_000 if rare else 100_000)
        if rare:
            continue
        ratio = statistics.median(mine / max(peers) for mine, *peers in speeds)
        note = " croniter {:,.0f}, cronsim {:,.0f}".format(*theirs)
        yield Figure("  : the faster of croniter and cronsim", ratio, 8, note=note)
    yield Figure("occurrences/s of an agenda with two exclusions", whole(rounds), 20_000)
    yield Figure(f"s to read {LINES:,} distinct lines", reading(), 3, at_most=True)
    yield Figure("ms to refuse 0 0 30 2 *", refusing(), 10, at_most=True)


def compared(text: str, zone: str, rounds: int) -> list[tuple[float, float, float]]:
    peers = zip((ours, by_croniter, by_cronsim), (CALLS, PEER_CALLS, PEER_CALLS), strict=True)
    makers = list(peers)
    if (text, zone) == RARE:
        makers = [(make, calls // 100) for make, calls in makers]
    found = []
    for _ in range(rounds):
        mine, *others = (per_s(make(text, zone), calls) for make, calls in makers)
        found.append((mine, *others))
    return found


def per_s(step: Callable[[], object], calls: int) -> float:
    step()
    began_s = time.process_time()
    for _ in range(calls):
        step()
    return calls / (time.process_time() - began_s)


def ours(text: str, zone: str) -> Callable[[], object]:
    cron = parse(text)
    policy = resolve(cron)
    table = Timetable(cron, load_zone(zone), policy.gap, policy.overlap)
    at = BEGIN

    def step() -> None:
        nonlocal at
        found = table.next(at)
        at = found if found is not None and found.year < 2900 else BEGIN

    return step


def by_croniter(text: str, zone: str) -> Callable[[], object]:
    return croniter.croniter(text, BEGIN.astimezone(ZoneInfo(zone)), ret_type=datetime).get_next


def by_cronsim(text: str, zone: str) -> Callable[[], object]:
    return cronsim.CronSim(text, BEGIN.astimezone(ZoneInfo(zone))).__next__


def whole(rounds: int) -> float:
    terms = Terms(expression="0 9,17 * * *", exclude=("* * * * 0,6", "2026-12-24/2027-01-01"))
    table = agenda(terms, load_zone("Europe/Berlin"), name="bench")
    speeds = []
    for _ in range(rounds):
        began_s = time.process_time()
        count = sum(1 for _ in islice(table.occurrences(BEGIN), CALLS))
        speeds.append(count / (time.process_time() - began_s))
    return statistics.median(speeds)


def reading() -> float:
    texts = [f"{n % 60} {n // 60 % 24} {n // 1440 % 28 + 1} * {n % 7}" for n in range(LINES)]
    began_s = time.process_time()
    for text in texts:
        parse(text)
    return time.process_time() - began_s


def refusing() -> float:
    spent = []
    for _ in range(20):
        began_s = time.process_time()
        try:
            parse("0 0 30 2 *")
        except ValueError:
            spent.append(1e3 * (time.process_time() - began_s))
    return statistics.median(spent)


if __name__ == "__main__":
    sys.exit(main())
