"""The text for Prometheus, read back by its own client's parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from timeball.observe import families
from timeball.observe.board import Key
from timeball.observe.exposition import exposition
from timeball.observe.families import FAMILIES, Family, Form

counts = st.integers(0, 1 << 45)
# Prometheus splits its text at line feeds; the parser in Python at what Python calls a line too.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from("\n"))


@st.composite
def samples(draw: st.DrawFn) -> dict[Key, list[int]]:
    drawn: dict[Key, list[int]] = {}
    for family in draw(st.lists(st.sampled_from(FAMILIES), unique=True)):
        labels = tuple(draw(texts) for _ in family.labels)
        drawn[family.name, labels] = [draw(counts) for _ in range(16)]
    return drawn


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample, by its name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def expected(
    family: Family, labels: tuple[str, ...], numbers: list[int]
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    pairs = [*zip(family.labels, labels, strict=True)]
    name, counted = family.name, numbers[1 : family.cells]
    if family.form in {Form.COUNTER, Form.GAUGE}:
        return {(name, frozenset(pairs)): numbers[0] / family.scale}
    bounds = [*(bound / family.scale for bound in family.bounds), float("inf")]
    found = {
        (f"{name}_sum", frozenset(pairs)): numbers[0] / family.scale,
        (f"{name}_count", frozenset(pairs)): float(sum(counted)),
    }
    if family.form is Form.HISTOGRAM:
        for place, bound in enumerate(bounds):
            text = "+Inf" if bound == float("inf") else _as_bound(family, place)
            key = (f"{name}_bucket", frozenset([*pairs, ("le", text)]))
            found[key] = float(sum(counted[: place + 1]))
    return found


def _as_bound(family: Family, place: int) -> str:
    bound = family.bounds[place]
    return str(bound) if family.scale == 1 else repr(bound / family.scale)


@given(samples())
def test_the_official_parser_reads_what_was_counted(drawn: dict[Key, list[int]]) -> None:
    by_name = {family.name: family for family in FAMILIES}
    wanted = {}
    for (name, labels), numbers in drawn.items():
        wanted |= expected(by_name[name], labels, numbers)
    assert parsed(exposition(drawn)) == wanted


def test_every_family_says_what_it_is_and_of_what_type() -> None:
    drawn: dict[Key, list[int]] = {
        (family.name, tuple("x" for _ in family.labels)): [0] * 16 for family in FAMILIES
    }
    found = {each.name: each for each in text_string_to_metric_families(exposition(drawn))}
    for family in FAMILIES:
        told = found[family.name.removesuffix("_total")]
        assert (told.type, told.documentation) == (family.form.value, family.says)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_name_tells_what_is_counted_and_in_which_unit(family: Family) -> None:
    assert family.name.startswith("timeball_")
    assert family.name.endswith("_total") == (family.form is Form.COUNTER)
    assert family.name.endswith("_seconds") == (family.scale == families.NS_PER_S)
    assert list(family.bounds) == sorted(set(family.bounds))
    assert "\n" not in family.says


def test_nothing_counted_is_nothing_told() -> None:
    assert exposition({}) == ""


def test_no_label_breaks_out_of_its_quotes() -> None:
    evil = 'a"} 1\nfake_total 99\n# HELP x \\'
    text = exposition({(families.SNOOZES.name, (evil,)): [7]})
    assert [line for line in text.splitlines() if line.startswith("fake")] == []
    assert list(parsed(text).values()) == [7.0]
