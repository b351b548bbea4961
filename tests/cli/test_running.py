"""What `up` does to a store, and the news it tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.world import World, end, memory_world

from timeball.cli import running
from timeball.cli.declared import Asked, Reading, read
from timeball.cli.running import News, declare
from timeball.client import Client
from timeball.core.states import Ending, State

TWO = "0 3 * * * early\n30 4 * * * late\n"


@pytest.fixture
def world() -> World:
    return memory_world()


def reading(tmp_path: Path, text: str, name: str = "some.cron") -> Reading:
    path = tmp_path / name
    path.write_text(text)
    return read([str(path)], Asked(form="user", tz="UTC"))


def names(world: World) -> list[str]:
    return [each.spec.name.partition("-")[0] for each in world.store.schedules()]


def test_the_schedules_of_a_file_are_declared_with_their_next_occurrence(world, tmp_path) -> None:
    declare(world.store, reading(tmp_path, TWO))
    early, late = world.store.schedules()
    assert early.spec.source == late.spec.source == f"file:{tmp_path / 'some.cron'}"
    assert (early.spec.kind, early.spec.max_retries) == (early.spec.name, 0)
    assert early.cursor == world.store.now()
    assert early.next_at is not None
    assert early.next_at.isoformat() == "2026-03-02T03:00:00+00:00"


def test_to_declare_a_file_again_changes_nothing(world: World, tmp_path: Path) -> None:
    declare(world.store, reading(tmp_path, TWO))
    before = world.store.schedules()
    world.travel(100)
    declare(world.store, reading(tmp_path, TWO))
    assert world.store.schedules() == before


def test_a_line_that_is_gone_is_withdrawn_and_other_files_are_left_alone(
    world, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(world.store, reading(tmp_path, TWO))
    declare(world.store, reading(tmp_path, "0 5 * * * other\n", "other.cron"))
    declare(world.store, reading(tmp_path, "0 3 * * * early\n"))
    assert names(world) == ["other:other", "some:early"]
    assert "no longer in its file: some:late-" in capsys.readouterr().err


def test_a_file_without_schedules_withdraws_those_it_had(world: World, tmp_path: Path) -> None:
    declare(world.store, reading(tmp_path, TWO))
    declare(world.store, reading(tmp_path, "# nothing any more\n"))
    assert names(world) == []


def test_the_queues_of_all_kinds_are_served(tmp_path: Path) -> None:
    app = tmp_path / "running_queues.py"
    app.write_text("import timeball as tb\n@tb.job(queue='mail')\ndef send() -> None: ...\n")
    (tmp_path / "some.cron").write_text(TWO)
    found = read([str(app), str(tmp_path / "some.cron")], Asked(form="user", tz="UTC"))
    assert found.queues == {"default", "mail"}


# News ---------------------------------------------------------------------------------------


def test_news_are_jobs_that_are_new_and_jobs_that_have_ended(world: World) -> None:
    world.submit()
    news = News(Client(world.store))
    assert news.take() == []
    uuid = world.submit()
    assert [(job.uuid, job.state) for job in news.take()] == [(uuid, State.PENDING)]
    assert news.take() == []
    worker = world.worker()
    for turn in world.claim(worker):
        world.settle(worker, end(turn, Ending.FAILED, reason="permanent"))
    assert [(job.uuid, job.state) for job in news.take()] == [(uuid, State.FAILED)]
    assert news.take() == []


def test_a_job_that_came_and_ended_between_two_looks_is_told_once(world: World) -> None:
    news = News(Client(world.store))
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn))
    assert [job.state for job in news.take()] == [State.SUCCEEDED]
    assert news.take() == []


def test_news_are_told_oldest_first(world: World) -> None:
    news = News(Client(world.store))
    uuids = [world.submit() for _ in range(5)]
    assert [job.uuid for job in news.take()] == uuids


def test_only_so_many_open_jobs_are_followed(world: World, monkeypatch) -> None:
    monkeypatch.setattr(running, "_FOLLOWED", 2)
    news = News(Client(world.store))
    uuids = [world.submit() for _ in range(3)]
    assert len(news.take()) == 3
    worker = world.worker()
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    assert {job.uuid for job in news.take()} == set(uuids[1:])
