from timeball.core.states import (
    FINAL_STATE,
    INITIAL,
    TERMINAL,
    TRANSITIONS,
    Ending,
    Event,
    State,
    allowed,
    mermaid,
    sources,
)


def test_every_state_can_be_reached() -> None:
    reached = set(INITIAL)
    while more := {b for (a, _), bs in TRANSITIONS.items() if a in reached for b in bs} - reached:
        reached |= more
    assert reached == set(State)


def test_every_state_can_come_to_an_end() -> None:
    ending = set(TERMINAL)
    while more := {a for (a, _), bs in TRANSITIONS.items() if bs & ending} - ending:
        ending |= more
    assert ending == set(State)


def test_only_an_operator_leaves_a_terminal_state() -> None:
    assert {event for state, event in TRANSITIONS if state in TERMINAL} == {Event.REVIVE}


def test_a_success_is_final() -> None:
    assert not any(allowed(State.SUCCEEDED, event) for event in Event)


def test_only_a_claim_starts_a_job() -> None:
    assert {e for (_, e), bs in TRANSITIONS.items() if State.RUNNING in bs} == {Event.CLAIM}
    assert sources(Event.CLAIM) == {State.PENDING}


def test_what_has_not_begun_can_always_be_cancelled() -> None:
    assert sources(Event.CANCEL) == INITIAL | {State.RUNNING}
    assert all(allowed(state, Event.CANCEL) == {State.CANCELLED} for state in INITIAL)


def test_every_event_is_used() -> None:
    assert all(sources(event) for event in Event)


def test_every_terminal_state_has_its_ending() -> None:
    assert set(FINAL_STATE.values()) == TERMINAL
    assert set(FINAL_STATE) < set(Ending)


def test_the_diagram_has_an_arrow_for_every_transition() -> None:
    arrows = [line for line in mermaid().splitlines() if "-->" in line]
    assert len(arrows) == len(INITIAL) + sum(map(len, TRANSITIONS.values()))
    assert "    pending --> running: claim" in arrows
