"""Read the few wanted families out of a page of /metrics, without parsing the rest of it.

Pure. A page has 600 lines and 73 KB, a full parse of which costs 20 ms of CPU; here each family's lines are found by one search of
the bytes. Ranks that repeat a number count once (max), data-parallel ranks add up, and a line without its end is no line: a page
that breaks off in the middle of a number must not be read as a smaller number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specctl.control.sample.engine import EngineCounters
from specctl.control.sample.numbers import word
from specctl.engines._metric_types import Metrics, Over, Wanted

MAX_BYTES = 4 << 20
MAX_SERIES = 4096
MAX_LINE = 4096
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]{0,99})="((?:[^"\\]|\\.){0,1000})"')
_MARK = re.compile(rb"^# TYPE ", re.MULTILINE)
_BOUNDARY = frozenset(b"{ \t")
_PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class _Series:
    labels: Mapping[str, str]
    value: float | None


def is_page(page: bytes) -> bool:
    """Claim that a text is an exposition at all: it names the type of something."""
    return len(page) <= MAX_BYTES and _MARK.search(page) is not None


def parse(page: bytes, metrics: Metrics) -> EngineCounters:
    """Return the wanted figures; what the page does not have, or says in no sensible number, is None. Never raises."""
    if len(page) > MAX_BYTES:
        return EngineCounters()
    found = {wanted.field: _figure(page, wanted, metrics.rank_labels) for wanted in metrics.wanted}
    return EngineCounters(**found)


def _figure(page: bytes, wanted: Wanted, rank_labels: tuple[str, ...]) -> float | None:
    groups: dict[tuple[tuple[str, str], ...], float] = {}
    for number, series in enumerate(_series(page, wanted.family)):
        if wanted.where is not None and series.labels.get(wanted.where[0]) != wanted.where[1]:
            continue
        if series.labels.get(_PRIORITY):
            continue
        if series.value is None or number == MAX_SERIES:
            return None  # a part of a sum is no sum
        kept = tuple(sorted(item for item in series.labels.items() if item[0] not in rank_labels))
        groups[kept] = max(series.value, groups.get(kept, 0.0))
    if not groups:
        return None
    value = sum(groups.values()) if wanted.over is Over.SUM else max(groups.values())
    return None if wanted.zero_is_none and value == 0 else value


def _series(page: bytes, family: str) -> Iterator[_Series]:
    """Yield the samples of a family, wherever they stand in the page."""
    name = family.encode()
    for line in _lines(page, name):
        rest = line[len(name) :].decode("utf-8", "replace")
        labels, value = _split(rest)
        yield _Series(labels, value)


def _lines(page: bytes, name: bytes) -> Iterator[bytes]:
    """Yield whole lines that begin with a name, at most one more than MAX_SERIES, of at most MAX_LINE bytes."""
    begin = 0 if page.startswith(name) else page.find(b"\n" + name) + 1
    for _ in range(MAX_SERIES + 1):
        end = page.find(b"\n", begin)
        if end < 0 or not page.startswith(name, begin):
            return
        after = begin + len(name)
        if after < end <= begin + MAX_LINE and page[after] in _BOUNDARY:
            yield page[begin:end]
        begin = end + 1
        if not page.startswith(name, begin):
            begin = page.find(b"\n" + name, end) + 1
            if begin == 0:
                return


def _split(rest: str) -> tuple[Mapping[str, str], float | None]:
    """Return the labels and the number of what follows a name; a time stamp behind the number is left alone."""
    labels: dict[str, str] = {}
    at = 0
    if rest.startswith("{"):
        at = 1
        while (label := _LABEL.match(rest, at)) is not None:
            labels[label[1]] = label[2]
            at = label.end() + (rest[label.end() : label.end() + 1] == ",")
        if rest[at : at + 1] != "}":
            return labels, None
        at += 1
    words = rest[at:].split()
    return labels, word(words[0]) if words else None
