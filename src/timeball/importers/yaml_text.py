"""YAML as plain values that know their lines: no objects, no merges, no bombs.

Read by PyYAML's parser (the extra ``timeball[yaml]``) and put together here, so that neither a
tag nor an alias can make more of a text than stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from timeball.errors import UsageError

if TYPE_CHECKING:
    import yaml

SOURCE_MAX: Final = 1 << 20
"""Characters of a file that is read."""

_NODES_MAX: Final = 100_000
_DEPTH_MAX: Final = 64
_TAG: Final = "tag:yaml.org,2002:"


class Table(dict[str, Any]):
    """A mapping that knows its line and those of its keys."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def table(self, *path: str) -> Table:
        """Return the table at the end of a path of keys; an empty one where there is none."""
        found: object = self
        for key in path:
            found = found.get(key) if isinstance(found, Table) else None
        return found if isinstance(found, Table) else Table(self.line)

    def line_of(self, key: str) -> int:
        """Return the line of a key, or else of the table."""
        return self.lines.get(key, self.line)


def read_yaml(text: str) -> list[Any]:
    """Return the documents of a text: tables, lists, texts, numbers, booleans and None.

    Raises:
        UsageError: It is no YAML, or more than a person would write.
    """
    if len(text) > SOURCE_MAX:
        raise UsageError(f"it is longer than {SOURCE_MAX:,} characters: split it")
    try:
        import yaml
    except ModuleNotFoundError:
        raise UsageError(
            "reading YAML needs PyYAML: install it with pip install 'timeball[yaml]'"
        ) from None
    try:
        return list(_documents(_loader(text)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise UsageError(f"{line}it is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"it is not YAML: {' '.join(str(error).split())}") from None


def _loader(text: str) -> yaml.SafeLoader:
    """Return a parser that stops at a depth, before it takes time for more."""
    import yaml

    class Bounded(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            self.depth += 1
            if self.depth > _DEPTH_MAX:
                raise UsageError("it is nested too deep: write the schedules as plain values")
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    return Bounded(text)


def _documents(loader: yaml.SafeLoader) -> Iterator[Any]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            yield _Reading(loader).value(node, 0)


class _Reading:
    """One document, node by node; an alias counts as all that it stands for."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._nodes = 0

    def value(self, node: yaml.Node, depth: int) -> Any:
        """Return what a node says."""
        import yaml

        self._nodes += 1
        if self._nodes > _NODES_MAX or depth > _DEPTH_MAX:
            raise UsageError(
                f"line {node.start_mark.line + 1}: its aliases or its nesting make more of it "
                "than a person would write: write the values out"
            )
        match node:
            case yaml.MappingNode(tag=tag) if tag == f"{_TAG}map":
                return self._table(node, depth)
            case yaml.SequenceNode(tag=tag) if tag == f"{_TAG}seq":
                return [self.value(each, depth + 1) for each in node.value]
        return self._scalar(node)

    def _table(self, node: yaml.MappingNode, depth: int) -> Table:
        found = Table(node.start_mark.line + 1)
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key, str):
                raise UsageError(f"line {line}: a key is no text: write a plain word")
            if key_node.tag == f"{_TAG}merge":
                raise UsageError(f"line {line}: << is not followed: write the values out")
            found[key] = self.value(value_node, depth + 1)
            found.lines[key] = line
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix(_TAG)
        match kind:
            case "str" | "timestamp" | "value" | "merge":
                return node.value
            case "null":
                return None
            case "bool" | "int" | "float":
                try:
                    return self._loader.construct_object(node)
                except ValueError:
                    return node.value
        raise UsageError(
            f"line {node.start_mark.line + 1}: the tag {node.tag} is not followed: take it out"
        )
