"""The kinds of value that the inventory's schema is made of: each checks in words and has a JSON schema; imports pydantic."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic.functional_validators import AfterValidator

from specctl.fleet import units

LINE_PATTERN = r"^[^\r\n\x00]*[^\s\x00][^\r\n\x00]*$"
# Words and names end up on command lines, ours or the engine's, where a leading dash would make an option of them.
WORD_PATTERN = r"^[^-\s\x00][^\s\x00]*$"
NAME_PATTERN = r"^[^-\s\x00][^\r\n\x00]*$"
PATH_PATTERN = r"^/[^\r\n\x00]*$"
URL_PATTERN = r"^http://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$|^http://\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?/?$"
SECRET_PATTERN = r"^(env|file|cmd):.+$"  # noqa: S105  # a pattern, not a password

SHORTEST_S = 1.0  # A limit below this ends everything before it began.
_Check = Callable[[object], object]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError("holds a line break, which no service manager carries")
    return text


def _line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return _one_line(text)


def _flag(value: object) -> object:
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, list):
        if not value or not all(isinstance(item, str) or _is_number(item) for item in value):
            raise ValueError("must list texts or numbers, at least one")
        return [_one_line(str(item)) for item in value]
    if value is None or isinstance(value, bool) or _is_number(value):
        return value
    raise ValueError("must be text, a number, true, false, a list of texts, or null to take it away")


def _env_text(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError('must be text: write "true", "1" or whatever the engine reads, in quotes')
    if isinstance(value, str):
        return _one_line(value)
    if value is None or _is_number(value):
        return value
    raise ValueError("must be text or a number, or null to take it away")


def _gpus(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str | list):
        raise ValueError('must be a count (8), a range ("0-7") or a list ([0, 1]) of GPUs')
    if isinstance(value, list) and not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError("must list whole numbers")
    return units.gpu_indices(value)


def _secret(value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(SECRET_PATTERN, value, re.DOTALL) or "\n" in value:
        raise ValueError("must be a reference, never the secret itself: env:NAME, file:PATH or cmd:COMMAND")
    return value


def _duration(value: object) -> object:
    if value is not None:
        units.seconds(value if isinstance(value, str) else "")
    return value


def _some_time(value: object) -> object:
    if _duration(value) is not None and units.seconds(str(value)) < SHORTEST_S:
        raise ValueError("must be at least 1s")
    return value


def _size(value: object) -> object:
    if value is not None:
        units.size_bytes(value if isinstance(value, str) else "")
    return value


def _texts(value: object) -> object:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(item, str) for item in texts):
        raise ValueError("must be text or a list of texts")
    return [_line(item) for item in texts if isinstance(item, str)]


def _argv(value: object) -> object:
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a program and its arguments, as a list of texts")
    words = [_one_line(item) for item in value if isinstance(item, str)]
    if not words[0].startswith("/"):
        raise ValueError("must name its program by an absolute path")
    return words


def _bounds(value: object) -> object:
    if value is None:
        return None
    pair = (
        [item for item in value if isinstance(item, int) and not isinstance(item, bool)]
        if isinstance(value, list)
        else []
    )
    if not isinstance(value, list) or len(value) != len(pair) or len(pair) != 2 or not 0 <= pair[0] <= pair[1]:
        raise ValueError("must be the lowest and the highest value, such as [4, 32]")
    return pair


def _regexp(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return text


FLAG_SCHEMA: Mapping[str, object] = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
    ]
}
GPU_SCHEMA: Mapping[str, object] = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": units.MOST_GPUS},
        {"type": "string", "pattern": units.GPU_RANGE_PATTERN},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "uniqueItems": True},
        {"type": "null"},
    ]
}
PATTERN_WORDS: Mapping[str, str] = {
    LINE_PATTERN: "must be one line of text, and not empty",
    WORD_PATTERN: "must be one word that does not begin with -",
    NAME_PATTERN: "must be one line of text, not empty, that begins with neither a space nor -",
    URL_PATTERN: "must be http://, a name or address, and a port, such as http://127.0.0.1:30000",
    PATH_PATTERN: "must be an absolute path, beginning with /",
}
TEXTS_SCHEMA: Mapping[str, object] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
ARGV_SCHEMA: Mapping[str, object] = {
    "anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "null"}]
}
BOUNDS_SCHEMA: Mapping[str, object] = {
    "anyOf": [
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2},
        {"type": "null"},
    ]
}

# Patterns are held by pydantic's core: a function for each of these many fields would double the time of the import.
Line = Annotated[str, Field(pattern=LINE_PATTERN)]
Word = Annotated[str, Field(pattern=WORD_PATTERN)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
AbsolutePath = Annotated[str, Field(pattern=PATH_PATTERN)]
Url = Annotated[str, Field(pattern=URL_PATTERN)]
_DURATION_SCHEMA: Mapping[str, object] = {"type": ["string", "null"], "pattern": units.DURATION_PATTERN}
Duration = Annotated[object, PlainValidator(_duration), WithJsonSchema(dict(_DURATION_SCHEMA))]
SomeTime = Annotated[object, PlainValidator(_some_time), WithJsonSchema(dict(_DURATION_SCHEMA))]
Size = Annotated[
    object, PlainValidator(_size), WithJsonSchema({"type": ["string", "null"], "pattern": units.SIZE_PATTERN})
]
Regexp = Annotated[str, AfterValidator(_regexp), WithJsonSchema({"type": "string", "format": "regex"})]
Flag = Annotated[object, PlainValidator(_flag), WithJsonSchema(dict(FLAG_SCHEMA))]
EnvText = Annotated[object, PlainValidator(_env_text), WithJsonSchema({"type": ["string", "number", "null"]})]
Gpus = Annotated[object, PlainValidator(_gpus), WithJsonSchema(dict(GPU_SCHEMA))]
SecretText = Annotated[
    object, PlainValidator(_secret), WithJsonSchema({"type": ["string", "null"], "pattern": SECRET_PATTERN})
]
Texts = Annotated[object, PlainValidator(_texts), WithJsonSchema(dict(TEXTS_SCHEMA))]
Argv = Annotated[object, PlainValidator(_argv), WithJsonSchema(dict(ARGV_SCHEMA))]
Bounds = Annotated[object, PlainValidator(_bounds), WithJsonSchema(dict(BOUNDS_SCHEMA))]
