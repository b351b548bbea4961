from pathlib import Path

from timeball.core.states import State, mermaid

PAGE = Path("docs/concepts/states.md")


def test_the_picture_of_the_states_is_the_one_that_the_table_gives() -> None:
    _, _, rest = PAGE.read_text().partition("```mermaid\n")
    assert rest.partition("\n```")[0] == mermaid()


def test_every_state_is_explained() -> None:
    assert all(f"| `{state}` |" in PAGE.read_text() for state in State)
