"""What is wrong with an installation: findings, each with the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Final, NamedTuple

OLD_S: Final = 60.0
"""A transaction that has been open for longer is worth a word."""

_NAMED_MAX: Final = 5
_OLDEST_SERVER: Final = 140_000
_FULL, _CROWDED = 0.9, 0.75
_DEAD_MIN: Final = 10_000
_DEAD_SHARE: Final = 0.5
_SKEW_S: Final = 1.0
_SKEW_BAD_S: Final = 30.0
_LATE_S: Final = 30.0
_VERY_OLD: Final = 10.0
"""So many times as old as what is worth a word is trouble."""


class Severity(StrEnum):
    """How bad a finding is, from nothing to what needs somebody now."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    TROUBLE = "trouble"


class Finding(NamedTuple):
    """What one check has found."""

    check: str
    severity: Severity
    evidence: str
    mend: str = ""
    """The command that mends it, or what to write; empty where nothing is to be done."""


class Server(NamedTuple):
    """What the server says of itself."""

    version: str
    version_num: int
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    autovacuum: str
    max_connections: int
    is_replica: bool
    connections: int
    sees_all: bool
    """Whether this user sees what other users' sessions do."""


class Holder(NamedTuple):
    """What keeps dead rows from being taken away."""

    kind: str
    """Session or prepared."""

    name: str
    owner: str
    program: str
    age_s: float


class Table(NamedTuple):
    """A table with its rows, as the server has counted them."""

    name: str
    live: int
    dead: int


class Stuck(NamedTuple):
    """A worker whose lease has run out, and that nobody has given up."""

    name: str
    id: int
    silent_s: float
    lease_s: float


