"""The dashboard: pages for people, one module each."""

from __future__ import annotations

from typing import Final

from timeball.web.pages import (
    backfill,
    batches,
    certify,
    declare,
    dependencies,
    doctor,
    job,
    jobs,
    limits,
    login,
    matching,
    overview,
    queues,
    record,
    schedules,
    settings,
    submit,
    workers,
)

ROUTES: Final = tuple(
    route
    for module in (
        *(overview, jobs, matching, job, batches, dependencies, queues, schedules, workers),
        *(backfill, submit, declare, limits, record, settings, doctor, certify, login),
    )
    for route in module.routes.declared
)
