"""The results as JUnit XML, which every build server can show."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from timeball.certify.scenario import Result, Status

_TAGS = {
    Status.VIOLATED: "failure",
    Status.VACUOUS: "failure",
    Status.BROKEN: "error",
    Status.SKIPPED: "skipped",
}


def junit(results: Iterable[Result]) -> str:
    """Return one test case for each scenario, as text."""
    found = list(results)
    tags = [_TAGS.get(each.status, "") for each in found]
    counts = " ".join(
        f'{name}="{tags.count(tag)}"'
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="timeball certify" tests="{len(found)}" {counts}>',
        *(_case(result) for result in found),
        "</testsuite>",
        "",
    ]
    return "\n".join(lines)


def _case(result: Result) -> str:
    name = _attribute(f"{result.scenario.id} (seed {result.seed}): {result.scenario.title}")
    opening = f'  <testcase classname="certify" name={name} time="{result.wall_s:.3f}"'
    tag = _TAGS.get(result.status)
    if tag is None:
        return f"{opening}/>"
    broken = "; ".join(f"{check.name}: {check.text}" for check in result.failed)
    message = _attribute(f"{result.status}: {broken or result.reason}")
    return f"{opening}><{tag} message={message}/></testcase>"


def _attribute(text: str) -> str:
    """Return text as a quoted attribute, without what XML cannot hold."""
    return quoteattr("".join(each if each.isprintable() else " " for each in text))
