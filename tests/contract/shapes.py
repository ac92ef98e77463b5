"""Compare JSON answers by their keys and types, recursively; values are not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def missing(recorded: object, answered: object, path: str = "") -> Iterator[str]:
    """Yield the path of every key that the recorded answer has and the other lacks."""
    match recorded, answered:
        case dict(), dict():
            for key, value in recorded.items():
                if key not in answered:
                    yield f"{path}.{key}"
                else:
                    yield from missing(value, answered[key], f"{path}.{key}")
        case [first, *_], [other, *_]:
            yield from missing(first, other, f"{path}[]")
        case _:
            return


def surplus(recorded: object, answered: object) -> set[str]:
    """Return the path of every key that only the answer has."""
    return set(missing(answered, recorded))


def mistyped(recorded: object, answered: object, path: str = "") -> Iterator[str]:
    """Yield the path of every value whose JSON type differs; null fits any type, an integer fits where a float was recorded."""
    if recorded is None or answered is None:
        return
    if kind(recorded) != kind(answered) and not (kind(recorded) == "float" and kind(answered) == "integer"):
        yield f"{path}: recorded {kind(recorded)}, answered {kind(answered)}"
    if isinstance(recorded, Mapping) and isinstance(answered, Mapping):
        for key in recorded.keys() & answered.keys():
            yield from mistyped(recorded[key], answered[key], f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(answered, list) and recorded and answered:
        yield from mistyped(recorded[0], answered[0], f"{path}[]")


def kind(value: object) -> str:
    """Return a value's JSON type, numbers told apart."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "float"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"
