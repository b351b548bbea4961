"""Limits in PostgreSQL: on what is under way at once, and on what starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from timeball.core.limits import Holding, Limit, Scope, StartRate
from timeball.core.permits import Law, Start
from timeball.core.rate import Rate
from timeball.store.limiting import Ask, Granted, Grants, Part, Spent
from timeball.store.postgres.connections import Connections, Run
from timeball.store.postgres.encoding import encode
from timeball.store.postgres.histories import holdings, starts


class PostgresLimits:
    """The limits of a store; see `timeball.store.base.Store` for what each verb promises."""

    connections: Connections
    _run: Run

    def limit(self, scope: Scope, name: str, at_once: int | None) -> None:
        """See `Store.limit`."""
        if at_once is None:
            self._run("lift_limit", scope=scope, name=name)
        else:
            self._run("set_limit", scope=scope, name=name, at_once=at_once)

    def limit_starts(self, scope: Scope, name: str, rate: Rate | None) -> None:
        """See `Store.limit_starts`."""
        if rate is None:
            self._run("lift_rate", scope=scope, name=name)
        else:
            self._run("set_rate", scope=scope, name=name, **Law.of(rate)._asdict())

    def limits(self) -> list[Limit]:
        """See `Store.limits`."""
        return [
            Limit(Scope(scope), name, at_once, used, Law(*law).rate if law[0] else None)
            for scope, name, at_once, used, *law in self._run("limits")
        ]

    def rates(self) -> list[StartRate]:
        """See `Store.rates`."""
        return [
            StartRate(Scope(scope), name, Law(*law).rate, since)
            for scope, name, since, *law in self._run("rates")
        ]

    def permits(self, asks: Sequence[Ask], spent: Sequence[Spent]) -> Grants:
        """See `Store.permits`. One statement, in a transaction of its own."""
        rows = self._run(
            "permits",
            asks=encode([ask._asdict() for ask in asks]),
            spent=encode([each._asdict() for each in spent]),
        )
        answer: dict[str, Any] = rows[0][0]
        granted = [
            Granted(tuple(Part(p["permits"], tuple(p["numbers"]), p["wait_s"]) for p in parts))
            for parts in answer["granted"]
        ]
        return Grants(answer["at"], granted, answer["wait_s"])

    def holdings(self, since: datetime | None = None) -> Iterator[Holding]:
        """See `Store.holdings`. Streams: a million jobs do not fill the memory."""
        return holdings(self.connections, since)

    def starts(self, since: datetime | None = None) -> Iterator[Start]:
        """See `Store.starts`. Streams: a million jobs do not fill the memory."""
        return starts(self.connections, since)
