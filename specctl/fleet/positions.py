"""The inventory's text as a tree that knows where each value stands: what an adapter hands in, and how plain scalars are read.

The reading is the part of YAML that all versions of YAML agree on: a scalar that YAML 1.1 and 1.2 read differently (`no`, `010`,
`12:30`) is a fault, never a guess. Nothing here knows the inventory's keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specctl.errors import Problem

KeyPath = tuple[str | int, ...]
Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

MOST_DIGITS = 18  # Whole numbers that every reader of YAML and JSON keeps exactly fit easily.

_BARE_KEY = re.compile(r"[^\s\"':]{1,80}")
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS: Mapping[str, bool] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_OLD_BOOLEANS = frozenset(
    form(word) for word in ("yes", "no", "on", "off") for form in (str.lower, str.title, str.upper)
)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?|\.[0-9]+")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ODD_NUMBER = re.compile(
    r"[-+]?(0[0-9]+|0x[0-9a-fA-F_]+|0o[0-7]+|0b[01_]+|[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
    r"|[0-9]+[eE][-+]?[0-9]+|[0-9]*\.[0-9]*[eE][0-9]+|\.[0-9]+[eE][-+][0-9]+"
    r"|([0-9][0-9_]*)?\.[0-9_]*_[0-9_]*([eE][-+][0-9]+)?)|[-+]\.[0-9]+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line and a column of a file, both counted from one."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A value as written; `plain` says that it stood without quotes."""

    place: Place
    source: str
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A mapping, its entries in file order and duplicates still in it."""

    place: Place
    entries: tuple[tuple[Node, Node], ...]


Node = Scalar | Items | Branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one file gave: its tree, or the problem that kept it from being read."""

    file: str
    root: Node | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a key and its value stand, and the value's own text where it is a scalar."""

    key: Place
    value: Place
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file as plain values, with the spot of each by its path; what could not be read stands as None and in `faulty`."""

    file: str
    data: dict[str, Plain] = field(default_factory=dict)
    spots: Mapping[KeyPath, Spot] = field(default_factory=dict)
    faulty: frozenset[KeyPath] = frozenset()
    problems: tuple[Problem, ...] = ()

    def problem(self, path: KeyPath, message: str, *, suggestion: str | None = None, at_key: bool = False) -> Problem:
        """Make a problem of the place nearest to a path: its value, its key, or the closest parent that exists."""
        near = path
        while near and near not in self.spots:
            near = near[:-1]
        spot = self.spots.get(near)
        place = None if spot is None else (spot.key if at_key or near != path else spot.value)
        return Problem(
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
            path=dotted(path),
            message=message,
            suggestion=suggestion,
        )


def dotted(path: KeyPath) -> str:
    """Return a path as people write it: `hosts.ct200.groups[0]`; a key that would not be read as one stands in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) and part.isprintable() else f'"{shorten(part)}"'
            text += f".{key}" if text else key
    return text


def shorten(text: str, most: int = 48) -> str:
    """Return text that fits a message: control characters spelled out, its end cut off."""
    clean = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def scalar_value(scalar: Scalar) -> bool | int | float | str | None:
    """Read a scalar; raise ValueError in words where a plain one has no single meaning."""
    text = scalar.source
    if not scalar.plain:
        return text
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _OLD_BOOLEANS:
        raise ValueError(
            f'{text} is a boolean to some readers of YAML and text to others: write true or false, or "{text}"'
        )
    if _ODD_NUMBER.fullmatch(text):
        raise ValueError(
            f'{shorten(text)} is read as different numbers by different readers: write it plainly, or "in quotes"'
        )
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a finite number")
    if _INTEGER.fullmatch(text):
        if len(text) > MOST_DIGITS:
            raise ValueError(f"{shorten(text)} is too large a number")
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"{shorten(text)} is not a finite number")
        return number
    return text


class _Reader:
    """Turns one tree into plain values; collects what cannot be read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spots: dict[KeyPath, Spot] = {}
        self.faulty: set[KeyPath] = set()
        self.problems: list[Problem] = []

    def refuse(self, place: Place, path: KeyPath, message: str) -> None:
        problem = Problem(file=self.file, line=place.line, column=place.column, path=dotted(path), message=message)
        self.problems.append(problem)

    def scalar(self, node: Scalar, path: KeyPath) -> Plain:
        try:
            return scalar_value(node)
        except ValueError as error:
            self.refuse(node.place, path, str(error))
            self.faulty.add(path)
            return None

    def branch(self, node: Branch, path: KeyPath) -> dict[str, Plain]:
        values: dict[str, Plain] = {}
        for key, place, child in self._entries(node, path):
            at = (*path, key)
            source = child.source if isinstance(child, Scalar) else None
            self.spots[at] = Spot(key=place, value=child.place, source=source)
            values[key] = self.value(child, at)
        return values

    def value(self, node: Node, path: KeyPath) -> Plain:
        if isinstance(node, Scalar):
            return self.scalar(node, path)
        if isinstance(node, Branch):
            return self.branch(node, path)
        values: list[Plain] = []
        for index, child in enumerate(node.items):
            at = (*path, index)
            self.spots[at] = Spot(
                key=child.place, value=child.place, source=child.source if isinstance(child, Scalar) else None
            )
            values.append(self.value(child, at))
        return values

    def _entries(self, node: Branch, path: KeyPath) -> Iterator[tuple[str, Place, Node]]:
        """Yield the entries whose key can be used: text, not a merge, and the first of its name."""
        first: dict[str, Place] = {}
        for key, child in node.entries:
            if not isinstance(key, Scalar):
                self.refuse(key.place, path, "a key must be text, not a list or a mapping")
            elif key.plain and key.source == "<<":
                self.refuse(
                    key.place,
                    (*path, "<<"),
                    "merge keys are not read: defaults, hardware and groups are for what is shared",
                )
            elif key.source in first:
                place = first[key.source]
                self.refuse(
                    key.place, path, f"duplicate key {shorten(key.source)}: it stands in line {place.line} already"
                )
            else:
                first[key.source] = key.place
                yield key.source, key.place, child


def read(file: str, root: Node) -> Document:
    """Turn a file's tree into plain values and the spot of each; its problems are in the document."""
    reader = _Reader(file)
    if not isinstance(root, Branch):
        reader.refuse(root.place, (), "an inventory must be a mapping: hosts:, servers:, models: …")
        return Document(file=file, problems=tuple(reader.problems))
    data = reader.branch(root, ())
    return Document(
        file=file, data=data, spots=reader.spots, faulty=frozenset(reader.faulty), problems=tuple(reader.problems)
    )
