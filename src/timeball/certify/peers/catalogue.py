"""The products that the probes are for: pinned versions, and how each is set up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from timeball.errors import UsageError

BEAT_S: Final = 2
SILENT_S: Final = 6
"""The times that every product is given where it has them, so that the probes end."""

_ABANDONED: Final = 'the outcome of a job whose worker has stopped unexpectedly is "abandoned"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One product."""

    name: str
    """As it is asked for."""

    adapter: str
    """The script of `adapters` that drives it."""

    requirements: tuple[str, ...] = ()
    """What pip installs into its environment; none: it runs on this interpreter."""

    configuration: str
    """How it is set up, in the words of its own documentation."""

    intended: tuple[tuple[str, str], ...] = ()
    """Probe and what the product's documentation says of what is seen there, where it does."""

    @property
    def own(self) -> bool:
        """Return whether it is Timeball itself."""
        return not self.requirements


TIMEBALL: Final = Peer(
    name="timeball",
    adapter="with_timeball",
    configuration=f"timeball worker --lease {SILENT_S}s; polls every 1 s, as by default",
    intended=(
        ("dst", "the policy by default: the first instant after a gap, the first pass of a fold"),
    ),
)
PROCRASTINATE: Final = Peer(
    name="procrastinate",
    adapter="with_procrastinate",
    requirements=("procrastinate==3.10.0", "psycopg[binary]"),
    configuration=(
        f"update_heartbeat_interval={BEAT_S}, stalled_worker_timeout={SILENT_S}, a periodic task "
        f"every {BEAT_S} s that retries what get_stalled_jobs finds; polls every 5 s, as by default"
    ),
)
PGQUEUER: Final = Peer(
    name="pgqueuer",
    adapter="with_pgqueuer",
    requirements=("pgqueuer==1.6.0", "asyncpg"),
    configuration=f"heartbeat_timeout={SILENT_S} s; dequeue_timeout=30 s, as by default",
    intended=(
        ("zombie", "a job may run twice, and must be idempotent; there is no fencing (ADR-0004)"),
        ("listener", "shutdown_on_listener_failure=True, which was not set, ends such a worker"),
    ),
)
CHANCY: Final = Peer(
    name="chancy",
    adapter="with_chancy",
    requirements=("chancy[cron]==0.26.0", "psycopg[binary]"),
    configuration=(
        f"Worker(heartbeat_poll_interval={BEAT_S}, heartbeat_timeout={SILENT_S}), "
        f"Recovery(poll_interval={BEAT_S}), Leadership(poll_interval={BEAT_S}, "
        f"timeout={SILENT_S}), the async executor; polls every 5 s, as by default"
    ),
    intended=(
        ("zombie", "late updates from the old claim are discarded (Recovery)"),
        ("dst", "a fixed time runs at the end of a gap, and once in a fold (Cron)"),
    ),
)
APSCHEDULER: Final = Peer(
    name="apscheduler",
    adapter="with_apscheduler",
    requirements=(  # with the libraries of its time: it does not notify with anyio 4.16
        "apscheduler==4.0.0a6",
        "anyio==4.9.0",
        "asyncpg==0.30.0",
        "sqlalchemy[asyncio]==2.0.40",
    ),
    configuration=(
        f"4.0 alpha: AsyncScheduler(cleanup_interval={BEAT_S} s, lease_duration={SILENT_S} s) with "
        "SQLAlchemyDataStore and AsyncpgEventBroker, with anyio 4.9; schedulers are told of jobs"
    ),
    intended=(
        ("zombie", _ABANDONED),
        ("kill", _ABANDONED),
        (
            "dst",
            "that of 3.x says it may fire more or less often at a jump, and that this is no bug",
        ),
    ),
)
PEERS: Final = (TIMEBALL, PROCRASTINATE, PGQUEUER, CHANCY, APSCHEDULER)


def chosen(names: str) -> tuple[Peer, ...]:
    """Return the products of a list of names, or all; Timeball comes first.

    Raises:
        UsageError: There is no adapter for such a name.
    """
    wanted = {name.strip() for name in names.split(",")}
    known = {peer.name: peer for peer in PEERS}
    if wanted == {"all"}:
        return PEERS
    if strangers := sorted(wanted - known.keys()):
        raise UsageError(f"no probes for {', '.join(strangers)}: write all, or {', '.join(known)}")
    return tuple(peer for peer in PEERS if peer.name in wanted)
