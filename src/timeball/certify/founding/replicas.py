"""D, the leg of a standby: what lags is told apart from what counts, and takes no writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

from timeball.certify.founding.family import Family
from timeball.certify.scenario import Skipped
from timeball.certify.standby import following
from timeball.certify.verbs import KIND
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

EXPECTED: Final = MappingProxyType(
    {
        "the standby says": "running",
        "the primary says": "succeeded",
        "a cancel by what the standby says": "finished",
        "writes to the standby": "refused",
    }
)


def lagging(family: Family) -> dict[str, Any]:
    """Have a standby stop following, end a job on the primary, and decide by what was read.

    Raises:
        Skipped: The server is not ours to make a standby of.
    """
    own, stage = family.stage.terms.own_server, family.stage
    if own is None:
        raise Skipped("a standby is made of certify's own server only: leave --dsn out")
    (running,) = family.running()
    (pending,) = family.pending()
    ((database,),) = stage.ask("database")
    with following(own, stage.dsn, database) as standby:
        standby.catch_up()
        standby.cut()
        family.end(running)
        with closing(PostgresStore(standby.dsn)) as lag:
            writes: list[Callable[[], object]] = [
                lambda: lag.submit([JobSpec(uuid=uuid4(), kind=KIND)]),
                lambda: lag.cancel(pending),
                lambda: lag.claim(family.worker, limit=1, request=uuid4(), floors={}),
                lambda: lag.connections.run("beat", workers=[family.worker]),
                lambda: lag.revive([running]),
            ]
            return {
                "the standby says": str(lag.get(running).state),
                "the primary says": str(family.state(running)),
                "a cancel by what the standby says": str(stage.store.cancel(running)),
                "writes to the standby": ", ".join(sorted({_answer(each) for each in writes})),
            }


def _answer(write: Callable[[], object]) -> str:
    try:
        write()
    except StoreUnavailable:
        return "refused"
    return "accepted"
