"""Where a probe is carried out: a database, a client, workers, and a ledger of what jobs did."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from timeball.certify.peers.adapter import HOST, Driver
from timeball.certify.peers.adapters.bodies import Terms
from timeball.certify.peers.catalogue import BEAT_S, SILENT_S, Peer
from timeball.certify.queries import query
from timeball.store.postgres.connections import Connections

_LOOK_S: Final = 0.02
_ASK_S: Final = 0.2
_SLOTS: Final = 8
_RESTARTS: Final = 3
NANO: Final = 1e9


class Line(NamedTuple):
    """One line of the ledger."""

    what: str
    tag: str
    run: int
    pid: int
    at_ns: int


class Service:
    """A worker that is started again when it ends, as a service manager does it.

    Args:
        start: Starts one.
    """

    def __init__(self, start: Callable[[], Driver]) -> None:
        self._start = start
        self._driver = start()
        self._driver.answer()
        self.codes: list[int] = []
        """The exit codes of those that have ended."""

    def look(self) -> None:
        """Start another one where the last one has ended, but not for ever."""
        code = self._driver.ended
        if code is not None and len(self.codes) <= _RESTARTS:
            self.codes.append(code)
            if len(self.codes) <= _RESTARTS:
                self._driver = self._start()


class Bench:
    """What one probe of one product is lent; all of it is ended with `close`.

    Args:
        peer: The product.
        interpreter: Its own.
        dsn: Of an empty database.
        folder: An empty one.
        alone: Whether no two jobs may run at once, over all workers.
    """

    def __init__(
        self, peer: Peer, interpreter: Path, *, dsn: str, folder: Path, alone: bool = False
    ) -> None:
        self.peer = peer
        self.folder = folder
        self._interpreter = interpreter
        self._exits = ExitStack()
        self._services: list[Service] = []
        self._connections = Connections(dsn)
        self._exits.callback(self._connections.close)
        self._terms = Terms(
            dsn=_url(self._connections), folder=str(folder), slots=_SLOTS, beat_s=BEAT_S,
            silent_s=SILENT_S, alone=alone,
        )  # fmt: skip

    def close(self) -> None:
        """End all that was started, whatever state it is in."""
        self._exits.close()

    @cached_property
    def client(self) -> Driver:
        """What submits jobs and asks for them; the schema is made first."""
        driver = self._driver("serve", asdict(self._terms))
        driver.answer()
        return driver

    def service(self) -> Service:
        """Start a worker that is started again when it ends, whenever something is waited for."""
        assert self.client  # which has made the schema
        self._services.append(Service(lambda: self._driver("work", asdict(self._terms))))
        return self._services[-1]

    def workers(self, many: int = 1) -> list[Driver]:
        """Start workers and wait until each is about to look for jobs."""
        assert self.client  # which has made the schema
        drivers = [self._driver("work", asdict(self._terms)) for _ in range(many)]
        for driver in drivers:
            driver.answer()
        return drivers

    def fires(self, cases: Sequence[Mapping[str, str]]) -> list[list[str]]:
        """Return the instants of schedules: of `cron` in `zone` from `after` to `until` each."""
        found: list[list[str]] = self._driver("fires", {"cases": cases}).answer()["fires"]
        return found

    def about(self) -> dict[str, Any]:
        """Return the versions of the product and of its interpreter."""
        return self._driver("about", {}).answer()

    def submit(self, what: str, *tags: str) -> list[str]:
        """Submit a job for each tag and return what they are asked for by."""
        refs: list[str] = self.client.ask("submit", tags=tags, what=what)
        return refs

    def states(self, refs: Sequence[str]) -> list[str]:
        """Return what the product says of jobs now."""
        found: list[str] = self.client.ask("states", refs=refs)
        return found

    def ledger(self) -> list[Line]:
        """Return what jobs have noted, in the order of time."""
        path = self.folder / "ledger"
        rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        lines = [Line(what, tag, int(run), int(pid), int(at)) for what, tag, run, pid, at in rows]
        return sorted(lines, key=lambda line: line.at_ns)

    def noted(self, what: str, tag: str, run: int = 1) -> Line | None:
        """Return the line of that kind, where there is one."""
        found = (line for line in self.ledger() if line[:3] == (what, tag, run))
        return next(found, None)

    def let_go(self, tag: str, run: int) -> None:
        """Let a run that holds go on to its end."""
        (self.folder / f"go-{tag}-{run}").touch()

    def until(
        self, true: Callable[[], object], within_s: float, *, look_s: float = _LOOK_S
    ) -> bool:
        """Return whether something comes true within that time, looking every so often."""
        deadline = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline:
                return False
            for service in self._services:
                service.look()
            time.sleep(look_s)
        return True

    def settled(self, refs: Sequence[str], within_s: float) -> list[str]:
        """Return the states of jobs once all have ended, else those after that time."""
        under_way = {"waiting", "running"}
        self.until(lambda: not under_way & set(self.states(refs)), within_s, look_s=_ASK_S)
        return self.states(refs)

    def ask(self, name: str, **params: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement of ``certify/sql``."""
        with self._connections.borrowed() as connection:
            return list(connection.execute(query(name).encode(), params or None).fetchall())

    def _driver(self, verb: str, brief: dict[str, Any]) -> Driver:
        script = (str(HOST), self.peer.adapter, verb)
        driver = Driver(self._interpreter, script, brief, self.folder / "log")
        self._exits.callback(driver.close)
        return driver


def _url(connections: Connections) -> str:
    """Return the address of a database as the URL that all drivers know."""
    from urllib.parse import quote, urlencode

    with connections.borrowed() as connection:
        info = connection.info
        user, password = quote(info.user, safe=""), quote(info.password or "", safe="")
        place = urlencode({"host": info.host, "port": info.port})
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@/{quote(info.dbname, safe='')}?{place}"
