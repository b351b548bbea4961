"""What the pages on concepts show can be run, and what they point to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "concepts").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWING = [page for page in PAGES if BLOCK.search(page.read_text())]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_the_pages_on_the_engine_show_something_to_run() -> None:
    assert {"rate-limits", "makespan", "retries-and-crashes"} <= {page.stem for page in SHOWING}


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWING, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_one_after_another(page: Path) -> None:
    text = page.read_text()
    names: dict[str, object] = {"__name__": f"example_{page.stem.replace('-', '_')}"}
    for block in BLOCK.finditer(text):
        # As many lines above as in the page, so that a traceback names its lines.
        lines = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(lines + block[1], str(page), "exec"), names)


@every_page
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@every_page
def test_every_test_that_a_page_names_is_in_a_file_that_it_links_to(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+\.py)\)", text)
    linked = "\n".join((page.parent / link).read_text() for link in links)
    named = set(re.findall(r"`(test_\w+)`", text))
    assert sorted(name for name in named if f"def {name}(" not in linked) == []
