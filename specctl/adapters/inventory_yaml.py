"""Compose YAML text into the tree of fleet/positions.py; the only module that imports yaml, called by inventory_files.py.

The text is taken apart event by event, by libyaml where PyYAML has it: no tag is ever constructed, nothing recurses, depth and size
are bounded while reading, and an alias costs nothing however often it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from specctl.fleet.positions import Branch, Items, Node, Place, Scalar, shorten
from specctl.fleet.suggest import nearest

DEEPEST = 32  # The schema itself needs eight levels.
MOST_NODES = 50_000  # A thousand hosts with all their settings; an alias counts as what it stands for.


class _Mark(Protocol):
    """What libyaml's and PyYAML's own marks have in common."""

    line: int
    column: int


class Unreadable(Exception):  # noqa: N818  # the adapter turns it into a Problem
    """Why a text cannot be read, and where."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """A node with the nodes it expands to and the levels below it."""

    node: Node
    size: int
    depth: int


@dataclass(slots=True, kw_only=True)
class _Open:
    """A list or mapping whose end has not been read yet."""

    place: Place
    mapping: bool
    anchor: str | None
    children: list[_Measured] = field(default_factory=list)

    def close(self) -> _Measured:
        nodes = tuple(child.node for child in self.children)
        node: Node
        if self.mapping:
            node = Branch(place=self.place, entries=tuple(zip(nodes[::2], nodes[1::2], strict=True)))
        else:
            node = Items(place=self.place, items=nodes)
        size = 1 + sum(child.size for child in self.children)
        depth = 1 + max((child.depth for child in self.children), default=0)
        return _Measured(node=node, size=size, depth=depth)


def _place(mark: _Mark | None) -> Place:
    return Place(line=1, column=1) if mark is None else Place(line=mark.line + 1, column=mark.column + 1)


class _Builder:
    """Puts events together, iteratively; `root` is the finished tree of the only document."""

    def __init__(self) -> None:
        self.root: _Measured | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, _Measured] = {}
        self._total = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise Unreadable("holds a second document: one file is one document", _place(event.start_mark))
        if isinstance(event, yaml.NodeEvent):
            self._node(event, _place(event.start_mark))
        elif isinstance(event, yaml.CollectionEndEvent):
            finished = self._open.pop()
            self._add(finished.close(), finished.anchor, finished.place)

    def _node(self, event: yaml.NodeEvent, place: Place) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._add(self._aliased(event.anchor or "", place), None, place)
            return
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            tag = shorten(event.tag.replace("tag:yaml.org,2002:", "!!"))
            raise Unreadable(f"holds the tag {tag}: tags are not read (text goes in quotes)", place)
        if isinstance(event, yaml.ScalarEvent):
            self._total += 1
            scalar = Scalar(place=place, source=event.value, plain=event.style is None or event.style == "")
            self._add(_Measured(node=scalar, size=1, depth=1), event.anchor, place)
            return
        if len(self._open) >= DEEPEST:
            raise Unreadable(f"is nested over {DEEPEST} levels deep", place)
        self._total += 1
        self._open.append(_Open(place=place, mapping=isinstance(event, yaml.MappingStartEvent), anchor=event.anchor))

    def _aliased(self, name: str, place: Place) -> _Measured:
        if any(level.anchor == name for level in self._open):
            raise Unreadable(f"has an alias *{shorten(name)} inside what it stands for", place)
        known = self._anchors.get(name)
        if known is None:
            near = nearest(name, self._anchors)
            guess = f" (did you mean *{near}?)" if near else ""
            raise Unreadable(f"has an alias *{shorten(name)} without its anchor{guess}", place)
        if len(self._open) + known.depth > DEEPEST:
            raise Unreadable(f"is nested over {DEEPEST} levels deep by the alias *{shorten(name)}", place)
        self._total += known.size
        return known

    def _add(self, measured: _Measured, anchor: str | None, place: Place) -> None:
        if self._total > MOST_NODES:
            raise Unreadable(f"expands to over {MOST_NODES} values: an inventory has far fewer", place)
        if anchor is not None:
            self._anchors[anchor] = measured
        if self._open:
            self._open[-1].children.append(measured)
        else:
            self.root = measured


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, Loader=loader)


def compose(text: str) -> Node:
    """Return the tree of a text; raise Unreadable where it is not YAML, not one document, or more than an inventory needs."""
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_fault(error, text) from error
    except yaml.YAMLError as error:
        raise Unreadable(f"is not YAML: {shorten(str(error), 120)}") from error
    if builder.root is None:
        raise Unreadable("is empty")
    root = builder.root.node
    if isinstance(root, Scalar) and root.plain and root.source == "":
        raise Unreadable("is empty")
    return root


def _syntax_fault(error: yaml.MarkedYAMLError, text: str) -> Unreadable:
    """Say what YAML's own words mean for an inventory."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Unreadable(f"is not YAML: {error.problem or error.context}")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    margin = line[: len(line) - len(line.lstrip())]
    if "\t" in margin or line[mark.column : mark.column + 1] == "\t":
        column = line.index("\t") + 1
        return Unreadable("a tab: YAML is indented with spaces", Place(line=mark.line + 1, column=column))
    words = error.problem or error.context or "is not YAML"
    if line[mark.column : mark.column + 1] in ("@", "`", "%"):
        words = f"text that begins with {line[mark.column]} goes in quotes"
    elif words.startswith("mapping values are not allowed"):
        words = "a second `:` here: text that holds `: ` goes in quotes, and keys of one mapping stand under each other"
    elif mark.line >= len(lines) or (mark.line == len(lines) - 1 and not line[mark.column :].strip()):
        words = "the file ends while something is still open: a bracket, a brace or a quote"
    elif "nesting depth" in words:
        words = f"is nested over {DEEPEST} levels deep"
    return Unreadable(words, _place(mark))
