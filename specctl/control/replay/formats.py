"""The text of a trace, in any format that is known by its first line, into requests, rates or a concurrency series.

Called by adapters/trace_files.py with a file's text. The first fault ends it, as MisreadError with its line.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from specctl.control import profile_codec
from specctl.control.replay import profiled
from specctl.control.replay.arrivals import Windows
from specctl.control.replay.load import Requests, Series

STEP_S = 1.0
MOST_ROWS = 5_000_000
MOST_STEPS = 5_000_000
MOST_TOKENS = 10_000_000
MOST_LEVEL = 1_000_000
# How long the only window of a trace of rates lasts, where no other one tells: that of the published ones.
ONLY_WINDOW_S = 600.0

Trace = Requests | Windows | Series
Row = tuple[int, Sequence[str]]


class MisreadError(ValueError):
    """What is wrong, with the number of the line, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


def parse(text: str) -> Trace:
    """Read a trace; its first line says which format it has. Raises MisreadError."""
    lines = text.splitlines()
    if not lines:
        raise MisreadError(1, "the file is empty")
    if len(lines) > MOST_ROWS:
        raise MisreadError(MOST_ROWS + 1, f"a trace has at most {MOST_ROWS} lines")
    if (even := _even_series(lines)) is not None:
        return even
    if lines[0].lstrip().startswith("{"):
        return _profiled(text) if '"slices"' in text else _series(_recorded(lines))
    header = tuple(cell.strip().lower() for cell in lines[0].split(","))
    if header not in FORMATS:
        known = ", or ".join(",".join(names) for names in FORMATS)
        raise MisreadError(1, f"no known format begins so; a header is {known}; JSON is a recording or a profile")
    return FORMATS[header](_rows(lines, len(header)))


def _rows(lines: Sequence[str], width: int) -> Iterator[Row]:
    """Yield the rows after the header with the number of their line; blank ones are passed over."""
    try:
        for number, row in enumerate(csv.reader(lines), start=1):
            if number == 1 or not row:
                continue
            if len(row) != width:
                raise MisreadError(number, f"{len(row)} columns where the header has {width}")
            yield number, row
    except csv.Error as error:
        raise MisreadError(1, f"not a table: {error}") from error


def _dated(rows: Iterator[Row]) -> Requests:
    """Read AzurePublicDataset's inference traces: a date and time, tokens of the prompt and of the answer."""
    return _requests((line, _moment(line, row[0]), row[1], row[2]) for line, row in rows)


def _timed(rows: Iterator[Row]) -> Requests:
    """Read the same with seconds in place of dates."""
    return _requests((line, _number(line, row[0], "a time in seconds"), row[1], row[2]) for line, row in rows)


def _requests(rows: Iterator[tuple[int, float, str, str]]) -> Requests:
    """Put requests in the order of their arrival and count from the first; one that generated nothing counts as one token."""
    found = [
        (at, _count(line, prompt, "tokens of a prompt"), max(1, _count(line, answer, "generated tokens")))
        for line, at, prompt, answer in rows
    ]
    if not found:
        raise MisreadError(2, "there is no request")
    found.sort(key=lambda row: row[0])
    first = found[0][0]
    at_s, inputs, outputs = zip(*found, strict=True)
    return Requests(at_s=[at - first for at in at_s], inputs=inputs, outputs=outputs, span_s=at_s[-1] - first)


def _windows(rows: Iterator[Row]) -> Windows:
    """Read requests a second by window; the last window lasts as long as the one before it."""
    starts: list[float] = []
    rates: list[float] = []
    for line, (start, rate) in rows:
        starts.append(_number(line, start, "a time in seconds"))
        rates.append(_number(line, rate, "a rate"))
        if rates[-1] < 0:
            raise MisreadError(line, f"a rate is not below zero: {rate}")
        if len(starts) > 1 and starts[-1] <= starts[-2]:
            raise MisreadError(line, f"{start} is not after the window before it")
    if not starts:
        raise MisreadError(2, "there is no window")
    last_s = starts[-1] - starts[-2] if len(starts) > 1 else ONLY_WINDOW_S
    return Windows(starts_s=[start - starts[0] for start in starts], rates=rates, last_s=last_s)


