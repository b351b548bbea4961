"""The matrix of mutants: each is put in alone, and the check that it names must see it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Final

from timeball.certify.databases import Databases
from timeball.certify.mutants import durable, in_process
from timeball.certify.mutants.defects import Defect, Planted
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.mutants.record import Mutant
from timeball.certify.mutants.verdicts import Verdict
from timeball.certify.overlay import Overlay, Patch
from timeball.certify.probes.probe import CodeProbe, Probe
from timeball.certify.schedules import first_failure, mixed
from timeball.certify.stage import Stage, Terms
from timeball.certify.story import Outcome
from timeball.certify.trial import Scenario, engine_copies
from timeball.errors import UsageError

MUTANTS: Final[tuple[DurableMutant | Mutant, ...]] = (*durable.MUTANTS, *in_process.MUTANTS)
ALL: Final = "all"

_SCHEDULES_MAX: Final = 1_000
"""To find a defect of the in-process engine."""
_SCHEDULES_SOUND: Final = 20
"""Of each scenario that has none; the tests go through many more."""


def chosen(ids: Iterable[str]) -> tuple[DurableMutant | Mutant, ...]:
    """Return the mutants of some ids; "all" stands for each of them.

    Raises:
        UsageError: An id is not known.
    """
    wanted, known = list(ids), {mutant.id: mutant for mutant in MUTANTS}
    if wanted == [ALL]:
        return MUTANTS
    unknown = [each for each in wanted if each not in known]
    if unknown:
        raise UsageError(
            f"no mutant {', '.join(unknown)}: write all, or some of {', '.join(known)}"
        )
    return tuple(known[each] for each in dict.fromkeys(wanted))


def matrix(
    mutants: Sequence[DurableMutant | Mutant],
    databases: Databases,
    say: Callable[[str], None] = lambda _text: None,
) -> list[Verdict]:
    """Put each mutant in, alone, and return what its check made of it.

    Args:
        mutants: Which.
        databases: Where the probes that need one have a database of their own.
        say: Told a line of progress at a time.
    """
    sound: dict[str, bool] = {}
    verdicts = []
    for mutant in mutants:
        told = (
            _durable(mutant, databases, sound)
            if isinstance(mutant, DurableMutant)
            else _in_process(mutant, sound)
        )
        verdicts.append(told)
        say(str(told))
    return verdicts


def observed(
    probe: Probe | CodeProbe,
    databases: Databases,
    patches: Sequence[Defect] = (),
    code: Sequence[Patch] = (),
) -> Any:
    """Return what a probe sees, with some defects put in."""
    if isinstance(probe, CodeProbe):
        return probe.run(Overlay(probe.modules, patches=code))
    folder = Path(tempfile.mkdtemp(prefix="timeball-probe-"))
    try:
        with databases.lent() as dsn, ExitStack() as exits:
            boots = tuple(each.boot for each in patches if isinstance(each, Planted))
            stage = Stage(dsn, folder, Terms(deadline_s=30.0, boots=boots), probe.name)
            exits.callback(stage.close)
            for patch in patches:
                exits.enter_context(patch.put_in(stage.watcher))
            return probe.run(stage)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _durable(mutant: DurableMutant, databases: Databases, sound: dict[str, bool]) -> Verdict:
    began, probe = time.monotonic(), mutant.probe
    if probe.name not in sound:
        sound[probe.name] = observed(probe, databases) == probe.expected
    failed = False
    try:
        seen = observed(probe, databases, mutant.patches, mutant.code)
    except Exception as error:  # noqa: BLE001 - whatever it is, no check has seen the defect
        seen, failed = f"{type(error).__name__}: {error}", True
    return Verdict(
        id=mutant.id,
        defect=mutant.defect,
        check=probe.name,
        sound=sound[probe.name],
        killed=sound[probe.name] and not failed and seen != probe.expected,
        seen=seen,
        wall_s=time.monotonic() - began,
    )


def _in_process(mutant: Mutant, sound: dict[str, bool]) -> Verdict:
    began, scenario = time.monotonic(), mutant.scenario
    if scenario.name not in sound:
        sound[scenario.name] = first_failure(_some(scenario)) is None
    copies = mutant.copies()
    outcomes = mixed(lambda chooser: mutant.run(copies, chooser))
    failure = first_failure(islice(outcomes, _SCHEDULES_MAX))
    return Verdict(
        id=mutant.id,
        defect=mutant.defect,
        check=mutant.check,
        sound=sound[scenario.name],
        killed=sound[scenario.name] and failure is not None and failure.check == mutant.check,
        seen=None if failure is None else failure.text,
        wall_s=time.monotonic() - began,
    )


def _some(scenario: Scenario) -> Iterator[Outcome]:
    copies = engine_copies()
    return islice(mixed(lambda chooser: scenario.run(copies, chooser)), _SCHEDULES_SOUND)
