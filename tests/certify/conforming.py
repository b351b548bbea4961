"""As much of JSON Schema as the schema of the results uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
KNOWN = {
    *("$schema", "$defs", "$ref", "title", "type", "const", "enum", "minimum", "required"),
    *("properties", "additionalProperties", "items"),
}


def schema() -> dict[str, Any]:
    return json.loads((files("timeball.certify") / "results.schema.json").read_text("utf-8"))


def faults(value: Any, rule: Mapping[str, Any], whole: Mapping[str, Any], at: str = "$") -> list:
    """What keeps a value from obeying a rule of a schema."""
    assert rule.keys() <= KNOWN, f"not understood: {rule.keys() - KNOWN}"
    if "$ref" in rule:
        return faults(value, whole["$defs"][rule["$ref"].rpartition("/")[2]], whole, at)
    if "type" in rule and not _is_a(value, rule["type"]):
        return [f"{at} is no {rule['type']}: {value!r:.80}"]
    wrong = (
        ("const" in rule and value != rule["const"])
        or ("enum" in rule and value not in rule["enum"])
        or ("minimum" in rule and value < rule["minimum"])
    )
    found = [f"{at} is {value!r}"] if wrong else []
    if isinstance(value, dict):
        found += _members(value, rule, whole, at)
    if isinstance(value, list) and "items" in rule:
        for n, each in enumerate(value):
            found += faults(each, rule["items"], whole, f"{at}[{n}]")
    return found


def _is_a(value: Any, names: str | list[str]) -> bool:
    kinds = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, TYPES[name]) for name in kinds)


def _members(value: dict, rule: Mapping, whole: Mapping, at: str) -> Iterator[str]:
    for name in rule.get("required", ()):
        if name not in value:
            yield f"{at} lacks {name}"
    named, other = rule.get("properties", {}), rule.get("additionalProperties", True)
    for name, each in value.items():
        if name in named:
            yield from faults(each, named[name], whole, f"{at}.{name}")
        elif other is False:
            yield f"{at} has {name}"
        elif isinstance(other, dict):
            yield from faults(each, other, whole, f"{at}.{name}")
