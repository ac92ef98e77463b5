"""Values of our own dataclasses as plain JSON values and back, field by field from their types; pure.

What comes back is checked against the types, unknown fields are left out (a newer writer may know more), and what has a default
may be missing (an older one knew less).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import PurePath, PurePosixPath
from typing import TypeVar, get_args, get_origin

T = TypeVar("T")
SCALARS = (str, int, float, bool)


class PlainError(ValueError):
    """A plain value that does not fit; says where and why."""


def dump(value: object, *, leave: Collection[str] = ()) -> object:
    """Return a value as JSON can hold it; fields of dataclasses that `leave` names are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name not in leave]
        return {name: dump(getattr(value, name), leave=leave) for name in names}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): dump(item, leave=leave) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [dump(item, leave=leave) for item in value]
    if value is None or isinstance(value, SCALARS):
        return value
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no plain form")


def load(kind: type[T], value: object) -> T:
    """Build a dataclass from plain values; raises PlainError."""
    made = _load(kind, value, kind.__name__.lower())
    assert isinstance(made, kind)
    return made


@functools.cache
def _hints(kind: type) -> Mapping[str, object]:
    return typing.get_type_hints(kind)


def _load(kind: object, value: object, at: str) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _union(arguments, value, at)
    if origin is tuple:
        return _tuple(arguments, value, at)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise PlainError(f"{at} is no mapping")
        return {str(key): _load(arguments[1], item, f"{at}.{key}") for key, item in value.items()}
    if isinstance(kind, type):
        return _of_type(kind, value, at)
    raise TypeError(f"{kind} has no plain form")


def _of_type(kind: type, value: object, at: str) -> object:
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, at)
    if issubclass(kind, enum.Enum):
        found = [item for item in kind if item.value == value]
        if not found:
            raise PlainError(f"{at} is none of {', '.join(str(item.value) for item in kind)}")
        return found[0]
    if issubclass(kind, PurePath) and isinstance(value, str):
        return PurePosixPath(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is type(None) and value is None:
        return None
    if kind not in SCALARS or type(value) is not kind:
        raise PlainError(f"{at} is no {'value' if kind is type(None) else kind.__name__}")
    return value


def _dataclass(kind: type, value: object, at: str) -> object:
    if not isinstance(value, Mapping):
        raise PlainError(f"{at} is no object")
    hints = _hints(kind)
    given: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            given[field.name] = _load(hints[field.name], value[field.name], f"{at}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise PlainError(f"{at} lacks {field.name}")
    try:
        return kind(**given)
    except ValueError as error:
        raise PlainError(f"{at}: {error}") from error


def _tuple(arguments: tuple[object, ...], value: object, at: str) -> object:
    if not isinstance(value, (list, tuple)):
        raise PlainError(f"{at} is no list")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_load(arguments[0], item, f"{at}[{index}]") for index, item in enumerate(value))
    if len(value) != len(arguments):
        raise PlainError(f"{at} has {len(value)} items, not {len(arguments)}")
    return tuple(
        _load(kind, item, f"{at}[{index}]") for index, (kind, item) in enumerate(zip(arguments, value, strict=True))
    )


def _union(arguments: tuple[object, ...], value: object, at: str) -> object:
    """Take the first alternative that fits; the last one's words say why none does."""
    reason = PlainError(f"{at} fits nothing")
    for kind in arguments:
        try:
            return _load(kind, value, at)
        except PlainError as error:
            # What is wrong deep inside a value says more than that the value is not None.
            reason = error if kind is not type(None) else reason
    raise reason
