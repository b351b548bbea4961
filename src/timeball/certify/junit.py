"""The results as JUnit XML, which every build server can show."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from timeball.certify.mutants.verdicts import Verdict
from timeball.certify.scenario import Result, Status

_TAGS = {
    Status.VIOLATED: "failure",
    Status.VACUOUS: "failure",
    Status.BROKEN: "error",
    Status.SKIPPED: "skipped",
}


def junit(results: Iterable[Result | Verdict]) -> str:
    """Return one test case for each scenario, or each mutant, as text."""
    found = list(results)
    tags = [_TAGS.get(_status(each), "") for each in found]
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


def _status(result: Result | Verdict) -> Status:
    if isinstance(result, Verdict):
        return Status.PASSED if result.killed else Status.VIOLATED
    return result.status


def _case(result: Result | Verdict) -> str:
    if isinstance(result, Verdict):
        name = _attribute(f"{result.id}: {result.defect}")
        opening = f'  <testcase classname="mutants" name={name} time="{result.wall_s:.3f}"'
        if result.killed:
            return f"{opening}/>"
        return f"{opening}><failure message={_attribute(str(result))}/></testcase>"
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