class Standing(NamedTuple):
    """How a schedule stands."""

    name: str
    state: str
    error: str
    late_s: float | None
    zone_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the checks look at."""

    server: Server
    skew_s: float
    """By how much the server's clock is ahead of this process's."""

    skew_error_s: float
    schema: str
    """What it is called."""

    mismatch: str
    """Why the schema does not fit this release; empty where it does."""

    proxied: bool
    """Whether a pooling proxy stands before the server."""

    zone_version: str
    """Of this process."""

    holders: Sequence[Holder] = ()
    lacking: Sequence[str] = ()
    """Indexes that are not there."""

    unfinished: Sequence[str] = ()
    """Indexes that no statement uses."""

    tables: Sequence[Table] = ()
    kinds: Sequence[tuple[str, int]] = ()
    """Those that nobody knows, with how many jobs wait for each."""

    stuck: Sequence[Stuck] = ()
    schedules: Sequence[Standing] = ()


def diagnosed(facts: Facts, *, old_s: float = OLD_S) -> list[Finding]:
    """Return what every check has found, the worst first.

    Args:
        facts: All that they look at.
        old_s: How many seconds a transaction may be open before it is told.
    """
    checks = [check for check in _CHECKS if not (facts.mismatch and check in _INSIDE)]
    found = [finding for check in checks for finding in check(facts)]
    found += _held(facts, old_s)
    order = list(Severity)
    return sorted(found, key=lambda finding: -order.index(finding.severity))


def _version(facts: Facts) -> Iterator[Finding]:
    server = facts.server
    if server.version_num < _OLDEST_SERVER:
        told = f"PostgreSQL {server.version}: older than any that is tested"
        yield Finding("server", Severity.TROUBLE, told, "upgrade to PostgreSQL 14 or newer")
    elif server.is_replica:
        told = "this is a replica, or a server that recovers: nothing can be written"
        yield Finding("server", Severity.TROUBLE, told, "connect to the primary")
    else:
        yield Finding("server", Severity.OK, f"PostgreSQL {server.version}")


def _durable(facts: Facts) -> Iterator[Finding]:
    server = facts.server
    for name in ("fsync", "full_page_writes"):
        if getattr(server, name) == "off":
            told = f"{name} is off: a crash of the machine can ruin the whole database"
            yield Finding("durability", Severity.TROUBLE, told, _turned_on(name))
    if server.synchronous_commit == "off":
        told = "synchronous_commit is off here: a crash loses what was committed just before it"
        yield Finding("durability", Severity.WARNING, told, _turned_on("synchronous_commit"))
    elif server.fsync == server.full_page_writes == "on":
        told = (
            f"fsync and full_page_writes are on, synchronous_commit is {server.synchronous_commit}"
        )
        yield Finding("durability", Severity.OK, told)


def _vacuumed(facts: Facts) -> Iterator[Finding]:
    if facts.server.autovacuum == "off":
        told = "off: tables only grow"
        yield Finding("autovacuum", Severity.TROUBLE, told, _turned_on("autovacuum"))
    else:
        yield Finding("autovacuum", Severity.OK, "on")


def _connected(facts: Facts) -> Iterator[Finding]:
    used, most = facts.server.connections, facts.server.max_connections
    told = f"{used} of {most} connections are in use"
    if used < _CROWDED * most:
        yield Finding("connections", Severity.OK, told)
        return
    severity = Severity.TROUBLE if used >= _FULL * most else Severity.WARNING
    mend = f'psql -c "ALTER SYSTEM SET max_connections = {2 * most}"  # from the next restart on'
    yield Finding("connections", severity, told, mend)


def _held(facts: Facts, old_s: float) -> Iterator[Finding]:
    unseen = "" if facts.server.sees_all else "; other users' sessions are hidden from this one"
    for kind, check in (("session", "snapshots"), ("prepared", "prepared transactions")):
        old = [one for one in facts.holders if one.kind == kind and one.age_s >= old_s]
        for one in old[:_NAMED_MAX]:
            program = f" ({one.program})" if one.program else ""
            told = f"{kind} {one.name} of {one.owner}{program} has been open for {one.age_s:,.0f} s"
            severity = Severity.WARNING if one.age_s < _VERY_OLD * old_s else Severity.TROUBLE
            why = ": no row that has died since can be taken away"
            yield Finding(check, severity, told + why, _ended(one))
        if not old:
            none = f"none has been open for {old_s:,.0f} s"
            yield Finding(check, Severity.OK, none + (unseen if kind == "session" else ""))


def _fitting(facts: Facts) -> Iterator[Finding]:
    if facts.mismatch:
        yield Finding("schema", Severity.TROUBLE, facts.mismatch, "timeball db migrate")
    else:
        yield Finding("schema", Severity.OK, "is that of this release")


def _indexed(facts: Facts) -> Iterator[Finding]:
    if facts.lacking:
        told = f"not there: {_named(facts.lacking)}; statements read whole tables instead"
        mend = "timeball db migrate --sql  # prints how each is made: run those that lack"
        yield Finding("indexes", Severity.TROUBLE, told, mend)
    if facts.unfinished:
        told = f"not whole: {_named(facts.unfinished)}; no statement uses them"
        mend = f'psql -c "REINDEX INDEX CONCURRENTLY {facts.schema}.{facts.unfinished[0]}"'
        yield Finding("indexes", Severity.TROUBLE, told, mend)
    if not facts.lacking and not facts.unfinished:
        yield Finding("indexes", Severity.OK, "all are there and whole")


def _clean(facts: Facts) -> Iterator[Finding]:
    dirty = [one for one in facts.tables if one.dead >= max(_DEAD_MIN, _DEAD_SHARE * one.live)]
    for one in dirty[:_NAMED_MAX]:
        told = f"{one.name}: {one.dead:,} dead rows beside {one.live:,} that live"
        mend = f'psql -c "VACUUM (ANALYZE) {facts.schema}.{one.name}"'
        yield Finding("dead rows", Severity.WARNING, told, mend)
    if not dirty:
        yield Finding("dead rows", Severity.OK, "few in every table")


def _clock(facts: Facts) -> Iterator[Finding]:
    apart, error = facts.skew_s, facts.skew_error_s
    told = f"ahead of this process by {apart:.3f} s, give or take {error:.3f} s"
    if abs(apart) - error < _SKEW_S:
        yield Finding("clock", Severity.OK, told)
        return
    severity = Severity.WARNING if abs(apart) < _SKEW_BAD_S else Severity.TROUBLE
    yield Finding("clock", severity, told, "chronyc tracking  # on both machines")


def _zoned(facts: Facts) -> Iterator[Finding]:
    here = facts.zone_version
    others = {one.zone_version for one in facts.schedules} - {here}
    if not here:
        told = "the zone data of this machine do not say which they are"
        yield Finding("zone data", Severity.WARNING, told, "pip install --upgrade tzdata")
    elif others:
        told = f"{here} here; schedules were computed with {_named(sorted(others))}"
        yield Finding("zone data", Severity.NOTE, told, "pip install --upgrade tzdata")
    else:
        yield Finding("zone data", Severity.OK, here)


def _known(facts: Facts) -> Iterator[Finding]:
    if facts.kinds:
        told = _named([f"{kind} ({jobs:,})" for kind, jobs in facts.kinds])
        mend = "timeball worker -a FILE.py  # a file that defines them"
        yield Finding("kinds", Severity.WARNING, f"no worker knows {told}: their jobs wait", mend)
    else:
        yield Finding("kinds", Severity.OK, "no job waits for a kind that nobody knows")


def _alive(facts: Facts) -> Iterator[Finding]:
    for one in facts.stuck[:_NAMED_MAX]:
        told = (
            f"{one.name} #{one.id} has been silent for {one.silent_s:,.0f} s, its lease is "
            f"{one.lease_s:g} s, and nobody has given its jobs to others"
        )
        mend = "timeball worker -a FILE.py  # any worker that lives gives them back"
        yield Finding("workers", Severity.TROUBLE, told, mend)
    if not facts.stuck:
        yield Finding("workers", Severity.OK, "no lease has run out unseen")


def _firing(facts: Facts) -> Iterator[Finding]:
    wrong = [one for one in facts.schedules if one.state == "error"]
    late = [one for one in facts.schedules if (one.late_s or 0.0) > _LATE_S]
    paused = [one.name for one in facts.schedules if one.state == "paused"]
    for one in wrong[:_NAMED_MAX]:
        told = f"{one.name} does not fire: {one.error}"
        yield Finding("schedules", Severity.TROUBLE, told, f"timeball cron show {quote(one.name)}")
    for one in late[:_NAMED_MAX]:
        told = f"{one.name} has been due for {one.late_s:,.0f} s, and nobody has decided it"
        yield Finding("schedules", Severity.TROUBLE, told, "timeball worker -a FILE.py")
    if paused:
        mend = f"timeball cron resume {quote(paused[0])}"
        yield Finding("schedules", Severity.NOTE, f"paused: {_named(paused)}", mend)
    if not (wrong or late or paused):
        yield Finding("schedules", Severity.OK, f"all {len(facts.schedules)} are decided in time")


def _proxy(facts: Facts) -> Iterator[Finding]:
    if facts.proxied:
        told = "there is one: workers are not woken through it, and look again by and by"
        yield Finding(
            "pooling proxy",
            Severity.NOTE,
            told,
            "export TIMEBALL_LISTEN_DSN=postgresql://THE_SERVER_ITSELF",
        )
    else:
        yield Finding("pooling proxy", Severity.OK, "none: the server itself answers")


def _turned_on(setting: str) -> str:
    return f'psql -c "ALTER SYSTEM SET {setting} = on" -c "SELECT pg_reload_conf()"'


def _ended(holder: Holder) -> str:
    if holder.kind == "session":
        return f'psql -c "SELECT pg_terminate_backend({holder.name})"'
    name = holder.name.replace("'", "''")
    return "psql -c " + quote(f"ROLLBACK PREPARED '{name}'") + "  # or COMMIT PREPARED"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


_CHECKS: Final[Sequence[Callable[[Facts], Iterator[Finding]]]] = (
    *(_version, _durable, _vacuumed, _connected, _fitting, _indexed, _clean, _clock, _zoned),
    *(_known, _alive, _firing, _proxy),
)
_INSIDE: Final = frozenset({_indexed, _clean, _known, _alive, _firing})
"""Of what is in the schema: where it does not fit, nothing of it has been looked at."""
