"""However a program ends, nothing of it is left: no process, no socket, no file elsewhere."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.e2e.conftest import Demo
from tests.e2e.programs import PATIENCE_S, Place, Program, alive, until

pytestmark = pytest.mark.slow

# A job that goes on until it is killed, a command whose grandchild would outlive it, a tick.
APP = """
import os, time
from pathlib import Path
import timeball as tb

HERE = Path(__file__).parent

@tb.cron("* * * * * *", "UTC")
@tb.job(name="tick")
def tick() -> None: ...

@tb.job(name="stubborn")
def stubborn() -> None:
    (HERE / "began").touch()
    while True:
        time.sleep(0.05)
"""
CRONTAB = "HOME=/\n0 3 1 1 * sleep 987654 & echo $! > {work}/grandchild; wait\n"
DEATHS = {
    "one SIGTERM": (0, [signal.SIGTERM]),
    # Two of the same that come at once count as one.
    "SIGTERM, then Ctrl-C": (0, [signal.SIGTERM, signal.SIGINT]),
    "Ctrl-C thrice": (0, [signal.SIGINT, signal.SIGINT, signal.SIGINT]),
    "SIGKILL": (-9, [signal.SIGKILL]),
}


def outside(place: Place) -> list[Path]:
    """What lies where nothing of ours belongs."""
    found = [*place.home.iterdir(), *place.tmp.iterdir()]
    given = {"app.py", "up.cron", "began", "grandchild", "__pycache__"}
    return found + [path for path in place.work.iterdir() if path.name not in given]


def assert_nothing_is_left(place: Place) -> None:
    until(lambda: not place.processes(), "its processes have ended")
    until(lambda: not outside(place), f"nothing lies outside: {outside(place)}")
    assert {path.parent for path in place.data.glob("*")} <= {place.data}
    assert [path.name for path in place.data.glob("*/minder.json")] == []


def started(place: Place) -> Program:
    """`timeball up`, with a tick that has run."""
    place.write("app.py", APP)
    place.write("up.cron", CRONTAB.format(work=place.work))
    up = place.start("up", "app.py", "up.cron")
    up.wait_for("  tick  succeeded")
    return up


def grandchild_of(place: Place) -> int:
    """The process that a command has left in the background, once it is there."""
    path = place.work / "grandchild"
    until(lambda: path.exists() and path.read_text().strip(), "the command runs")
    return int(path.read_text())


def submit_line(place: Place) -> None:
    schedules = json.loads(place.said("cron", "list", "--json"))["schedules"]
    (kind,) = [each["kind"] for each in schedules if each["kind"].startswith("up:")]
    place.said("submit", kind)


@pytest.mark.parametrize("how", ["one SIGTERM", "Ctrl-C thrice"])
def test_an_up_with_nothing_to_wait_for_leaves_nothing(place: Place, how: str) -> None:
    code, signals = DEATHS[how]
    up = started(place)
    for number in signals:
        up.send(number)
    assert up.wait() == code
    assert_nothing_is_left(place)


@pytest.mark.parametrize("how", ["SIGTERM, then Ctrl-C", "SIGKILL"])
def test_an_up_in_the_middle_of_its_work_leaves_nothing(place: Place, how: str) -> None:
    code, signals = DEATHS[how]
    up = started(place)
    place.said("submit", "stubborn")
    submit_line(place)
    grandchild = grandchild_of(place)
    until((place.work / "began").exists, "the stubborn one has begun")
    for number in signals:
        up.send(number)
    assert up.wait() == code
    until(lambda: not alive(grandchild), "the command's own child has died with it")
    assert_nothing_is_left(place)

    report = json.loads(place.said("audit", "--json"))  # what is left is a database that starts
    assert report["clean"]
    assert report["states"]["succeeded"] >= 1
    assert_nothing_is_left(place)


def test_a_demo_leaves_nothing_not_even_its_database(demo: Demo) -> None:
    assert_nothing_is_left(demo.place)
    assert not demo.place.data.exists()


@pytest.mark.parametrize("how", ["SIGTERM, then Ctrl-C", "SIGKILL"])
def test_a_demo_that_is_ended_leaves_no_process(place: Place, how: str) -> None:
    demo = place.start("demo")
    demo.wait_for("have ended")
    for number in DEATHS[how][1]:
        demo.send(number)
    demo.wait()
    until(lambda: not place.processes(), "its processes have ended", PATIENCE_S)
    left = [path.name for path in place.tmp.iterdir()]
    if how == "SIGKILL":  # nobody was there to remove the data; the sockets are gone
        assert [name for name in left if not name.startswith("timeball-demo-")] == []
    else:
        assert left == []
