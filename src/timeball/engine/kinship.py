"""What the end of a job means for others: for those that come after it, and for who spawned it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from timeball.core.dependencies import ONE_OF, EdgesAnswer, Needs, Rule, Sentence, needs_of
from timeball.core.outcomes import Raised
from timeball.core.states import TERMINAL, Ending, State
from timeball.engine.due import Due
from timeball.engine.handles import Attempt, End, Work
from timeball.engine.runner import Spawning
from timeball.engine.tally import Tally
from timeball.errors import UsageError


class Kinship(ABC):
    """The part of the agenda that decides edges. Walks are loops: a chain may be long."""

    jobs: dict[int | str, Work]
    tally: Tally
    on_spawn: Callable[[int], None] | None
    _due: Due
    _decided: list[Work]
    """Parents that have ended and whose children are being told."""

    @abstractmethod
    def _admit(self, work: Work, now_ns: int) -> None: ...

    @abstractmethod
    def _enter(self, work: Work, now_ns: int) -> None: ...

    @abstractmethod
    def _close(self, work: Work, ending: Ending, reason: str, now_ns: int) -> None: ...

    def _link(self, work: Work, now_ns: int) -> None:
        more = work.with_more()
        more.needs = needs_of(more.after.values())
        for parent in more.after:
            if parent.state in TERMINAL:
                self._decide(work, parent, now_ns)
            else:
                parent.with_more().children.append(work)

    def add_edges(self, work: Work, after: Mapping[Work, Rule], now_ns: int) -> EdgesAnswer:
        """Have a job that waits for its parents wait for more of them.

        Raises:
            UsageError: One has another rule there already, or waits for the job itself.
        """
        more = work.more
        if work.state is not State.WAITING or more is None or more.turn > 1:
            return EdgesAnswer.REFUSED
        for parent, rule in after.items():
            if (known := more.after.get(parent, rule)) is not rule:
                text = f"job {parent.id} has the rule {known} there already"
                raise UsageError(f"{text}: leave it out, or write the same rule")
        new = {parent: rule for parent, rule in after.items() if parent not in more.after}
        path = _way(work, new)
        if path:
            raise UsageError(f"job {work.id} would wait for {_names(path)}: a cycle")
        assert more.needs is not None, "it was never linked"
        had_ones = not ONE_OF.isdisjoint(more.after.values())
        more.needs = more.needs.with_more(needs_of(new.values()), had_ones=had_ones)
        more.after = {**more.after, **new}
        for parent in new:
            if parent.state in TERMINAL:
                self._decide(work, parent, now_ns)
            else:
                parent.with_more().children.append(work)
        return EdgesAnswer.ADDED

    def _release(self, now_ns: int) -> None:
        # The list grows meanwhile by the children that are ruled out.
        for parent in self._decided:
            assert parent.more is not None
            for child in parent.more.children:
                self._decide(child, parent, now_ns)
            parent.more.children = []
        self._decided.clear()

    def _decide(self, child: Work, parent: Work, now_ns: int) -> None:
        """Tell a child that waits how one of its parents has ended."""
        more = child.with_more()
        sentence = more.told(parent) if child.state is State.WAITING else Sentence.WAIT
        if sentence is Sentence.RELEASE:
            self._free_child(child, more.due_ns, now_ns)
        elif sentence is not Sentence.WAIT:
            ending = Ending.SKIPPED if sentence is Sentence.SKIP else Ending.FAILED
            self._close(child, ending, f"job {parent.id} {parent.state}", now_ns)

    def _free_child(self, work: Work, due_ns: int, now_ns: int) -> None:
        self.tally.waiting -= 1
        if due_ns > now_ns:
            work.state = State.SCHEDULED
            self.tally.scheduled += 1
            self._due.add(due_ns, work)
        else:
            self._enter(work, now_ns)

    def _await(self, attempt: Attempt, said: Spawning, now_ns: int) -> Raised | None:
        """Take in what a job has spawned and have it wait for that; return why not, if not."""
        work = attempt.work
        path = _way(work, said.works)[1:]  # without the one that is only spawned now
        if path:
            text = f"job {work.id} spawns what waits for {_names(path)}: a cycle"
            return Raised(error_type="UsageError", error=text, again=False)
        attempt.end = End(Ending.AWAITED)
        more = work.with_more()
        more.kept, more.spawned = said.value, said.works
        more.turn += 1
        more.needs = Needs(len(said.works), 0, one_met=True)
        work.state = State.WAITING
        self.tally.waiting += 1
        if self.on_spawn is not None:
            self.on_spawn(len(said.works))
        for each in said.works:
            self._adopt(each, work, now_ns)
        return None

    def _adopt(self, spawned: Work, by: Work, now_ns: int) -> None:
        spawned.ready_ns = now_ns
        spawned.with_more().children.append(by)
        self.tally.open += 1
        self.jobs[spawned.id] = spawned
        self._admit(spawned, now_ns)


def _names(path: Iterable[Work]) -> str:
    return ", which waits for ".join(f"job {each.id}" for each in path)


def _way(work: Work, starts: Iterable[Work]) -> list[Work]:
    """Return the jobs over which one of `starts` waits for a job; none, if none does."""
    came_from: dict[Work, Work | None] = dict.fromkeys(starts)
    walk = list(came_from)
    for each in walk:  # grows meanwhile
        if each is work:
            break
        more = each.more
        if more is None or each.state is not State.WAITING:
            continue
        for parent in (*more.after, *more.spawned):
            if parent.state not in TERMINAL and parent not in came_from:
                came_from[parent] = each
                walk.append(parent)
    if work not in came_from:
        return []
    path: list[Work] = []
    step: Work | None = work
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]
