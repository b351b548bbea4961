"""The REST API: what programs ask, under ``/api/v1``."""

from __future__ import annotations

from typing import Final

from timeball.web.api import (
    batches,
    callbacks,
    certify,
    declaring,
    exports,
    fleet,
    jobs,
    limits,
    matching,
    queues,
    schedules,
    settings,
)

ROUTES: Final = tuple(
    route
    for module in (
        jobs,
        exports,
        matching,
        callbacks,
        batches,
        queues,
        limits,
        schedules,
        declaring,
        fleet,
        certify,
        settings,
    )
    for route in module.routes.declared
)