def _concurrency(rows: Iterator[Row]) -> Series:
    """Read a concurrency over time, as a table."""
    return _series(
        (line, _number(line, time, "a time in seconds"), _level(line, level)) for line, (time, level) in rows
    )


def _even_series(lines: Sequence[str]) -> Series | None:
    """Read a table of a concurrency second by second all at once, which is how long ones come; None: it is anything else.

    What is wrong with a table is for the slower way to find.
    """
    table = lines[0].replace(" ", "").lower() == "time_s,concurrency"
    if not table or any(line.count(",") != 1 for line in lines):
        return None
    try:
        values = [float(cell) for cell in ",".join(lines[1:]).split(",")]
    except ValueError:
        return None
    times, levels = values[::2], values[1::2]
    if not times or not all(0 <= level <= MOST_LEVEL for level in levels):
        return None
    first = times[0]
    if any(at - first != step for step, at in enumerate(times)):
        return None
    return Series(step_s=STEP_S, levels=levels)


def _profiled(text: str) -> Series:
    """Read the concurrency profile that the agent keeps of a server."""
    try:
        return profiled.series(profile_codec.from_json(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise MisreadError(1, f"not a profile of the agent's: {error}") from error


def _recorded(lines: Sequence[str]) -> Iterator[tuple[int, float, float | None]]:
    """Yield what a recording has: one JSON object a line, with `time_s` and `concurrency`, null where it was not known."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MisreadError(number, f"not JSON: {error}") from error
        if not isinstance(values, dict) or not {"time_s", "concurrency"} <= values.keys():
            raise MisreadError(number, "a recording's line is an object with time_s and concurrency")
        level = values["concurrency"]
        known = None if level is None else _level(number, str(level))
        yield number, _number(number, str(values["time_s"]), "a time in seconds"), known


def _series(rows: Iterator[tuple[int, float, float | None]]) -> Series:
    """Lay levels on steps of a second: each holds until the next; one that is not known, as long as the one before it."""
    levels: list[float] = []
    first = before = 0.0
    held: float | None = None
    for line, at, level in rows:
        if held is None:
            first = at
        elif at <= before:
            raise MisreadError(line, f"{at:g} s is not after the row before it")
        else:
            due = math.ceil((at - first) / STEP_S) - len(levels)
            if len(levels) + due > MOST_STEPS:
                raise MisreadError(line, f"a series lasts at most {MOST_STEPS * STEP_S:.0f} s")
            levels.extend([held] * due)
        before, held = at, level if level is not None else held or 0.0
    if held is None:
        raise MisreadError(2, "there is no concurrency")
    levels.append(held)
    return Series(step_s=STEP_S, levels=levels)


def _moment(line: int, text: str) -> float:
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise MisreadError(line, f"not a date and time: {text[:40]!r}") from None


def _number(line: int, text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise MisreadError(line, f"not {what}: {text[:40]!r}") from None
    if not abs(value) <= 1e12:
        raise MisreadError(line, f"not {what}: {text[:40]}")
    return value


def _count(line: int, text: str, what: str) -> int:
    value = _number(line, text, what)
    if not 0 <= value <= MOST_TOKENS or value != int(value):
        raise MisreadError(line, f"{what}: a whole number from 0 to {MOST_TOKENS} is wanted, not {text[:40]}")
    return int(value)


def _level(line: int, text: str) -> float:
    value = _number(line, text, "a concurrency")
    if not 0 <= value <= MOST_LEVEL:
        raise MisreadError(line, f"a concurrency is 0 to {MOST_LEVEL}, not {text[:40]}")
    return value


FORMATS: Mapping[tuple[str, ...], Callable[[Iterator[Row]], Trace]] = {
    ("timestamp", "contexttokens", "generatedtokens"): _dated,
    ("timestamp_s", "input_tokens", "output_tokens"): _timed,
    ("window_start_s", "rate_rps"): _windows,
    ("time_s", "concurrency"): _concurrency,
}
