import re
from pathlib import Path

from timeball.core.states import Ending
from timeball.observe.families import FAMILIES, VIOLATIONS
from timeball.observe.transitions import Happening, Transition

TEXT = Path("docs/how-to/observe.md").read_text()
METRICS, _, LINES = TEXT.partition("## Log lines")
ROW = re.compile(r"^\| `(timeball_\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
SUFFIX = re.compile(r"_(?:bucket|sum|count)$")


def test_every_metric_is_explained_with_its_type_and_labels() -> None:
    told = {name: (form, re.findall(r"`(\w+)`", labels)) for name, form, labels in
            ROW.findall(METRICS)}  # fmt: skip
    assert told == {each.name: (each.form.value, list(each.labels)) for each in FAMILIES}


def test_every_metric_that_is_named_anywhere_is_there() -> None:
    names = {SUFFIX.sub("", name) for name in re.findall(r"timeball_\w+", TEXT)}
    assert names <= {each.name for each in (*FAMILIES, VIOLATIONS)}


def test_every_field_and_event_of_a_line_is_explained() -> None:
    named = set(re.findall(r"`(\w+)`", LINES))
    assert set(Transition._fields) <= named
    unused = {Ending.EXPIRED, Ending.MOVED, Ending.AWAITED}
    assert {*Happening, *Ending} - unused <= named
