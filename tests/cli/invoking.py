"""The command line in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from timeball.cli.commands import timeball


def invoke(*words: str, given: str | None = None) -> Result:
    """Run `timeball WORDS` with `given` on stdin; what it writes is plain, as in a pipe."""
    return CliRunner().invoke(timeball, list(words), input=given)


def said(*words: str, given: str | None = None) -> str:
    """Run a command that must work; return its stdout."""
    result = invoke(*words, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*words: str) -> Any:
    """Run a command that must write one JSON document of version 1; return it."""
    found = json.loads(said(*words))
    assert found.pop("schema_version") == 1
    return found
