"""X17: jobs that cannot be stored, decoded or called, or that kill their worker, fail alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.disasters import poison_kinds
from timeball.certify.disasters.poison_kinds import KILLS, LOADER, TAKES_A, name_of
from timeball.certify.kinds import NOTE
from timeball.certify.queries import query
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.client.sync import Client
from timeball.core.records import JobSpec
from timeball.core.states import TERMINAL
from timeball.errors import UsageError
from timeball.worker.child import Load

_LETHAL: Final = "lethal"
_LEASE_S: Final = 15.0
"""Longer than a busy machine may stand still: who has died is given up by its supervisor."""
_KEYS: Final = ("key", "unique")
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(poison_kinds.RETURNED, "failed, result"),
        **dict.fromkeys(poison_kinds.RAISED, "failed, permanent"),
        **dict.fromkeys(poison_kinds.SAID, "failed, permanent"),
        "raises what has no text": "failed, exhausted",
    }
)
SPOILT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "arguments are a list": "[1, 2]",
        "arguments are nothing": "null",
        "arguments have an endless number": '{"a": 1e100000}',
        "arguments are 10,000 lists in each other": f'{{"a": {"[" * 10_000}{"]" * 10_000}}}',
    }
)
"""What stands in the database in place of arguments that a client could have submitted."""

_REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"submitted with {what}": "InvalidPayload" for what in poison_kinds.VALUES},
        **{f"submitted with {what} as {role}": "UsageError"
           for what in poison_kinds.TEXTS for role in _KEYS},
    }
)  # fmt: skip


class Ward:
    """Bad jobs, and a good one before and after each."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.patients: dict[str, UUID] = {}
        self._neighbours: list[UUID] = []

    def add(self, what: str, kind: str, args: str = "{}", **fields: Any) -> None:
        """Submit one between two good ones."""
        specs = [
            JobSpec(uuid=uuid4(), kind=NOTE, **fields),
            JobSpec(uuid=uuid4(), kind=kind, args=args, max_retries=0, **fields),
            JobSpec(uuid=uuid4(), kind=NOTE, **fields),
        ]
        self.stage.submit(specs)
        self.patients[what] = specs[1].uuid
        self._neighbours += [specs[0].uuid, specs[2].uuid]

    def spoil(self, what: str, args: str) -> None:
        """Submit one, and write arguments for it that no client would."""
        self.add(what, TAKES_A, '{"a": 1}')
        self.stage.watcher.execute(query("spoil"), {"job": self.patients[what], "args": args})

    def told(self) -> dict[str, str]:
        """Return how each bad one has ended, and why."""
        found = {what: self.stage.store.get(uuid) for what, uuid in self.patients.items()}
        return {what: f"{job.state}, {job.reason}" for what, job in found.items()}

    def heard(self) -> bool:
        """Return whether something is kept of all that was said."""
        return all(self.stage.store.logs(self.patients[what]) for what in poison_kinds.SAID)

    def neighbours(self) -> list[str]:
        """Return all ways in which good ones have ended."""
        jobs = [self.stage.store.get(uuid) for uuid in self._neighbours]
        return sorted({f"{job.state} in {job.attempts}, {job.crashes} crashes" for job in jobs})


def submitted(client: Client) -> dict[str, str]:
    """Return how a client that submits what cannot be stored is refused."""
    values, told = poison_kinds.VALUES, {}
    for what, value in values.items():
        told[f"submitted with {what}"] = _refusal(partial(client.submit, TAKES_A, a=value()))
    for what, role in product(poison_kinds.TEXTS, _KEYS):
        options = {role: values[what]()}
        call = partial(client.submit, TAKES_A, a=1, **options)
        told[f"submitted with {what} as {role}"] = _refusal(call)
    return told


def _refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except UsageError as error:
        return type(error).__name__
    return "accepted"


def _filled(stage: Stage) -> Ward:
    ward = Ward(stage)
    for what in _REASONS:
        ward.add(what, name_of(what))
    for what, args in SPOILT.items():
        ward.spoil(what, args)
    ward.add("arguments have another name now", TAKES_A, '{"b": 1}')
    return ward


def run(stage: Stage) -> Outcome:
    """Run all bad jobs among good ones, and those that kill their worker in one of their own."""
    ward = _filled(stage)
    lethal = JobSpec(uuid=uuid4(), kind=KILLS, queue=_LETHAL)
    unknown = JobSpec(uuid=uuid4(), kind="nobody.knows", queue="default")
    stage.submit([lethal, unknown])
    loads = (Load(target="poison", loader=LOADER),)
    stage.workers(loads=loads, lease_s=_LEASE_S)
    stage.workers(loads=loads, lease_s=_LEASE_S, queues=(_LETHAL,))
    store, known = stage.store, {*stage.accepted} - {unknown.uuid}
    stage.until(lambda: store.ended(known) == known, "all others have ended")
    stage.until(ward.heard, "something is kept of what was said")
    stage.until(lambda: store.get(unknown.uuid).reason == "no_worker", "it is known to wait")
    waiting = str(store.get(unknown.uuid).state)
    stage.until(lambda: store.cancel(unknown.uuid) and store.get(unknown.uuid).state in TERMINAL,
                "it is cancelled")  # fmt: skip
    stage.drain()
    killed = store.get(lethal.uuid)
    seen = ward.told()
    return Outcome(
        expected={
            **_REASONS,
            **dict.fromkeys(SPOILT, "failed, undecodable"),
            **_REFUSED,
            "arguments have another name now": "failed, arguments",
            "kills its worker": "failed, quarantined after 3",
            "of a kind that nobody knows": "pending",
            "neighbours": ["succeeded in 1, 0 crashes"],
        },
        observed={
            **seen,
            **submitted(Client(stage.store)),
            "kills its worker": f"{killed.state}, {killed.reason} after {killed.crashes}",
            "of a kind that nobody knows": waiting,
            "neighbours": ward.neighbours(),
        },
        witness={"bad jobs": len(seen), "workers killed": killed.crashes},
    )


X17: Final = Scenario(
    id="X17",
    title="jobs that cannot be stored, decoded or called, and one that kills its workers",
    run=run,
    invariants=("I7", "I22"),
)
