"""Benches as JSON (docs/json.md) and back; a field that an older specctl did not write is None or its default."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping

from specctl.measure.bench import METRICS, Bench, Measured, Setting, Subject, summary
from specctl.measure.figures import Figures, GpuFigures, Spread
from specctl.measure.intervals import Interval


def as_wire(bench: Bench) -> dict[str, object]:
    """Return what is kept, and what `--json` prints: the fields of each run, and each level's summary."""
    found = _plain(bench)
    assert isinstance(found, dict)
    found["levels"] = [{**_fields(level), "summary": summaries(level)} for level in bench.levels]
    return found


def summaries(level: Measured) -> dict[str, object]:
    """Return the median of each figure over the runs, with its interval; a figure that not every run tells is left out."""
    found = {metric.name: summary(level, metric.name) for metric in METRICS}
    return {name: interval_wire(interval) for name, interval in found.items() if interval is not None}


def interval_wire(interval: Interval) -> dict[str, object]:
    """Return an interval's fields."""
    return _fields(interval)


def _fields(value: object) -> dict[str, object]:
    found = _plain(value)
    assert isinstance(found, dict)
    return found


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_wire(fields: Mapping[str, object]) -> Bench:
    """Read a bench back; raises ValueError with what is wrong, and where."""
    found = _object(Bench, fields, "bench")
    assert isinstance(found, Bench)
    return found


_KINDS: tuple[type, ...] = (Subject, Setting, Measured, Figures, Spread, GpuFigures)


def _object(kind: type, value: object, place: str) -> object:
    """Build a dataclass from an object; fields that it does not know are left alone."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} is no object")
    hints = typing.get_type_hints(kind)
    given: dict[str, object] = {}
    for each in dataclasses.fields(kind):
        if each.name in value:
            given[each.name] = _value(hints[each.name], value[each.name], f"{place}.{each.name}")
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{place} lacks a field") from error


def _value(hint: object, value: object, place: str) -> object:
    """Read one field by its type: a number, a text, one of our values, a tuple of these, or None where it may be that."""
    if isinstance(hint, types.UnionType):
        inner = [part for part in typing.get_args(hint) if part is not type(None)]
        return None if value is None else _value(inner[0], value, place)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{place} is no list")
        part = typing.get_args(hint)[0]
        return tuple(_value(part, item, f"{place}[{number}]") for number, item in enumerate(value))
    if isinstance(hint, type) and hint in _KINDS:
        return _object(hint, value, place)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool):
        return value
    raise ValueError(f"{place} is {type(value).__name__}")
