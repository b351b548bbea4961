"""What importers find, and a schedules.toml holds, as schedules of `up`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from timeball.action.own_kinds import own_kind
from timeball.action.registry import DEFAULT
from timeball.cli.declaration import Asked, Declared, Fault, Reading
from timeball.cli.declared_crontab import known_user, owner
from timeball.cli.found_kinds import LOADER, command_facts
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.redaction import redacted
from timeball.errors import InvalidSchedule, UsageError
from timeball.importers.crontab import UserInfo
from timeball.importers.found import GRAPH, CommandCall, Findings, Found, KindCall
from timeball.importers.redaction import redacted_call
from timeball.worker.child import Load

_UNKNOWN_KINDS: Final = "no file given here defines them: their jobs wait for a worker that does"
_UNKNOWN_KIND: Final = "no file given here defines its kind: its jobs wait for a worker that does"


def declare_findings(reading: Reading, path: Path, findings: Findings, asked: Asked) -> None:
    """Add what was found in a file; whatever needs a person is a fault.

    A kind that no file has defined is left to other workers, and its schedule says so.
    """
    reading.faults += [
        Fault(str(path), each.line, redacted(each.name), each.text) for each in findings.all_needs()
    ]
    tz = asked.tz if asked.tz_given or findings.default_tz is None else findings.default_tz
    adding = _Adding(path, tz, asked)
    reading.add(adding.declared(reading, findings))
    reading.sources.append(adding.source)
    if adding.commands:
        options = {"commands": adding.commands}
        reading.loads.append(Load(target=str(path.resolve()), loader=LOADER, options=options))


def _strangers(kinds: Iterable[str]) -> list[str]:
    """Return the kinds that nothing given here has defined."""
    return sorted({kind for kind in kinds if (own_kind(kind) or DEFAULT.get(kind)) is None})


class _Adding:
    """The walk over one file's findings."""

    def __init__(self, path: Path, tz: str, asked: Asked) -> None:
        self.source = f"file:{path.resolve()}"
        self.commands: list[dict[str, Any]] = []
        self._path = path
        self._tz = tz
        self._asked = asked

    def declared(self, reading: Reading, findings: Findings) -> Iterator[Declared]:
        """Give the schedules; what is wrong with one is a fault of the reading."""
        for found in findings.found:
            if not found.holds:
                continue
            try:
                yield self._schedule(reading, found)
            except UsageError as error:
                reading.faults.append(
                    Fault(str(self._path), found.line, redacted(found.name), redacted(str(error)))
                )

    def _schedule(self, reading: Reading, found: Found) -> Declared:
        notes = list(found.notes)
        match found.runs:
            case KindCall(kind=kind, args=args):
                known = not _strangers([kind])
                if not known:
                    notes.append(_UNKNOWN_KIND)
                jobs = args.get("jobs", {}) if kind == GRAPH else {}
                if strangers := _strangers(str(job.get("kind")) for job in jobs.values()):
                    notes.append(f"{', '.join(strangers)}: {_UNKNOWN_KINDS}")
                reading.queues |= {str(job["queue"]) for job in jobs.values() if "queue" in job}
            case CommandCall():
                kind, args, known = self._command(found, found.runs, notes), {}, True
        options = found.options.given()
        paused = options.pop("paused", False)
        if paused:
            notes.append("paused: it runs once it is resumed with timeball cron resume")
        tz = self._tz if found.tz is None else found.tz
        spec = schedule_spec(
            *(found.name, kind),
            cron=found.expression,
            tz=tz,
            args=args,
            source=self.source,
            **options,
        )
        if known:
            reading.queues.add(spec.queue)
        return Declared(
            spec=spec,
            table=agenda_of(spec),
            place=f"{self._path}:{found.line}",
            does=redacted_call(found.runs),
            notes=tuple(notes),
            paused=paused,
        )

    def _command(self, found: Found, call: CommandCall, notes: list[str]) -> str:
        """Have the workers know a command; return its kind."""
        account = owner() if call.user is None else self._account(call.user, notes)
        facts = command_facts(found.name, found.line, call, account)
        self.commands.append(facts)
        kind: str = facts["name"]
        return kind

    def _account(self, user: str, notes: list[str]) -> UserInfo:
        """Return the account of a user; a dry run may be about another machine."""
        try:
            account = known_user(user)
            why = f"there is no user {user} here: create it, or write another one"
        except InvalidSchedule as error:
            account, why = None, str(error)
        if account is not None:
            return account
        if not self._asked.dry_run:
            raise UsageError(why)
        notes.append(f"on this machine it will not start: {why}")
        return UserInfo(name=user, home="/")
