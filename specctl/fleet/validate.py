"""Hold one file's plain values to the schema: every fault becomes a Problem at its line; the rest is checked further."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specctl.errors import Problem
from specctl.fleet.positions import Document, KeyPath, Plain
from specctl.fleet.schema import InventoryFile
from specctl.fleet.schema_section import Section
from specctl.fleet.schema_types import PATTERN_WORDS
from specctl.fleet.suggest import listed, nearest

_WANTED: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "list_type": "a list",
}
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}


def validate(document: Document) -> tuple[InventoryFile, tuple[Problem, ...]]:
    """Return what of the document fits the schema, and a problem for each thing that does not."""
    problems: list[Problem] = []
    data: Plain = document.data
    while True:
        try:
            return InventoryFile.model_validate(data), tuple(problems)
        except ValidationError as error:
            faults = error.errors(include_url=False)
        problems.extend(problem for fault in faults if (problem := _problem(document, fault)) is not None)
        for fault in faults:
            path = _path(fault)
            data = _without(data, path[:-1] if fault["type"] == "missing" else path)


def _path(fault: ErrorDetails) -> KeyPath:
    """Return where a fault lies; a key that is itself at fault is its mapping's."""
    return tuple(part for part in fault["loc"] if part != "[key]")


def _problem(document: Document, fault: ErrorDetails) -> Problem | None:
    path = _path(fault)
    if path in document.faulty or (fault["type"] == "missing" and path in document.spots):
        return None
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        known = _keys_at(path[:-1])
        near = nearest(str(path[-1]), known)
        hint = "" if near else f" (known here: {listed(known, most=20)})"
        return document.problem(path, f"unknown key{hint}", suggestion=near, at_key=True)
    if kind == "missing":
        return document.problem(path[:-1], f"lacks the key {path[-1]}", at_key=True)
    if kind == "literal_error":
        return _not_listed(document, path, str(context.get("expected", "")), fault["input"])
    if kind in _WANTED:
        quotes = (
            " (quotes make it text)" if kind == "string_type" and isinstance(fault["input"], bool | int | float) else ""
        )
        return document.problem(path, f"must be {_WANTED[kind]}, not {_named(fault['input'])}{quotes}")
    if kind in _LIMITS:
        limit, words = _LIMITS[kind]
        return document.problem(path, f"must be {words} {context[limit]}")
    if kind == "string_pattern_mismatch":
        return document.problem(path, PATTERN_WORDS[context["pattern"]])
    if kind == "value_error":
        return document.problem(path, str(context["error"]))
    return document.problem(path, fault["msg"])


def _not_listed(document: Document, path: KeyPath, expected: str, value: object) -> Problem:
    words = expected.replace("'", "")
    choices = words.replace(" or ", ", ").split(", ")
    near = nearest(value, choices) if isinstance(value, str) else None
    return document.problem(path, f"must be {words}", suggestion=near)


def _named(value: object) -> str:
    """Say what kind of value stands there; never the value, which could be a secret."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case float():
            return "one with a fraction"
        case int():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _keys_at(path: KeyPath) -> Sequence[str]:
    """Return the keys that the schema knows at a path."""
    kind: object = InventoryFile
    for part in path:
        kind = _step(kind, part)
    return tuple(kind.model_fields) if isinstance(kind, type) and issubclass(kind, Section) else ()


def _step(kind: object, part: str | int) -> object:
    if isinstance(kind, type) and issubclass(kind, Section):
        field = kind.model_fields.get(str(part))
        return None if field is None else _bare(field.annotation)
    arguments = typing.get_args(kind)
    return _bare(arguments[-1]) if arguments else None


def _bare(kind: object) -> object:
    """Take `None` out of a union and what is annotated out of its notes."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return _bare(next((choice for choice in typing.get_args(kind) if choice is not type(None)), None))
    return _bare(typing.get_args(kind)[0]) if typing.get_origin(kind) is typing.Annotated else kind


def _without(data: Plain, path: KeyPath) -> Plain:
    """Return the values without the one at a path; a list that holds it goes as a whole, so that no index moves."""
    if not path or not isinstance(data, dict):
        return {} if isinstance(data, dict) else data
    head, rest = path[0], path[1:]
    if head not in data or not isinstance(head, str):
        return data
    kept = dict(data)
    child = kept.pop(head)
    if rest and isinstance(child, dict):
        kept[head] = _without(child, rest)
    return kept
