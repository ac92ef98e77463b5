"""Blots known secrets out of text, bytes and nested values before specctl shows or stores what an engine wrote; pure and fast.

It works by spans: all places of all spellings are found in the text as it came, then replaced at once, so that no order of
replacing leaves a piece behind.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import AnyStr
from urllib.parse import quote, quote_plus

# Blotting out shorter values would make texts unreadable and hide nothing; secrets.py refuses them.
SHORTEST = 4
# Base64 of a value that stands inside a longer text has three spellings, without the characters that it shares with neighbours.
_SHORTEST_INNER = 8
MARK = "[redacted]"


class Redactor:
    """Replaces every known secret, in all its usual spellings; values under SHORTEST characters are not taken."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if len(value) >= SHORTEST for form in spellings(value)}
        self._forms = tuple(sorted(forms))
        self._byte_forms = tuple(form.encode("utf-8", "surrogatepass") for form in self._forms)
        self.mark = _choose_mark(self._forms)

    def redact(self, text: str) -> str:
        """Return the text without the secrets."""
        return _blot(text, self._forms, self.mark)

    def redact_bytes(self, content: bytes) -> bytes:
        """Return the bytes without the secrets (in UTF-8)."""
        return _blot(content, self._byte_forms, self.mark.encode())

    def redact_value(self, value: object) -> object:
        """Return a nested value (what JSON can hold, tuples and sets too) without the secrets, in its keys neither."""
        match value:
            case str():
                return self.redact(value)
            case bytes():
                return self.redact_bytes(value)
            case Mapping():
                return {self.redact_value(key): self.redact_value(inner) for key, inner in value.items()}
            case list():
                return [self.redact_value(inner) for inner in value]
            case tuple():
                return tuple(self.redact_value(inner) for inner in value)
            case set() | frozenset():
                return frozenset(self.redact_value(inner) for inner in value)
            case _:
                return value


def spellings(value: str) -> Iterator[str]:
    """Yield the forms in which a value turns up in logs, command lines, URLs, JSON, HTML and base64."""
    yield value
    for safe in ("", "/"):
        quoted = quote(value, safe=safe, errors="surrogatepass")
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    yield quote_plus(value, errors="surrogatepass")
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")
        # As JSON text inside a JSON string, the way log shippers nest it.
        yield json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
    yield repr(value)[1:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    quoted = shlex.quote(value)
    yield quoted[1:-1] if quoted.startswith("'") else quoted
    yield from _base64_spellings(value.encode("utf-8", "surrogatepass"))


def _base64_spellings(content: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(content).decode().rstrip("=")
        for offset in range(3):
            spelled = encode(b"\0" * offset + content).decode().rstrip("=")
            first = (0, 2, 3)[offset]
            last = (len(content) + offset) * 8 // 6
            if last - first >= _SHORTEST_INNER:
                yield spelled[first:last]


def _blot(text: AnyStr, forms: Iterable[AnyStr], mark: AnyStr) -> AnyStr:
    spans: list[tuple[int, int]] = sorted(span for form in forms for span in _spans(text, form))
    if not spans:
        return text
    pieces: list[AnyStr] = []
    end = 0
    begin, stop = spans[0]
    for next_begin, next_stop in (*spans[1:], (len(text) + 1, len(text) + 1)):
        if next_begin <= stop:
            stop = max(stop, next_stop)
            continue
        pieces += (text[end:begin], mark)
        end, begin, stop = stop, next_begin, next_stop
    pieces.append(text[end:])
    return text[:0].join(pieces)


def _spans(text: AnyStr, form: AnyStr) -> Iterator[tuple[int, int]]:
    """Yield every place of one form, overlapping ones too."""
    begin = text.find(form)
    while begin >= 0:
        yield begin, begin + len(form)
        begin = text.find(form, begin + 1)


def _choose_mark(forms: Iterable[str]) -> str:
    """Return a mark that holds no secret and completes none with its neighbours: no form has its first or last character."""
    forms = tuple(forms)
    candidates = (MARK, "<redacted>", "{redacted}", *(chr(code) * 3 for code in range(0x2588, 0x25FF)))
    for mark in candidates:
        if not any(mark[0] in form or mark[-1] in form or form in mark for form in forms):
            return mark
    # Over a hundred blocks all used in secrets: blot out by leaving nothing but a space between lines.
    return "\n"
