"""`timeball audit` finds what is planted in a sound record, and names the rows."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.invoking import document, invoke, said
from tests.store.postgres_world import postgres_world
from tests.store.world import NOON, World, end, schedule

from timeball.cli.audit import _CHECKED
from timeball.core.dependencies import Edge
from timeball.core.records import Decision, Firing, OccurrenceDecision, Standing
from timeball.core.states import Ending

HOUR = timedelta(hours=1)
PLAIN, PARENT, CHILD, AGAIN, MAIL, _, THIRD, RUN, LATER_RUN, KEYED, HELD, LATE = range(1, 13)


@pytest.fixture
def record(direct: str) -> str:
    """The DSN of a database in which one of everything has happened, and nothing is wrong."""
    world = postgres_world(direct)
    worker = world.worker("a", "mail")
    world.submit()
    parent = world.submit()
    world.submit(after=(Edge(parent),))
    world.submit(max_retries=1)
    plain, first, again = world.claim(worker)
    world.settle(worker, end(plain), end(first), end(again, Ending.RETRIED))
    world.store.promote(9)
    world.settle(worker, *(end(turn) for turn in world.claim(worker)))
    mail(world, worker)
    run_twice(world, worker)
    world.submit(key="customer")
    world.submit(key="customer")
    (keyed,) = world.claim(worker)
    assert (plain.job_id, again.job_id, keyed.job_id) == (PLAIN, AGAIN, KEYED)
    world.close()
    plant(direct, RATE)
    return direct


def mail(world: World, worker: int) -> None:
    """Two start in one minute, and a third one in the next."""
    for starts in (2, 1):
        world.settle(worker, *[end(world.start(worker, "mail")) for _ in range(starts)])
        world.travel(60)


def run_twice(world: World, worker: int) -> None:
    world.store.declare(schedule(), Standing(NOON, NOON + HOUR))
    for hours in (1, 2):
        (found,) = world.store.schedules()
        at = NOON + hours * HOUR
        world.travel((at - world.store.now()).total_seconds())
        decision = OccurrenceDecision(at, Decision.FIRED, None, "{}")
        world.store.fire([Firing(found, [decision], Standing(at, at + HOUR))])
        world.settle(worker, *(end(turn) for turn in world.claim(worker)))


RATE = """INSERT INTO timeball.limiter (scope, name, starts, window_us, since)
    VALUES ('kind', 'mail', 2, 60000000, '2026-03-01')"""
CORRUPTIONS = {
    "a second outcome of a turn that nobody was granted": (
        f"INSERT INTO timeball.ended (job_id, turn, event) VALUES ({PLAIN}, 2, 'succeeded')",
        ("I2", "job 1: turn 1 ended succeeded at .*, yet turn 2 followed"),
    ),
    "a turn is missing": (
        f"UPDATE timeball.ended SET turn = 3 WHERE job_id = {AGAIN} AND turn = 2",
        ("I4", "job 4: turn 3 ended succeeded by worker 1 without a grant"),
    ),
    "a start above the rate": (
        f"UPDATE timeball.ended SET began_at = began_at - interval '59 s' WHERE job_id = {THIRD}",
        ("I8", "kind mail: start 3 of 3 came 59.* s early for 2/m"),
    ),
    "a child that started before its parent had ended": (
        f"UPDATE timeball.ended SET at = at + interval '1 h' WHERE job_id = {PARENT}",
        ("I13", f"job {CHILD}: "),
    ),
    "an occurrence without a decision": (
        f"DELETE FROM timeball.occurrence WHERE job_id = {RUN}",
        ("I17", "schedule hourly: 2026-03-01T13:00:00.* was never decided"),
    ),
    "two occurrences with one job": (
        f"UPDATE timeball.occurrence SET job_id = {RUN} WHERE job_id = {LATER_RUN}",
        ("I16", f"job {RUN} is that of schedule hourly at .*T14:00.*, and of .*T13:00"),
    ),
    "an occurrence that was fired early": (
        f"UPDATE timeball.occurrence SET at = at - interval '9 s' WHERE job_id = {RUN}",
        ("I18", r"schedule hourly: 2026-03-01T13:00:00.* was fired 9\.0 s early"),
    ),
    "a slot whose job is not under way": (
        f"UPDATE timeball.slot SET job_id = {PLAIN} WHERE job_id = {KEYED}",
        ("I9", "job 1: has a slot of key customer, and is succeeded"),
    ),
    "two at once under a key": (
        f"""INSERT INTO timeball.entry (lane, job_id, turn, at, attempts, at_once)
            SELECT lane, {HELD}, 1, at, 0, 1 FROM timeball.entry WHERE job_id = {KEYED};
            DELETE FROM timeball.held WHERE job_id = {HELD}""",
        ("I9", f"key customer: 2 at once, 1 allowed, when job {HELD} came: {KEYED}, {HELD}"),
    ),
    "leases that overlap": (
        """INSERT INTO timeball.lease
            (lane, seq, worker, prev, cur, pos_xid, pos_id, job_ids, turns, at)
            SELECT lane, 1000, 77, prev, cur, pos_xid, pos_id, job_ids, turns, at + interval '1 s'
            FROM timeball.lease WHERE lane = 1 AND seq = 1""",
        ("I3", r"job 1: turn 1 was granted 2 times: .*lease 1\), to worker 77 .*, lease 1000\)"),
    ),
    "a lease of another worker than ended the turn": (
        "UPDATE timeball.lease SET worker = 77 WHERE lane = 1 AND seq = 1",
        ("I4", r"job 1: turn 1 was granted to worker 77 \(.*, lease 1\), but ended by worker 1"),
    ),
    "an ended job that may still start": (
        "INSERT INTO timeball.entry (lane, job_id, turn, attempts) VALUES (1, 1, 2, 1)",
        ("I2", "job 1: turn 1 ended succeeded at .*, yet turn 2 followed"),
    ),
    "a job that is held and has ended": (
        """INSERT INTO timeball.held (job_id, turn, state, lane, kind, reason)
            VALUES (1, 1, 'pending', 1, 'a', 'key')""",
        ("I1", "job 1: is held as pending in turn 1, and succeeded in turn 1"),
    ),
    "a job that is nowhere": (
        f"DELETE FROM timeball.held WHERE job_id = {HELD}",
        ("I1", f"job {HELD}: is in no state: nothing is on record"),
    ),
    "an ending of a job that is not on record": (
        f"DELETE FROM timeball.job WHERE id = {PLAIN}",
        ("I1", "job 1: is not on record, yet has 1 row in ended"),
    ),
    "an edge that nobody decided": (
        f"UPDATE timeball.dependency SET decided_at = NULL, met = NULL WHERE child = {CHILD}",
        ("I14", f"job {CHILD}: has a linked edge from job {PARENT}, which has ended, undecided"),
    ),
    "a start before the instant until which an operator has put it off": (
        f"""INSERT INTO timeball.event (kind, job_id, turn, detail)
            VALUES ('snoozed', {PLAIN}, 1, '2026-03-02T00:00Z')""",
        ("I12", "job 1: turn 1 was granted to worker 1 .* before it was due at 2026-03-02T00:00"),
    ),
    "jobs that wait for each other by an edge that was added": (
        f"""SELECT timeball.submit(jsonb_build_array(jsonb_build_object(
                'uuid', gen_random_uuid(), 'kind', 'a', 'after', jsonb_build_array(
                    jsonb_build_object('job', job.uuid, 'rule', 'all_success')))))
            FROM timeball.job WHERE id = {HELD};
            UPDATE timeball.held SET state = 'waiting', reason = NULL, all_left = 1, one_left = 0,
                one_met = true, lost = false WHERE job_id = {HELD};
            INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, added)
            SELECT {HELD}, id, uuid, 'all_done', true FROM timeball.job WHERE id = {LATE}""",
        ("I15", f"job {HELD}: waits for job {LATE}, which waits for job {HELD}: a cycle"),
    ),
    "more retries than were allowed": (
        f"UPDATE timeball.job SET max_retries = 0 WHERE id = {AGAIN}",
        ("I7", "job 4: was retried 1 times with max_retries 0"),
    ),
}


def plant(dsn: str, sql: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql)


def test_of_a_sound_record_it_says_that_it_is_clean(record: str) -> None:
    found = document("audit", "--dsn", record, "--json")
    assert (found["clean"], found["jobs"], found["states"]["succeeded"]) == (True, 11, 9)
    assert said("audit", "--dsn", record).endswith("clean\n")


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_is_planted_is_found_and_the_rows_are_named(record: str, name: str) -> None:
    sql, (named, words) = CORRUPTIONS[name]
    plant(record, sql)
    result = invoke("audit", "--dsn", record, "--json")
    assert result.exit_code == 7
    told = [each for each in json.loads(result.stdout)["violations"] if each["invariant"] == named]
    assert any(re.search(words, f"{each['subject']}: {each['text']}") for each in told), told[:9]


def test_its_page_for_prometheus_tells_what_it_found(record: str, tmp_path: Path) -> None:
    page = tmp_path / "timeball.prom"

    def told() -> dict[str, float]:
        (family,) = text_string_to_metric_families(page.read_text())
        return {each.labels["invariant"]: each.value for each in family.samples}

    assert invoke("audit", "--dsn", record, "--metrics", str(page)).exit_code == 0
    sound = told()
    assert set(sound.values()) == {0}
    plant(record, CORRUPTIONS["leases that overlap"][0])
    result = invoke("audit", "--dsn", record, "--json", "--metrics", str(page))
    assert result.exit_code == 7
    assert told() == sound | json.loads(result.stdout)["found"]
    assert [each.name for each in tmp_path.iterdir()] == [page.name]


def test_every_promise_that_it_checks_is_on_that_page_and_in_the_guide() -> None:
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "audit.md"
    named = {
        name
        for line in guide.read_text("utf-8").splitlines()
        if line.startswith("| ") and line.count("|") == 4
        for name in re.findall(r"I\d+'?", line.split("|")[2])
    }
    assert named == set(_CHECKED)


@pytest.mark.parametrize("since", ["2026-03-01T12:30Z", "2026-03-01T13:00Z"])
def test_what_had_ended_before_is_left_out(record: str, since: str) -> None:
    plant(record, CORRUPTIONS["leases that overlap"][0])
    plant(record, CORRUPTIONS["a start above the rate"][0])
    plant(record, CORRUPTIONS["an occurrence without a decision"][0])
    assert set(json.loads(invoke("audit", "--dsn", record, "--json").stdout)["found"]) == {
        *("I3", "I8", "I17")
    }
    plant(record, "UPDATE timeball.lease SET at = '2026-03-01T12:00Z' WHERE seq = 1000")
    report = json.loads(invoke("audit", "--dsn", record, "--json", "--since", since).stdout)
    assert report["found"] == ({"I17": 1} if "12:30" in since else {})
    assert report["jobs"] == LATE - RUN


def test_since_takes_an_instant_or_how_long_ago_it_was(record: str) -> None:
    assert document("audit", "--dsn", record, "--json", "--since", "99999d")["jobs"] == 11
    assert document("audit", "--dsn", record, "--json", "--since", "2100-01-01T00:00Z")["jobs"] == 0
    result = invoke("audit", "--dsn", record, "--since", "yesterday")
    assert "write for example 2026-12-24T09:00Z" in result.output
