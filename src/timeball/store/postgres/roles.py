"""Who may do what in the schema: roles with the least rights that their programs need.

Every table, sequence, view and function is named here, once. What writes the ledger is a verb: it
runs with its owner's rights, so that nobody needs a right to write the tables that it keeps in
order. What only reads runs with the rights of its caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from timeball.store.postgres.connections import SCHEMA_DEFAULT, in_schema


class Role(StrEnum):
    """A role's name in the database, after the schema's and an underscore."""

    WORKER = "worker"
    CLIENT = "client"
    OPERATOR = "operator"
    READER = "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Some roles' rights to write a table, or some columns of it."""

    table: str
    rights: tuple[str, ...]
    columns: tuple[str, ...] = ()
    roles: tuple[Role, ...]

    @property
    def text(self) -> str:
        """The rights as SQL writes them."""
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return ", ".join(right + columns for right in self.rights)


_WORKER: Final = (Role.WORKER,)
_ASKING: Final = (Role.CLIENT, Role.OPERATOR)
_OPERATOR: Final = (Role.OPERATOR,)
_WRITING: Final = (Role.WORKER, *_ASKING)

TABLES: Final = (
    *("deadline", "deletion", "dependency", "ended", "entry", "event", "held", "home", "job"),
    *("lane", "lease", "limiter", "logged", "migration", "moved", "occurrence", "operation"),
    *("permit", "progress", "queue", "schedule", "slot", "unique_key", "worker"),
    *("jobs", "schedules"),  # views
)
"""Tables and views: every role reads them all."""

SEQUENCES: Final = (
    *("event_id_seq", "job_id_seq", "lane_id_seq", "operation_id_seq", "schedule_id_seq"),
    "worker_id_seq",
)
"""For the owner alone: only verbs take numbers."""

WRITES: Final = (
    Write(table="worker", rights=("UPDATE",), columns=("beat", "beat_at"), roles=_WORKER),
    Write(table="schedule", rights=("UPDATE",), roles=_WRITING),
    # To lock what is due; an id cannot be changed.
    Write(table="schedules", rights=("UPDATE",), columns=("id",), roles=_WORKER),
    Write(table="queue", rights=("INSERT", "UPDATE"), roles=_OPERATOR),
    Write(table="limiter", rights=("INSERT", "UPDATE", "DELETE"), roles=_OPERATOR),
    Write(table="operation", rights=("INSERT",), roles=_ASKING),
    Write(table="operation", rights=("UPDATE",), columns=("after", "ended_at"), roles=_ASKING),
)
"""The few rights to write that statements of ours need without a verb."""

READS: Final = (
    *(
        "ahead",
        "at_home",
        "batch_end",
        "batch_id",
        "batch_jobs",
        "batch_members",
        "batch_nodes",
        "check_deferred",
        "clock",
        "crashed",
        "depths",
        "descendants",
        "expected",
        "fates",
    ),
    *(
        "granted_by",
        "has_ended",
        "is_in_batch",
        "holds_key",
        "is_met",
        "latest_entry",
        "lease_turns",
        "limit_of",
        "line_of",
        "newest_leases",
    ),
    *(
        "next_opening",
        "now",
        "open_lanes",
        "open_runs",
        "overdue",
        "passed",
        "permit_ahead",
        "permit_full",
        "permit_most",
    ),
    *(
        "permit_offer",
        "permit_opens",
        "permit_room",
        "permit_soon",
        "permit_spend",
        "permit_take",
        "rate_line",
        "rate_of",
        "rated_kinds",
    ),
    *("rates_of", "running_turns", "runs_after", "sentence", "unique_name"),
    *("view_queues", "waiting_keys"),
)
"""Functions that write nothing of ours: every role may call them, with its own rights."""

VERBS: Final[Mapping[str, tuple[Role, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("claim", "expire", "lapse", "note", "permits"), _WORKER),
        **dict.fromkeys(("admit", "promote", "register", "settle", "spawn"), _WORKER),
        **dict.fromkeys(("trim_jobs", "trim_leases", "trim_permits"), _WORKER),
        **dict.fromkeys(("backfill", "cancel", "declare_schedule"), _ASKING),
        **dict.fromkeys(("call_back", "revive", "run_now", "submit"), _ASKING),
        **dict.fromkeys(("admit_keys", "ensure_lane", "fire", "link", "wake"), _WRITING),
        **dict.fromkeys(
            ("add_edges", "add_members", "cancel_many", "close_batch", "reopen"), _ASKING
        ),
        "move_in": (*_WORKER, *_OPERATOR),
        **dict.fromkeys(("delete_jobs", "move", "snooze"), _OPERATOR),
    }
)
"""Functions that write, with their owner's rights, and who may call them."""

PARTS: Final = (
    *(
        "await_spawned",
        "cancel_job",
        "change_lane",
        "check_cycle",
        "check_depth",
        "decide_edges",
        "deletable",
        "disown",
        "durable",
    ),
    *("enter_lane", "erase", "follow", "free_slots", "join_parents", "late_turns"),
    *("leave_lines", "line_up", "lock_graph", "note_runs", "replace_held", "replace_runs"),
    *("retake_keys", "set_free", "share_graph", "take_keys"),
    *("end_batch", "end_batches", "is_left", "lock_free", "start_again", "tell_waves"),
    *("take_slots", "tell_children", "unlink", "verdicts", "waits_for"),
)
"""Functions that verbs are made of: for the owner alone."""


def role_name(role: Role, schema: str = SCHEMA_DEFAULT) -> str:
    """Return what a role is called in the database.

    Raises:
        UsageError: The schema's name is not a plain lower-case identifier.
    """
    return f"{_checked(schema)}_{role}"


def seal(schema: str = SCHEMA_DEFAULT) -> str:
    """Return the SQL that follows every change of the schema's functions.

    PostgreSQL lets everybody call a new function; here nobody may who has not been named, and verbs
    have their owner's rights, on a search path that nobody else can put anything on.
    """
    verbs = [_filled("verb", schema, verb=verb) for verb in VERBS]
    return "".join([_filled("closed", schema), *verbs])


def grants(schema: str = SCHEMA_DEFAULT) -> str:
    """Return the SQL that makes the roles and gives each its rights, and no other.

    Raises:
        UsageError: The schema's name is not a plain lower-case identifier.
    """
    parts = [_filled("role", schema, role=role_name(role, schema)) for role in Role]
    parts.append(_filled("clear", schema, roles=_names(Role, schema)))
    parts += [_filled("read", schema, table=table, roles=_names(Role, schema)) for table in TABLES]
    parts += [
        _filled(
            "write",
            schema,
            rights=write.text,
            table=write.table,
            roles=_names(write.roles, schema),
        )
        for write in WRITES
    ]
    parts += [
        _filled("call", schema, function=function, roles=_names(roles, schema))
        for function, roles in {**dict.fromkeys(READS, tuple(Role)), **VERBS}.items()
    ]
    return "".join(parts)


def _checked(schema: str) -> str:
    return in_schema("timeball;", schema).removesuffix(";")


def _names(roles: Iterable[Role], schema: str) -> str:
    return ", ".join(role_name(role, schema) for role in roles)


def _filled(name: str, schema: str, **words: str) -> str:
    """Return the text of ``rights/<name>.sql`` with words of this module in it."""
    text = (files(__package__) / "rights" / f"{name}.sql").read_text("utf-8")
    return text.format(schema=_checked(schema), **words)
