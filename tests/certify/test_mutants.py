"""Each defect of the durable product that is put in is seen by the check that is named for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from timeball.certify.databases import Databases
from timeball.certify.mutants.defects import InFunction, InStatement, Instead, replaced
from timeball.certify.mutants.durable import MUTANTS
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.mutants.matrix import chosen, matrix, observed
from timeball.certify.overlay import Drift, Patch
from timeball.certify.probes.probe import CodeProbe, Probe
from timeball.core.misfire import BOUND
from timeball.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "certify.md"
PROBES = {mutant.probe.name: mutant.probe for mutant in MUTANTS}


@pytest.fixture(scope="module")
def databases(server: str) -> Iterator[Databases]:
    databases = Databases(server)
    yield databases
    databases.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_the_code_as_it_is_passes_every_check(databases: Databases, name: str) -> None:
    assert observed(PROBES[name], databases) == PROBES[name].expected


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_is_seen_by_its_check(databases: Databases, mutant: DurableMutant) -> None:
    seen = observed(mutant.probe, databases, mutant.patches, mutant.code)
    assert seen != mutant.probe.expected, f"{mutant.id} survived: {mutant.defect}"


def test_the_list_is_whole() -> None:
    assert {mutant.id for mutant in MUTANTS} == {f"M{n:02}" for n in range(1, 54)}
    assert len({mutant.defect for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_page_tells_of_every_mutant_and_its_check(mutant: DurableMutant) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {mutant.id} ")]
    assert rows == [f"| {mutant.id} | {mutant.defect} | {mutant.probe.name} |"]


def test_each_has_what_its_check_can_use() -> None:
    for mutant in MUTANTS:
        if isinstance(mutant.probe, CodeProbe):
            assert mutant.code
            assert not mutant.patches
        else:
            assert mutant.patches
            assert not mutant.code


def test_what_is_not_there_exactly_once_has_drifted() -> None:
    assert replaced("a  b\n c", "b c", "x", "of a test") == "a  x"
    for text in ("a b", "b c, b c"):
        with pytest.raises(Drift, match=r"of a test has [02] times"):
            replaced(text, "b c", "x", "of a test")
    with pytest.raises(Drift):
        InFunction("claim", "no such text", "").changed()
    with pytest.raises(Drift), Instead("timeball.chance", "nothing", min).put_in(None):
        pass


def test_a_changed_statement_is_itself_again_afterwards() -> None:
    from timeball.store.postgres.connections import statement

    before = statement("beat")
    with InStatement("beat", "AND worker.ended_at IS NULL", "").put_in(None):
        assert "ended_at IS NULL" not in statement("beat")
    assert statement("beat") == before


def test_a_check_that_fails_without_the_defect_kills_nothing(databases: Databases) -> None:
    probe = Probe(name="of a test", run=lambda _: 1, expected=2)
    mutant = DurableMutant(id="M00", defect="none", probe=probe)
    (verdict,) = matrix([mutant], databases)
    assert (verdict.sound, verdict.killed) == (False, False)
    assert "UNSOUND" in str(verdict)


def test_a_defect_that_breaks_the_probe_itself_is_not_killed(databases: Databases) -> None:
    probe = CodeProbe(
        name="of a test",
        modules=("timeball.core.misfire",),
        run=lambda copies: copies["timeball.core.misfire"].BOUND,
        expected=BOUND,
    )
    broken = DurableMutant(
        id="M00",
        defect="none",
        probe=probe,
        code=(Patch("timeball.core.misfire", "plan", "no_such_name", ""),),
    )
    (verdict,) = matrix([broken], databases)
    assert (verdict.sound, verdict.killed) == (True, False)
    assert "SURVIVED" in str(verdict)


def test_mutants_are_chosen_by_their_ids() -> None:
    assert [mutant.id for mutant in chosen(["M02", "P01", "M02"])] == ["M02", "P01"]
    assert {mutant.id for mutant in chosen(["all"])} >= {"M01", "P26"}
    with pytest.raises(UsageError, match="no mutant M99: write all, or some of M01"):
        chosen(["M01", "M99"])
