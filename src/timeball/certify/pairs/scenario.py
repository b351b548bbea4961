"""PAIRS: what two verbs come to, however their statements alternate, is that of a serial order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, groupby
from typing import Any, Final

from timeball.certify.pairs.actors import Actor
from timeball.certify.pairs.scene import Scene
from timeball.certify.pairs.tables import Ledger, Tables
from timeball.certify.pairs.verbs import ALWAYS, CALLS, LOOSE, ROUNDS, verb_of
from timeball.certify.scenario import Check, Outcome, Profile, Scenario
from timeball.certify.sessions import until
from timeball.certify.stage import Stage
from timeball.store.postgres import PostgresStore

QUICK_PAIRS: Final = 60
"""So many are thrown by the seed in the quick profile; the others play all."""

PREEMPTIONS: Final = {Profile.QUICK: 1, Profile.FULL: 2, Profile.SOAK: 2}
"""So often one may be kept from going on that could, for the other one to go on."""

_SHOWN: Final = 10
_SPARED: Final = "accepted although the parent is gone"


@dataclass(frozen=True, slots=True)
class End:
    """What two verbs have come to."""

    order: tuple[int, ...]
    """Who took each step."""

    waited: int
    """How often one of them waited for a lock."""

    answers: tuple[str, str]
    tables: Tables

    @property
    def serial(self) -> bool:
        """Whether one had ended before the other one began."""
        return len([*groupby(self.order)]) <= len(self.answers)

    def equals(self, other: End) -> bool:
        """Return whether nobody could tell them apart."""
        return self.answers == other.answers and self.tables == other.tables

    def spares(self, other: End) -> bool:
        """Return whether all is as in `other`, but that what was submitted is there as well.

        Every row that is there besides is its own; there the submission was refused.
        """
        submitted = json.loads(self.answers[0])
        if not isinstance(submitted, list) or self.answers[1:] != other.answers[1:]:
            return False
        here, there = _rows(self.tables), _rows(other.tables)
        more = (row for _, row in here - there)
        return there <= here and all(any(each in row for each in submitted) for row in more)

    def told(self, other: End) -> str:
        """Return in what they differ."""
        apart = [f"answers {self.answers} for {other.answers}"] * (self.answers != other.answers)
        for table in sorted({*self.tables, *other.tables}):
            here, there = self.tables.get(table, ()), other.tables.get(table, ())
            if here != there:
                more, less = sorted({*here} - {*there}), sorted({*there} - {*here})
                apart.append(f"{table}: {more[:2]} for {less[:2]}")
        return "; ".join(apart)


@dataclass(slots=True)
class Tally:
    """What was seen of all pairs."""

    pairs: int = 0
    runs: int = 0
    alternating: int = 0
    waited: int = 0
    sent: set[str] = field(default_factory=set)
    odd: dict[tuple[str, str], str] = field(default_factory=dict)
    """Pairs with a run that equals no serial order, and in what it differs."""

    spared: set[tuple[str, str]] = field(default_factory=set)
    """Those of `LOOSE` with a run in which what was submitted is there without its parent."""


class Pairs:
    """Plays every two verbs on one scene, which is put back after each run."""

    def __init__(self, stage: Stage) -> None:
        self._scene = Scene(stage)
        self._ledger = Ledger(stage, self._scene.names())
        self._actors = [Actor(stage.dsn, stage.watcher) for _ in range(2)]
        self._bound = PREEMPTIONS[stage.terms.profile]
        self._rounds = PostgresStore(stage.dsn)
        self._lanes = frozenset(self._scene.store._lanes)  # noqa: SLF001 - as whoever has been at work
        self.tally = Tally()

    def close(self) -> None:
        """End both programs, and have the tables hold what they held at first."""
        for actor in self._actors:
            actor.close()
        self._rounds.close()
        self._ledger.put_back()

    def play(self, names: tuple[str, str]) -> None:
        """Play two verbs in every order of their statements, and judge what they come to."""
        ends = list(self._ends(names))
        serial = [end for end in ends if end.serial]
        others = [end for end in ends if not end.serial]
        for end in others:
            if any(end.equals(each) for each in serial):
                continue
            if names in LOOSE and any(end.spares(each) for each in serial):
                self.tally.spared.add(names)
            else:
                apart = " | ".join(end.told(each) for each in serial)
                self.tally.odd[names] = f"{names} in order {end.order}: {apart}"
        self.tally.pairs += 1
        self.tally.runs += len(ends)
        self.tally.alternating += len(others)
        self.tally.waited += sum(end.waited for end in others)

    def _ends(self, names: tuple[str, str]) -> Iterator[End]:
        """Yield what each order comes to that differs from the others by what could be chosen."""
        left: list[tuple[int, ...]] = [()]
        while left:
            prefix = left.pop()
            end, open_to = self._run(names, prefix)
            yield end
            changed = _changed(end.order, open_to, since=len(prefix))
            left += (order for order in changed if _preemptions(order, open_to) <= self._bound)

    def _run(
        self, names: tuple[str, str], prefix: Sequence[int]
    ) -> tuple[End, list[frozenset[int]]]:
        """Play one order: as the prefix says, then each as far as it can go."""
        self._ledger.put_back()
        for actor, name in zip(self._actors, names, strict=True):
            actor.start(self._call(name), self._lanes)
        order: list[int] = []
        open_to: list[frozenset[int]] = []
        waited = 0
        while enabled := self._enabled():
            wanted = prefix[len(order)] if len(order) < len(prefix) else (order or [0])[-1]
            chosen = wanted if wanted in enabled else min(enabled)
            open_to.append(enabled)
            order.append(chosen)
            self.tally.sent.add(self._actors[chosen].step())
            waited += self._actors[chosen].waits
            for actor in self._actors:
                actor.look()
        return End(tuple(order), waited, self._answers(names), self._tables(names)), open_to

    def _call(self, name: str) -> Callable[[PostgresStore], Any]:
        return lambda store: CALLS[name](store, self._scene)

    def _enabled(self) -> frozenset[int]:
        """Return who can take a step; wait where one is about to."""
        actors = self._actors

        def known() -> bool:
            for actor in actors:
                actor.look()
            return any(actor.at for actor in actors) or all(actor.done for actor in actors)

        until(known, "one of two verbs can go on")
        return frozenset(number for number, actor in enumerate(actors) if actor.at)

    def _answers(self, names: tuple[str, str]) -> tuple[str, str]:
        first, second = (
            "" if verb_of(name) in ROUNDS else json.dumps(actor.answer(), default=str)
            for name, actor in zip(names, self._actors, strict=True)
        )
        return first, second

    def _tables(self, names: tuple[str, str]) -> Tables:
        """Return what the tables hold, once what was passed over has had its next round."""
        for name in (*names, *ALWAYS):
            if verb_of(name) in ROUNDS:
                self._call(name)(self._rounds)
        in_order = not ROUNDS.intersection(map(verb_of, names))
        return self._ledger.tables(in_order=in_order)


def _rows(tables: Tables) -> Counter[tuple[str, str]]:
    return Counter((table, row) for table, rows in tables.items() for row in rows)


def _changed(
    order: tuple[int, ...], open_to: Sequence[frozenset[int]], *, since: int
) -> Iterator[tuple[int, ...]]:
    """Yield beginnings of orders in which the other one takes a step that it could have taken."""
    for at in range(since, len(order)):
        for other in open_to[at] - {order[at]}:
            yield (*order[:at], other)


def _preemptions(order: Sequence[int], open_to: Sequence[frozenset[int]]) -> int:
    """Return how often one could have gone on, and the other one did."""
    turns = zip(order, order[1:], open_to[1:], strict=False)
    return sum(one != other and one in enabled for one, other, enabled in turns)


def run(stage: Stage) -> Outcome:
    """Play the pairs of the profile."""
    every = list(combinations_with_replacement(CALLS, 2))
    quick = stage.terms.profile is Profile.QUICK
    chosen = stage.dice.shuffled(every)[:QUICK_PAIRS] if quick else every
    pairs = Pairs(stage)
    try:
        for names in chosen:
            pairs.play(names)
    finally:
        pairs.close()
    tally = pairs.tally
    loose, texts = LOOSE.intersection(chosen), list(tally.odd.values())
    return Outcome(
        expected={"pairs": len(chosen), _SPARED: sorted(map(list, loose))},
        observed={"pairs": tally.pairs, _SPARED: sorted(map(list, tally.spared))},
        witness={"alternating runs": tally.alternating, "waits for a lock": tally.waited},
        checks=(Check("serial", not texts, "; ".join(texts[:_SHOWN])),),
        measured={"runs": tally.runs, "statements": sorted(tally.sent)},
    )


PAIRS: Final = Scenario(
    id="PAIRS",
    title="every two verbs, in every order of their statements, come to what a serial order does",
    run=run,
    invariants=("I1", "I2", "I3", "I7", "I9"),
)
