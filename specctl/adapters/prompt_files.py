"""Read a user's prompts: a JSONL file, one object a line with `prompt`, `text` or `messages`; a fault names its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from specctl.errors import UsageError
from specctl.measure.load import Prompt

MOST_BYTES = 64 * 1024 * 1024
MOST_PROMPTS = 10_000
HINT = 'a line is an object: {"prompt": "…"}, {"text": "…"} or {"messages": [{"role": "user", "content": "…"}]}'
KIND = "file"


def read(path: str) -> tuple[Prompt, ...]:
    """Return the prompts of a file; raises UsageError that names the file and the line."""
    found: list[Prompt] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            prompt = _prompt(number, line)
        except ValueError as error:
            raise UsageError(f"{path}:{number}: {error}", hint=HINT) from error
        found.append(prompt)
        if len(found) > MOST_PROMPTS:
            raise UsageError(f"{path}:{number}: more than {MOST_PROMPTS} prompts", hint="take a part of them")
    if not found:
        raise UsageError(f"{path}: there is no prompt in it", hint=HINT)
    if len({prompt.id for prompt in found}) < len(found):
        raise UsageError(f"{path}: two prompts have the same id", hint="leave the ids out, or make each one differ")
    return tuple(found)


def _lines(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {why.lower()}", hint="name a file that is there") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path}: more than {MOST_BYTES // 1024**2} MiB", hint="take a part of the prompts")
    try:
        return content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text", hint=HINT) from error


def _prompt(number: int, line: str) -> Prompt:
    """Read one line; raises ValueError with what is wrong."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError:
        raise ValueError("not JSON that anybody reads: nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"not an object but {type(value).__name__}")
    given = [name for name in ("prompt", "text", "messages") if name in value]
    if len(given) != 1:
        raise ValueError(
            "one of prompt, text and messages is wanted" + (f", not {' and '.join(given)}" if given else "")
        )
    text = _said(value["messages"]) if given == ["messages"] else value[given[0]]
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{given[0]} is no text, or an empty one")
    return Prompt(id=_word(value, "id", f"{KIND}-{number}"), kind=_word(value, "kind", KIND), text=text)


def _word(value: Mapping[str, object], name: str, default: str) -> str:
    found = value.get(name, default)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str) or not found.isprintable() or not 0 < len(found) <= 100:
        raise ValueError(f"{name} is no short word")
    return found


def _said(messages: object) -> str:
    """Write a conversation as plain lines; the model's own template is not known here."""
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages is no list of messages")
    lines = []
    for message in messages:
        role, content = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
        if not isinstance(role, str) or not isinstance(content, str):
            raise ValueError("a message has a role and a content, both text")
        lines.append(f"{role.capitalize()}: {content}")
    return "\n".join([*lines, "Assistant:"])
