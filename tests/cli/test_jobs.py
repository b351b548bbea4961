"""`timeball jobs`, `submit`, `cron list` and `audit` on a store in memory."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from tests.cli.invoking import document, invoke, said
from tests.store.world import NOON, World, end, schedule

from timeball.core.notes import Line, Note
from timeball.core.records import Decision, Firing, OccurrenceDecision, Standing
from timeball.core.states import Ending, State

KNOWN = UUID("0193c0de-0000-7000-8000-000000000001")
ALIKE = UUID("0193c0de-ffff-7000-8000-000000000002")


def ended(world: World, ending: Ending = Ending.SUCCEEDED, **how) -> UUID:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, ending, **how))
    return turn.uuid


# list ---------------------------------------------------------------------------------------


def test_jobs_are_listed_newest_first(world: World) -> None:
    uuids = [world.submit() for _ in range(3)]
    lines = said("jobs", "list", "--utc").splitlines()
    assert lines[0].split() == [
        *("NUMBER", "ID", "KIND", "QUEUE", "STATE", "ATTEMPTS", "CREATED", "OUTCOME")
    ]
    assert [line.split()[1] for line in lines[1:]] == [str(uuid) for uuid in reversed(uuids)]
    assert lines[1].split()[2:] == ["a", "default", "pending", "0", "2026-03-01", "12:00:00+00:00"]


def test_a_list_shows_what_was_asked_for(world: World) -> None:
    ended(world)
    wanted = world.submit("b", queue="mail")
    world.submit("a", queue="mail")

    def listed(*words: str) -> list[str]:
        return [each["uuid"] for each in document("jobs", "list", "--json", *words)["jobs"]]

    assert listed("--state", "succeeded") != []
    assert listed("--kind", "b") == [str(wanted)]
    assert listed("--queue", "mail", "--kind", "b", "--state", "pending") == [str(wanted)]
    assert len(listed("--limit", "2")) == 2
    assert listed("--limit", "1", "--before", "3") == [str(wanted)]
    assert listed("--queue", "none") == []


def test_json_lines_are_jobs(world: World) -> None:
    ended(world, result='{"n": 1}')
    (line,) = said("jobs", "list", "--jsonl").splitlines()
    job = json.loads(line)
    assert job["schema_version"] == 1
    assert job["state"] == "succeeded"
    assert job["result"] == {"n": 1}
    assert job["created_at"] == "2026-03-01T12:00:00Z"
    assert job["run_at"] is None


OUTCOMES = [
    ({"result": '"short"'}, Ending.SUCCEEDED, '"short"'),
    ({"result": '{"exit_code": 0, "output": "\\nfirst\\nsecond\\n"}'}, Ending.SUCCEEDED, "first"),
    ({"result": json.dumps("x" * 99)}, Ending.SUCCEEDED, '"' + "x" * 58 + "…"),
    (
        {"reason": "exhausted", "error_type": "ValueError", "error": "it\x1b[0m\n\nTraceback"},
        Ending.FAILED,
        "(exhausted) ValueError it\\x1b[0m",
    ),
]


@pytest.mark.parametrize(("how", "ending", "text"), OUTCOMES)
def test_the_outcome_is_told_in_a_few_harmless_words(world, how, ending, text: str) -> None:
    ended(world, ending, **how)
    assert said("jobs", "list").splitlines()[1].endswith(f"  {text}")


# show ---------------------------------------------------------------------------------------


def test_show_tells_everything_about_a_job(world: World) -> None:
    uuid = ended(world, Ending.FAILED, reason="permanent", error_type="Bad", error="no\n\nTrace")
    assert said("jobs", "show", str(uuid), "--utc") == (
        f"job       {uuid} (number 1)\n"
        "kind      a\n"
        "state     failed\n"
        "reason    permanent\n"
        "queue     default, priority 5\n"
        "attempts  1 (1 failed, 0 crashed, 3 retries allowed)\n"
        "created   2026-03-01 12:00:00+00:00\n"
        "began     2026-03-01 12:00:00+00:00\n"
        "ended     2026-03-01 12:00:00+00:00\n"
        "worker    1\n"
        "args      {}\n"
        "error\n"
        "    Bad\n"
        "    no\n"
        "\n"
        "    Trace\n"
    )


def test_show_gives_the_output_of_a_command_as_it_was(world: World) -> None:
    uuid = ended(world, result='{"exit_code": 0, "output": "one\\ntwo\\n"}')
    assert said("jobs", "show", str(uuid)).endswith("args      {}\noutput\n    one\n    two\n")


def test_show_gives_a_result_as_json(world: World) -> None:
    uuid = ended(world, result='{"é": [1]}')
    assert said("jobs", "show", str(uuid)).endswith('result    {"é": [1]}\n')
    assert document("jobs", "show", str(uuid), "--json")["job"]["result"] == {"é": [1]}


def test_a_job_is_found_by_uuid_number_and_beginning(world: World) -> None:
    world.submit(uuid=KNOWN)
    world.submit()
    for text in (str(KNOWN), KNOWN.hex, str(KNOWN).upper(), "1", "0193c0de-0"):
        assert document("jobs", "show", text, "--json")["job"]["uuid"] == str(KNOWN), text


@pytest.mark.parametrize("text", [str(UUID(int=9)), "17", "0", "abcdef", "9" * 18])
def test_a_job_that_is_not_there_is_exit_code_3(world: World, text: str) -> None:
    world.submit(uuid=KNOWN)
    result = invoke("jobs", "show", text)
    assert (result.exit_code, result.stdout) == (3, "")
    assert text in result.stderr


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("text", ["abc", "nonsense", "", "9" * 19 + "x"])
def test_what_can_be_no_jobs_id_is_exit_code_2(text: str) -> None:
    assert invoke("jobs", "show", text).exit_code == 2


def test_a_beginning_that_several_share_is_exit_code_2(world: World) -> None:
    world.submit(uuid=KNOWN)
    world.submit(uuid=ALIKE)
    result = invoke("jobs", "show", "0193c0de")
    assert result.exit_code == 2
    assert "2 jobs begin with 0193c0de" in result.stderr


# cancel -------------------------------------------------------------------------------------


def test_a_pending_job_is_cancelled(world: World) -> None:
    uuid = world.submit()
    assert said("jobs", "cancel", str(uuid)) == f"{uuid}: cancelled; it will never start\n"
    assert world.state(uuid) is State.CANCELLED


def test_a_running_job_is_asked_to_stop(world: World) -> None:
    turn = world.start(world.worker())
    assert "running; asked to stop" in said("jobs", "cancel", str(turn.uuid))


def test_to_cancel_what_has_ended_is_a_forbidden_transition(world: World) -> None:
    assert invoke("jobs", "cancel", str(ended(world))).exit_code == 4


@pytest.mark.usefixtures("world")
def test_to_cancel_what_is_not_there_is_not_found() -> None:
    assert invoke("jobs", "cancel", "17", "18").exit_code == 3


def test_cancelling_only_some_of_them_is_told_by_the_exit_code(world: World) -> None:
    uuid = world.submit()
    result = invoke("jobs", "cancel", "17", str(uuid))
    assert result.exit_code == 8
    assert result.stdout == f"17: not found\n{uuid}: cancelled; it will never start\n"


# submit -------------------------------------------------------------------------------------


def submitted(world: World, *words: str, given: str | None = None):
    return world.job(UUID(said("submit", *words, given=given).strip()))


def test_values_are_json_where_they_read_as_json_and_text_elsewhere(world: World) -> None:
    words = ("n=1", "t=true", 'l=["a"]', "text=a b=c", "empty=", 'quoted="1"')
    assert submitted(world, "mail.send", *words).args == {
        "n": 1,
        "t": True,
        "l": ["a"],
        "text": "a b=c",
        "empty": "",
        "quoted": "1",
    }


@pytest.mark.parametrize("words", [("--json", '{"queue": 1}'), ("--json", "-")])
def test_arguments_may_be_one_json_object(world: World, words: tuple[str, ...]) -> None:
    assert submitted(world, "k", *words, given='{"queue": 1}').args == {"queue": 1}


def test_a_name_of_an_option_can_be_an_argument(world: World) -> None:
    job = submitted(world, "k", "queue=jobs own", "--queue", "mail")
    assert (job.args, job.queue) == ({"queue": "jobs own"}, "mail")


def test_options_are_the_jobs(world: World) -> None:
    words = ("--priority", "9", "--max-retries", "0", "--uuid", str(KNOWN))
    job = submitted(world, "k", *words)
    assert (job.priority, job.max_retries, job.uuid) == (9, 0, KNOWN)


def test_the_same_uuid_twice_is_one_job(world: World) -> None:
    for _ in range(2):
        submitted(world, "k", "--uuid", str(KNOWN))
    assert len(document("jobs", "list", "--json")["jobs"]) == 1


def test_a_delay_and_an_instant_hold_a_job_back(world: World) -> None:
    later = submitted(world, "k", "--in", "1h30m")
    assert (later.state, later.run_at) == (State.SCHEDULED, NOON + timedelta(minutes=90))
    at = submitted(world, "k", "--at", "2026-12-24T09:00[Europe/Berlin]")
    assert at.run_at is not None
    assert at.run_at.isoformat() == "2026-12-24T08:00:00+00:00"


MISTAKES = [
    ("k", "novalue"),
    ("k", "=1"),
    ("k", "a=1", "--json", "{}"),
    ("k", "--json", "{"),
    ("k", "--json", "[1]"),
    ("k", "--in", "soon"),
    ("k", "--at", "soon"),
    ("k", "--in", "1m", "--at", "2026-12-24T09:00Z"),
    ("k", "--priority", "10"),
    ("k", "--uuid", "x"),
    ("k", "x=NaN"),
    ("k", "--timeout", "x", "--wait"),
    ("", "x=1"),
    ("k", "-a", "no_such_module_anywhere"),
]


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_submits_nothing(world: World, words: tuple[str, ...]) -> None:
    result = invoke("submit", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr
    assert world.store.counts() == {}


def test_with_its_module_a_job_is_checked_before_it_is_submitted(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "submit_app.py"
    path.write_text("import timeball as tb\n@tb.job(queue='mail')\ndef send(to): ...\n")
    assert submitted(world, "submit_app.send", "to=x", "-a", str(path)).queue == "mail"
    assert invoke("submit", "submit_app.send", "whom=x", "-a", str(path)).exit_code == 2
    unknown = invoke("submit", "submit_app.sent", "-a", str(path))
    assert unknown.exit_code == 2
    assert "did you mean 'submit_app.send'?" in unknown.stderr


def test_to_wait_gives_the_outcome_and_an_exit_code(world: World) -> None:
    good, bad = ended(world, result="42"), ended(world, Ending.FAILED, reason="permanent")
    assert said("submit", "a", "--uuid", str(good), "--wait") == f"{good} succeeded 42\n"
    result = invoke("submit", "a", "--uuid", str(bad), "--wait")
    assert (result.exit_code, result.stdout) == (1, f"{bad} failed (permanent)\n")


def test_waiting_ends_when_the_time_is_up(world: World) -> None:
    result = invoke("submit", "a", "--uuid", str(KNOWN), "--wait", "--timeout", "0")
    assert result.exit_code == 1
    assert f"{KNOWN} has not ended in time; it goes on" in result.stderr
    assert world.state(KNOWN) is State.PENDING


# audit --------------------------------------------------------------------------------------


def declared(world: World) -> None:
    next_at = NOON + timedelta(hours=1)
    world.store.declare(schedule("hourly"), Standing(NOON, next_at))


def fire(world: World, at_hours: int, cursor_hours: int) -> None:
    (found,) = world.store.schedules()
    at, cursor = (NOON + timedelta(hours=hours) for hours in (at_hours, cursor_hours))
    decision = OccurrenceDecision(at, Decision.FIRED, None, "{}")
    world.travel(3_600 * cursor_hours)
    world.store.fire([Firing(found, [decision], Standing(cursor, cursor + timedelta(hours=1)))])


def test_a_sound_record_is_clean(world: World) -> None:
    declared(world)
    ended(world)
    fire(world, at_hours=1, cursor_hours=1)
    text = said("audit")
    assert text.endswith("violations           0\nclean\n")
    found = document("audit", "--json")
    assert (found["clean"], found["jobs"], found["lost"], found["twice"]) == (True, 2, 0, 0)


def test_an_occurrence_that_nobody_decided_is_exit_code_7(world: World) -> None:
    declared(world)
    fire(world, at_hours=2, cursor_hours=2)
    result = invoke("audit")
    assert result.exit_code == 7
    assert "I17 schedule hourly: 2026-03-01T13:00:00+00:00 was never decided" in result.stdout


def test_once_all_work_should_be_done_an_open_job_is_lost(world: World) -> None:
    world.submit()
    assert invoke("audit").exit_code == 0
    result = invoke("audit", "--quiesced", "--json")
    assert result.exit_code == 7
    assert json.loads(result.stdout)["lost"] == 1


def test_a_withdrawn_schedule_does_not_spoil_the_audit(world: World) -> None:
    declared(world)
    fire(world, at_hours=1, cursor_hours=1)
    world.store.withdraw("app", keep=())
    assert invoke("audit").exit_code == 0


# what a job says of itself ---------------------------------------------------------------------


def test_show_tells_how_far_a_job_is_and_what_it_has_logged(world: World) -> None:
    turn = world.start(world.worker())
    lines = [Line(1, 0.0, "begins"), Line(2, 0.0, "goes on")]
    world.store.note([Note(turn.job_id, 1, (3.0, 12.0, "files"), lines)])
    text = said("jobs", "show", str(turn.uuid), "--utc")
    assert "progress  3 of 12 (25 %) files" in text
    assert text.splitlines()[-3:] == [
        "log",
        "    2026-03-01 12:00:00+00:00  turn 1  begins",
        "    2026-03-01 12:00:00+00:00  turn 1  goes on",
    ]
    job = document("jobs", "show", str(turn.uuid), "--json")["job"]
    assert job["progress"] == {
        "done": 3.0,
        "total": 12.0,
        "note": "files",
        "turn": 1,
        "at": "2026-03-01T12:00:00Z",
    }
    assert [line["text"] for line in job["log"]] == ["begins", "goes on"]
