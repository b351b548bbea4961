"""The API about runs of certify."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from fastapi import Request, Response
from pydantic import Field

from timeball.errors import UsageError
from timeball.web.api.models import Answered, Model, answer
from timeball.web.desk import caller_of, desk_of
from timeball.web.problems import Problem
from timeball.web.results import Unread, runs_in
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

routes = Routes("certify")
ADVICE = "no folder of results was given: write `timeball serve --results FOLDER`"


class RunOut(Model):
    """A run, as its results.json tells of it."""

    folder: str
    at: str
    version: str
    profile: str
    seed: int
    verdict: str
    scenarios: dict[str, str] = Field(description="How each ended")


class PlayingOut(Model):
    """A run that was started from here and has not ended."""

    scenario: str
    began_at: datetime


class RunList(Model):
    """The latest 20 runs, newest first."""

    runs: list[RunOut]
    unread: list[Unread] = Field(description="Files that are no run's")
    playing: PlayingOut | None


class RunIn(Model):
    """What to play."""

    scenario: str | None = Field(
        None, max_length=16, description="One scenario; null: all of the profile quick"
    )


@routes.get("/api/v1/certify", Scope.OPERATE, gives=RunList)
def list_runs(request: Request) -> Response:
    """List the latest runs of certify in the folder of results."""
    rehearsal = desk_of(request).rehearsal
    runs, unread = ([], []) if rehearsal.folder is None else runs_in(rehearsal.folder)
    latest = rehearsal.latest if rehearsal.is_playing else None
    found = [
        RunOut(
            folder=run.folder,
            at=run.at,
            version=run.product.version,
            profile=run.profile,
            seed=run.seed,
            verdict=run.verdict,
            scenarios={key: each.status.value for key, each in run.scenarios.items()},
        )
        for run in runs
    ]
    playing = latest and PlayingOut(scenario=latest.what, began_at=latest.began_at)
    return answer(RunList(runs=found, unread=unread, playing=playing))


@routes.post("/api/v1/certify", Scope.ADMIN, gives=Answered, status=202, also=(409,))
def start_run(request: Request, what: RunIn | None = None) -> Response:
    """Start a run of certify on private databases; one at a time."""
    return answer(Answered(answer=start(request, what.scenario if what else None)), 202)


@cache
def titles() -> dict[str, str]:
    """Return what can be played, by id."""
    from timeball.certify.registry import SCENARIOS  # more than any other page needs

    return {scenario.id: scenario.title for scenario in SCENARIOS}


def start(request: Request, scenario: str | None) -> str:
    """Start a run on record; return "started".

    Raises:
        UsageError: There is no folder for its results, or no such scenario.
        Problem: One is under way.
    """
    desk = desk_of(request)
    rehearsal = desk.rehearsal
    if rehearsal.folder is None:
        raise UsageError(ADVICE)
    if scenario is not None and scenario not in titles():
        raise UsageError(f"no scenario of that name: write one of {', '.join(titles())}")
    if rehearsal.is_playing:
        raise Problem(409, "a run is under way: wait until it has ended")

    def change() -> dict[str, Any]:
        try:
            made = rehearsal.begin(scenario)
        except OSError as error:
            raise UsageError(f"the folder of results: {error.strerror}") from None
        return {"answer": "started" if made else "busy", "folder": made and made.folder.name}

    what = f"scenario {scenario}" if scenario else "profile quick"
    after = desk.record(caller_of(request), "certify.start", what, before={}, change=change)
    if after["answer"] == "busy":  # somebody else was quicker
        raise Problem(409, "a run is under way: wait until it has ended")
    return str(after["answer"])
