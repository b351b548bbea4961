"""`timeball batch`: a file's batch is run, judged by its exit code, kept and drawn."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.invoking import document, invoke, said
from tests.cli.processes import Home

from timeball.cli.batch_run import Bar, Run
from timeball.cli.gantt import BARS_MAX, ROWS_MAX, gantt
from timeball.core.makespan import AttemptRecord, span_of
from timeball.core.rate import Rate
from timeball.core.report import BatchRecord, BatchReport
from timeball.core.states import Ending, State
from timeball.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = "def batch(s):\n    for n in range(5):\n        s.submit(pow, 2, n)\n"
ASYNC = (
    "async def one(n):\n    return n\n"
    "async def batch(s):\n    for n in range(5):\n        await s.submit(one, n)\n"
)
ONE_FAILS = PLAIN + "    s.submit(int, 'x')\n"
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a file with a batch; the module that it becomes is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = []

    def put(text: str) -> str:
        names.append(f"batch_{tmp_path.name}_{len(names)}")
        path = tmp_path / f"{names[-1]}.py"
        path.write_text(text)
        return str(path)

    yield put
    for name in names:
        sys.modules.pop(name, None)


# Running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [PLAIN, ASYNC], ids=["threads", "async"])
def test_a_batch_runs_as_its_function_asks_and_prints_the_report(write: Write, text: str) -> None:
    assert "5 jobs: 5 succeeded" in said("batch", "run", write(text), "--workers", "2")


@pytest.mark.slow
def test_a_batch_runs_in_processes(write: Write) -> None:
    words = ("--workers", "1", "--runner", "processes")
    assert "5 jobs: 5 succeeded" in said("batch", "run", write(PLAIN), *words)


def test_the_report_as_json_is_that_of_the_scheduler(write: Write) -> None:
    found = document("batch", "run", write(PLAIN), "--workers", "3", "--rate", "2/10ms", "--json")
    assert (found["jobs"], found["workers"], found["violations"]) == (5, 3, [])
    assert found["makespan_ns"] >= found["bound_ns"] >= 20_000_000


def test_the_exit_code_says_whether_every_job_succeeded(write: Write) -> None:
    result = invoke("batch", "run", write(ONE_FAILS))
    assert result.exit_code == 1
    assert "5 succeeded, 1 failed" in result.stdout


def test_a_record_that_breaks_the_contract_is_told(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from timeball.core.audit import Violation

    found = Violation("I4", 7, "it ran twice")
    monkeypatch.setattr("timeball.Scheduler.violations", lambda _: [found])
    result = invoke("batch", "run", write(PLAIN))
    assert result.exit_code == 7
    assert "it ran twice" in result.stderr


@pytest.mark.parametrize(
    ("text", "words", "advice"),
    [
        ("x = 1\n", (), "def batch(scheduler)"),
        ("1 / 0\n", (), "ZeroDivisionError"),
        (PLAIN, ("--runner", "async"), "`async def batch`"),
        (ASYNC, ("--runner", "threads"), "`def batch`"),
        (PLAIN, ("--rate", "0/s"), "above 0"),
    ],
)
def test_a_file_that_cannot_be_run_says_what_to_write(
    write: Write, text: str, words: tuple[str, ...], advice: str
) -> None:
    result = invoke("batch", "run", write(text), *words)
    assert result.exit_code == 2
    assert advice in result.stderr


def test_what_is_no_python_file_is_refused() -> None:
    result = invoke("batch", "run", "crontab")
    assert result.exit_code == 2
    assert ".py" in result.stderr


# Keeping and drawing --------------------------------------------------------------------------


def test_a_run_is_kept_and_drawn(write: Write, tmp_path: Path) -> None:
    file, saved, svg = write(ONE_FAILS), tmp_path / "run.json", tmp_path / "run.svg"
    invoke("batch", "run", file, "--workers", "2", "--rate", "3/10ms", "--save", str(saved))
    said("batch", "gantt", str(saved), "--svg", str(svg))
    words = texts(svg.read_text())
    assert Path(file).name in words
    assert "6 jobs, 6 starts, 2 slots, at most 3 per 0.01s" in words
    assert {"slot 0", "slot 1", "succeeded 5", "failed 1"} <= set(words)


@pytest.mark.slow
def test_a_picture_is_utf8_wherever_it_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "été.py").write_text(PLAIN, "utf-8")
    kept = tmp_path / "kept.json"
    invoke("batch", "run", str(tmp_path / "été.py"), "--save", str(kept))
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = Home(tmp_path / "home").run(
        "batch", "gantt", str(kept), "--svg", str(tmp_path / "a.svg"), **plain
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "été.py" in texts((tmp_path / "a.svg").read_text("utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "{}", "[" * 100_000, '{"format": "timeball batch"}',
        '{"format": "timeball batch", "schema_version": 2}',
    ],
)  # fmt: skip
def test_what_is_no_saved_batch_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    result = invoke("batch", "gantt", str(path), "--svg", str(tmp_path / "out.svg"))
    assert result.exit_code == 2
    assert "--save" in result.stderr
    assert not (tmp_path / "out.svg").exists()


@pytest.mark.parametrize(
    "spoil",
    [{"slot": 9}, {"outcome": '"><x'}, {"started_ns": -1}, {"finished_ns": 0.5}, {"job": [1]}],
)
def test_an_attempt_that_cannot_be_is_refused(tmp_path: Path, spoil: dict[str, Any]) -> None:
    kept = json.loads(run([record(1, 0, 0, 5)]).text())
    row = Bar(*kept["attempts"][0])._replace(**spoil)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(kept | {"attempts": [row]}))
    with pytest.raises(UsageError, match="no saved batch"):
        Run.read(path)


def record(job: int | str, slot: int, from_ns: int, to_ns: int, **more: Any) -> AttemptRecord[Any]:
    more.setdefault("ending", Ending.SUCCEEDED)
    return AttemptRecord(job, more.pop("attempt", 1), slot, from_ns, from_ns, to_ns, **more)


def run(records: list[AttemptRecord[Any]], *, workers: int = 4, name: str = "calls.py") -> Run:
    states = {each.job: State.SUCCEEDED for each in records}
    batch = BatchRecord(states=states, attempts=records, workers=workers, limit=None)
    return Run.of(BatchReport.of(batch), records, name=name, rate=str(Rate(50)))


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_what_is_kept_is_what_is_read(tmp_path: Path) -> None:
    one = run([record("a", 0, 5, 9, limiter_ns=3), record(2, 3, 6, 7, ending=None)])
    path = tmp_path / "run.json"
    path.write_text(one.text())
    again = Run.read(path)
    assert (again.name, again.rate, list(again.bars)) == (one.name, one.rate, one.bars)
    assert again.bars[0] == Bar("a", 1, 0, 0, 4, 3, "succeeded")
    assert again.bars[1].outcome == "running"
    assert gantt(again) == gantt(one)


def test_each_attempt_is_a_bar_at_its_place_with_its_word() -> None:
    s = 10**9
    records = [record(1, 0, 0, 2 * s), record(2, 1, s, 4 * s, ending=Ending.FAILED)]
    root = ET.fromstring(gantt(run(records, workers=2)))
    plot = 1_104
    groups = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    assert [each is not None and each.get("class") for each in groups] == ["succeeded", "failed"]
    failed = groups[1]
    assert failed is not None
    assert float(failed.get("x") or 0) == pytest.approx(64 + plot / 4, abs=0.1)
    assert float(failed.get("width") or 0) == pytest.approx(plot * 3 / 4, abs=0.1)
    assert "job 2, attempt 1: failed" in texts(gantt(run(records, workers=2)))


def test_makespan_bound_and_floors_are_named() -> None:
    s = 10**9
    words = texts(gantt(run([record(1, 0, 0, 2 * s), record(2, 0, 2 * s, 4 * s)], workers=2)))
    assert "makespan 4 s" in words
    assert "no schedule takes less than 2 s: longest" in words
    assert "longest: 2 s, binds" in words
    assert "work: 2 s" in words


def test_a_limiters_wait_is_a_whisker_as_far_as_the_slot_was_free() -> None:
    records = [record(1, 0, 0, 100), record(2, 0, 400, 500, limiter_ns=400)]
    path = next(ET.fromstring(gantt(run(records))).iter(f"{SVG}path"))
    assert path.get("class") == "wait"
    numbers = re.findall(r"M([\d.]+) .*H([\d.]+)", path.get("d") or "")
    begin, end = (float(x) - 64 for x in numbers[0])
    assert (begin / 1104, end / 1104) == (
        pytest.approx(0.2, abs=0.01),
        pytest.approx(0.8, abs=0.01),
    )


@pytest.mark.parametrize(
    "name",
    [
        "</title><script>alert(1)</script>", '" onload="alert(1)', "]]>", "&amp;&lt;",
        "\x00\x1b[31m\x07", "\ud800", "\ufffe", "\u202egnp.exe", "x" * 100_000,
    ],
)  # fmt: skip
def test_hostile_names_are_inert(name: str) -> None:
    svg = gantt(run([record(name, 0, 0, 5)], name=name))
    root = ET.fromstring(svg)
    kinds = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert kinds <= {"svg", "title", "style", "text", "rect", "line", "path", "g"}
    names = {attribute for each in root.iter() for attribute in each.attrib}
    assert not {each for each in names if each.startswith("on") or "href" in each}
    assert len(svg) < 20_000
    svg.encode()


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 50),
            st.integers(0, 50),
            st.integers(0, 100),
            st.sampled_from([*Ending, None]),
        ),
        max_size=40,
    )
)
def test_any_batch_is_drawn_within_the_picture(rows: list[Any]) -> None:
    free, records = [0, 0, 0], []
    for job, (slot, gap, ran, limiter_ns, ending) in enumerate(rows):
        from_ns, to_ns = free[slot] + gap, free[slot] + gap + ran
        free[slot] = to_ns
        records.append(record(job, slot, from_ns, to_ns, limiter_ns=limiter_ns, ending=ending))
    for rect in ET.fromstring(gantt(run(records, workers=3))).iter(f"{SVG}rect"):
        x, width = float(rect.get("x") or 0), float(rect.get("width") or 0)
        assert x >= 64
        assert width > 0
        assert x + width <= 1_200


def test_the_picture_of_many_attempts_is_bounded_and_still_shows_the_one_that_failed() -> None:
    endings = [Ending.SUCCEEDED] * 8_000
    endings[3_456] = Ending.FAILED
    records = [record(n, n % 4, n // 4 * 10, n // 4 * 10 + 9, ending=e) for n, e in
               enumerate(endings)]  # fmt: skip
    svg = gantt(run(records))
    assert len(records) > BARS_MAX
    assert len(svg) < 200_000
    (failed,) = [each for each in ET.fromstring(svg).iter(f"{SVG}path")
                 if each.get("class") == "failed"]  # fmt: skip
    x = float(re.findall(r"M(\d+) ", failed.get("d") or "")[0])
    assert x == pytest.approx(
        64 + 1_104 * records[3_456].started_ns / span_of(records).to_ns, abs=2
    )


def test_two_thousand_slots_are_a_picture_of_bounded_height() -> None:
    svg = gantt(run([record(n, n, 0, 5) for n in range(2_000)], workers=2_000))
    height = float(ET.fromstring(svg).get("height") or 0)
    assert height < 1_500
    assert f"{2_000 - ROWS_MAX:,} more slots are not drawn" in svg


def test_a_batch_in_which_nothing_started_is_drawn() -> None:
    assert "0 jobs, 0 starts, 4 slots, at most 50/s" in texts(gantt(run([])))


def test_both_light_and_dark_have_a_colour_for_every_outcome() -> None:
    records = [record(n, 0, n, n + 1, ending=e) for n, e in enumerate([*Ending, None])]
    light, dark = gantt(run(records)).split("@media (prefers-color-scheme: dark)")
    for outcome in (*Ending, "running"):
        assert f".{outcome} {{ fill: #" in light
        assert f".{outcome} {{ fill: #" in dark
