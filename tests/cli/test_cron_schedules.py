"""`timeball cron list|show|add|pause|resume|run|backfill|remove`, on a store in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.cli.invoking import document, invoke, said
from tests.store.world import NOON, World, schedule

from timeball.client import Client
from timeball.core.records import Schedule, Standing
from timeball.core.states import State
from timeball.store.base import JobFilter
from timeball.worker.ticker import Ticker

HOURLY = ("hourly", "--cron", "0 * * * *", "--tz", "UTC", "report", "user=7", "name=Ada")


@pytest.fixture(autouse=True)
def at_noon(world: World) -> None:
    """A schedule of every hour, declared at noon."""
    assert world.store.now() == NOON
    said("cron", "add", *HOURLY)


def held(world: World, name: str = "hourly") -> Schedule:
    return world.store.schedule(name)


# add ----------------------------------------------------------------------------------------


def test_the_jobs_of_what_is_added_have_its_key(world: World) -> None:
    said("cron", "add", *HOURLY, "--key", "user-{user}")
    assert held(world).spec.key == "user-7"
    assert said("cron", "run", "hourly")
    (job,) = world.store.jobs(JobFilter())
    assert job.key == "user-7"


def test_what_is_added_is_there(world: World) -> None:
    spec = held(world).spec
    assert (spec.kind, spec.expression, spec.tz) == ("report", "0 * * * *", "UTC")
    assert spec.args == '{"user":7,"name":"Ada"}'
    assert held(world).next_at == NOON + timedelta(hours=1)


def test_what_will_surprise_is_said_where_it_is_added() -> None:
    words = ("--cron", "30 2 1 * 1", "--tz", "US/Eastern", "report")
    told = invoke("cron", "add", "early", *words).stderr.splitlines()
    assert [line.split()[1] for line in told if line.startswith("warning:")] == [
        "day-of-month",
        "time",
    ]
    assert invoke("cron", "add", "other", "--cron", "30 2 * * *", *words[2:]).stderr.startswith(
        "warning: time zone US/Eastern is an old name; write America/New_York\n"
        "DST: 2026-03-08 02:00 becomes 2026-03-08 03:00: 02:30 does not exist: runs at 03:00"
    )


def test_the_same_name_again_changes_it(world: World) -> None:
    words = ("hourly", "--cron", "30 9 * * MON", "--tz", "Europe/Paris", "report")
    options = ("--catchup", "all", "--queue", "mail", "--gap", "skip")
    text = said("cron", "add", *words, *options)
    assert text == "hourly: 30 9 * * 1 in Europe/Paris, active\n"
    spec = held(world).spec
    assert (spec.catchup, spec.queue, spec.gap) == ("all", "mail", "skip")


@pytest.mark.parametrize("words", [("--cron", "61 * * * *"), ("--cron", "* * * * *", "--tz=EST")])
def test_what_is_no_schedule_is_not_added(world: World, words: tuple[str, ...]) -> None:
    assert invoke("cron", "add", "other", *words, "report").exit_code == 2
    assert [each.spec.name for each in world.store.schedules()] == ["hourly"]


def test_a_command_is_no_kind(world: World) -> None:
    words = ("backup", "--cron", "@daily", "--tz", "UTC", "--", "./backup.sh")
    result = invoke("cron", "add", *words)
    assert result.exit_code == 2
    assert "timeball up FILE" in result.stderr
    assert [each.spec.name for each in world.store.schedules()] == ["hourly"]


# list and show ------------------------------------------------------------------------------


def test_schedules_are_listed() -> None:
    assert said("cron", "list", "--utc") == (
        "NAME    SCHEDULE   ZONE  KIND    QUEUE    STATE   NEXT                       LAST  SOURCE"
        "  ERROR\n"
        "hourly  0 * * * *  UTC   report  default  active  2026-03-01 13:00:00+00:00\n"
    )
    (found,) = document("cron", "list", "--json")["schedules"]
    assert found["next_at"] == "2026-03-01T13:00:00Z"
    assert found["cursor"] == "2026-03-01T12:00:00Z"
    assert found["args"] == {"user": 7, "name": "Ada"}


def test_the_list_can_be_narrowed() -> None:
    said("cron", "add", "other", "--cron", "@daily", "--tz", "UTC", "report")
    said("cron", "pause", "other")

    def names(*words: str) -> list[str]:
        return [each["name"] for each in document("cron", "list", *words, "--json")["schedules"]]

    assert names() == ["hourly", "other"]
    assert names("--state", "paused") == ["other"]
    assert names("--source", "file:/none") == []


def test_one_schedule_is_shown_with_rule_outlook_and_history(world: World) -> None:
    world.travel(7_200)
    said(
        "cron",
        "backfill",
        "hourly",
        "--from",
        "2026-03-01T13:00",
        "--to",
        "2026-03-01T13:00",
        "--yes",
    )
    lines = said("cron", "show", "hourly", "--utc").splitlines()
    assert "rule       0 * * * *  in UTC: every hour" in lines
    assert 'runs       report {"user":7,"name":"Ada"}' in lines
    assert "next       2026-03-01 13:00:00+00:00  2026-03-01T13:00:00Z" in lines
    assert lines[-1].startswith("2026-03-01 13:00:00+00:00  fired     backfill  ")
    found = document("cron", "show", "hourly", "--json")
    assert found["schedule"]["name"] == "hourly"
    assert [each["at"] for each in found["next"]][:1] == ["2026-03-01T13:00:00Z"]
    (decided,) = found["history"]
    assert (decided["decision"], decided["job_state"]) == ("fired", "pending")
    assert document("cron", "show", "hourly", "--history", "0", "--json")["history"] == []


def test_a_schedule_that_has_had_all_its_runs_has_no_next_one(world: World) -> None:
    said("cron", "add", *HOURLY, "--max-runs", "1")
    world.travel(3_600)
    assert Ticker(world.store).tick().jobs == 1
    assert "next       never again\n" in said("cron", "show", "hourly")
    assert document("cron", "show", "hourly", "--json")["next"] == []


def test_what_the_next_transitions_do_is_shown() -> None:
    said("cron", "add", "early", "--cron", "30 2 * * *", "--tz", "Europe/Paris", "report")
    text = said("cron", "show", "early")
    assert "DST        2026-03-29 02:00 becomes 2026-03-29 03:00: 02:30 does not exist" in text


def test_a_schedule_whose_zone_is_gone_is_shown_with_its_error(world: World) -> None:
    world.store.declare(schedule("lost", tz="Nowhere/At"), Standing(NOON, None))
    world.store.suspend(held(world, "lost"), "time zone 'Nowhere/At' is unknown")
    text = said("cron", "show", "lost")
    assert "rule       0 * * * *  in Nowhere/At\n" in text
    assert "state      error\n" in text
    assert "error      time zone 'Nowhere/At' is unknown\n" in text
    assert document("cron", "show", "lost", "--json")["next"] == []


# pause and resume ---------------------------------------------------------------------------


def test_a_paused_schedule_waits_until_it_is_resumed(world: World) -> None:
    assert said("cron", "pause", "hourly") == "hourly: paused\n"
    assert held(world).state == "paused"
    assert said("cron", "resume", "hourly") == "hourly: active\n"
    assert held(world).state == "active"


def test_what_came_during_a_pause_is_dropped_or_run(world: World) -> None:
    for words, jobs in (((), 0), (("--backfill",), 2)):
        said("cron", "pause", "hourly")
        world.travel(7_200)
        said("cron", "resume", "hourly", *words)
        assert world.store.counts().get(State.PENDING, 0) == jobs


def test_a_state_that_a_schedule_is_in_already_is_exit_code_4() -> None:
    result = invoke("cron", "resume", "hourly")
    assert (result.exit_code, result.stdout) == (4, "hourly: was not paused; nothing was changed\n")
    said("cron", "pause", "hourly")
    assert invoke("cron", "pause", "hourly").exit_code == 4


VERBS = [("pause",), ("resume",), ("remove",), ("run",), ("show",)]


@pytest.mark.parametrize(
    "words", [*VERBS, ("backfill", "--from", "2026-01-01T00:00Z")], ids=" ".join
)
def test_a_schedule_that_is_not_there_is_exit_code_3(words: tuple[str, ...]) -> None:
    verb, *options = words
    result = invoke("cron", verb, "nobody", *options)
    assert result.exit_code == 3
    assert "no schedule is called 'nobody'" in result.stderr


def test_several_with_several_answers_are_exit_code_8(world: World) -> None:
    result = invoke("cron", "pause", "hourly", "nobody")
    assert result.exit_code == 8
    assert held(world).state == "paused"


# Many at once -------------------------------------------------------------------------------


def test_many_are_counted_and_asked_about(world: World) -> None:
    said("cron", "add", "other", "--cron", "@daily", "--tz", "UTC", "report")
    result = invoke("cron", "pause", "--all", given="n\n")
    assert result.exit_code == 1
    assert "pause 2 schedules (hourly, other)?" in result.stderr
    assert held(world).state == "active"
    assert invoke("cron", "pause", "--all", given="y\n").exit_code == 0
    assert held(world).state == "paused"
    assert said("cron", "resume", "--all", "--yes") == "hourly: active\nother: active\n"


def test_where_nobody_can_be_asked_nothing_is_done(world: World) -> None:
    result = invoke("cron", "remove", "--all", given="")
    assert result.exit_code == 2
    assert "write --yes" in result.stderr
    assert held(world).state == "active"


@pytest.mark.parametrize("words", [(), ("hourly", "--all"), ("--all", "--source", "x")])
def test_which_ones_is_said_in_one_way(words: tuple[str, ...]) -> None:
    result = invoke("cron", "pause", *words, "--yes")
    assert result.exit_code == 2
    assert "write names, --source SOURCE or --all" in result.stderr


def test_those_of_a_source_are_chosen_and_none_is_no_fault(world: World) -> None:
    client = Client(world.store)
    client.schedule("theirs", "report", cron="@daily", tz="UTC", source="file:/x")
    assert said("cron", "pause", "--source", "file:/x", "--yes") == "theirs: paused\n"
    assert held(world).state == "active"
    assert said("cron", "pause", "--source", "file:/none", "--yes") == ""


# run, backfill, remove ----------------------------------------------------------------------


def test_one_extra_run_leaves_the_occurrences_alone(world: World) -> None:
    before = held(world).next_at
    uuid = said("cron", "run", "hourly").strip()
    (job,) = Client(world.store).jobs()
    assert (str(job.uuid), job.kind, held(world).next_at) == (uuid, "report", before)


def test_a_backfill_runs_each_occurrence_once(world: World) -> None:
    world.travel(3 * 3_600)
    words = ("cron", "backfill", "hourly", "--from", "2026-03-01T13:00", "--to", "2026-03-01T14:30")
    assert said(*words, "--dry-run") == "2026-03-01T13:00:00Z\n2026-03-01T14:00:00Z\n"
    assert Client(world.store).jobs() == []
    asked = invoke(*words, given="n\n")
    assert asked.exit_code == 1
    assert "run 2 occurrences of hourly?" in asked.stderr
    assert document(*words, "--yes", "--json") == {
        "name": "hourly",
        "dry_run": False,
        "fired": ["2026-03-01T13:00:00Z", "2026-03-01T14:00:00Z"],
        "already": [],
    }
    again = invoke(*words)
    assert again.exit_code == 0
    assert "0 occurrences run; 2 had run before" in again.stderr
    assert len(Client(world.store).jobs()) == 2


def test_a_backfill_of_the_future_is_refused() -> None:
    words = ("--from", "2026-03-01T13:00", "--to", "2027-01-01T00:00")
    assert invoke("cron", "backfill", "hourly", *words, "--yes").exit_code == 2


def test_what_is_removed_is_gone_and_its_neighbours_stay(world: World) -> None:
    said("cron", "add", "other", "--cron", "@daily", "--tz", "UTC", "report")
    assert said("cron", "remove", "hourly") == "hourly: removed\n"
    assert [each.spec.name for each in world.store.schedules()] == ["other"]


def test_who_removes_what_a_file_declares_is_told(world: World) -> None:
    client = Client(world.store)
    client.schedule("theirs", "report", cron="@daily", tz="UTC", source="file:/x")
    assert said("cron", "remove", "theirs") == (
        "theirs: removed; file:/x declares it and brings it back\n"
    )
