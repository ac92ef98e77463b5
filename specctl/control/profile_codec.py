"""The concurrency profile as a JSON document and back; bounded, versioned, and refused whole where anything in it is wrong.

Pure. Seconds are written to the millisecond, rates to six digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from specctl.control.mode import parse as parse_mode
from specctl.control.profile import HOURS, SLICES, ConcurrencyProfile, Slice, WeekHour
from specctl.control.profile_bins import BINS, Distribution
from specctl.control.profile_rates import CONTEXT_TOPS, MAX_CELLS, Cell
from specctl.control.sample.engine import DecodeSums

VERSION = 1
MAX_BYTES = 1 << 19
"""No profile writes more: one that is full in every slice, hour, bin and cell takes 207 KB (tests/unit/control/test_profile.py)."""
_LARGEST = 1e15

Json = Mapping[str, object]


class ProfileFormatError(ValueError):
    """A document that is no profile of this version. `newer`: it is of a later version, and may well be whole."""

    def __init__(self, what: str, *, newer: bool = False) -> None:
        super().__init__(what)
        self.newer = newer


def to_json(profile: ConcurrencyProfile) -> dict[str, object]:
    """Return the document."""
    return {
        "version": VERSION,
        "observed_s": _short(profile.observed_s),
        "unknown_s": _short(profile.unknown_s),
        "slices": [
            {"begin_s": part.begin_s, "load": _load(part.load), "decoded": _sums(part.decoded)}
            for part in profile.slices
        ],
        "week": [
            None if hour is None else {"at_s": _short(hour.at_s), "load": _load(hour.load)} for hour in profile.week
        ],
        "cells": [_cell(cell) for cell in profile.cells],
    }


def _short(value: float) -> float:
    return round(value, 3)


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def _load(load: Distribution) -> dict[str, object]:
    seconds = {str(place): _short(part) for place, part in enumerate(load.seconds) if part > 0}
    return {"seconds": seconds, "request_s": _short(load.request_s), "unknown_s": _short(load.unknown_s)}


def _sums(sums: DecodeSums) -> list[float]:
    return [_short(part) for part in (sums.steps, sums.requests, sums.busy_s, sums.request_busy_s, sums.tokens)]


def _cell(cell: Cell) -> dict[str, object]:
    return {
        "mode": str(cell.mode),
        "place": cell.place,
        "band": cell.band,
        "at_s": _short(cell.at_s),
        "weight_s": _digits(cell.weight_s),
        "samples": _digits(cell.samples),
        "batch": _digits(cell.batch),
        "tokens_s": _digits(cell.tokens_s),
        "spread": _digits(cell.spread),
        "tokens": _digits(cell.tokens),
        "requests": _digits(cell.requests),
        "context_tokens": None if cell.context_tokens is None else _digits(cell.context_tokens),
    }


def from_json(document: object) -> ConcurrencyProfile:
    """Return the profile; raises ProfileFormatError with what is wrong."""
    top = _object(document, "the document")
    version = top.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ProfileFormatError("it has no version")
    if version > VERSION:
        raise ProfileFormatError(f"it is of version {version}, and this agent reads {VERSION}", newer=True)
    slices = tuple(_read_slice(part) for part in _list(top.get("slices"), "slices", SLICES))
    if any(later.begin_s <= sooner.begin_s for sooner, later in itertools.pairwise(slices)):
        raise ProfileFormatError("its slices are out of order")
    week = tuple(_read_hour(part) for part in _list(top.get("week"), "week", HOURS))
    if len(week) != HOURS:
        raise ProfileFormatError(f"its week has {len(week)} hours")
    cells = {cell.key: cell for cell in map(_read_cell, _list(top.get("cells"), "cells", MAX_CELLS))}
    return ConcurrencyProfile(
        slices=slices,
        week=week,
        cells=tuple(cells.values()),
        observed_s=_number(top.get("observed_s"), "observed_s"),
        unknown_s=_number(top.get("unknown_s"), "unknown_s"),
    )


def _object(value: object, what: str) -> Json:
    if not isinstance(value, dict):
        raise ProfileFormatError(f"{what} is no object")
    return value


def _list(value: object, what: str, most: int) -> Sequence[object]:
    if not isinstance(value, list) or len(value) > most:
        raise ProfileFormatError(f"{what} is no list of at most {most}")
    return value


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        raise ProfileFormatError(f"{what} is no number of 0 or more")
    return float(value)


def _whole(value: object, what: str, below: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise ProfileFormatError(f"{what} is no whole number under {below}")
    return value


def _read_load(value: object) -> Distribution:
    load = _object(value, "a load")
    seconds = [0.0] * BINS
    for place, part in _object(load.get("seconds"), "seconds").items():
        if not (place.isascii() and place.isdigit() and len(place) <= 3):
            raise ProfileFormatError("a bin has no number")
        seconds[_whole(int(place), "a bin", BINS)] = _number(part, "seconds")
    return Distribution(
        seconds=tuple(seconds),
        request_s=_number(load.get("request_s"), "request_s"),
        unknown_s=_number(load.get("unknown_s"), "unknown_s"),
    )


def _read_slice(value: object) -> Slice:
    part = _object(value, "a slice")
    sums = [_number(one, "a sum") for one in _list(part.get("decoded"), "decoded", 5)]
    if len(sums) != 5:
        raise ProfileFormatError("a slice has five sums")
    steps, requests, busy_s, request_busy_s, tokens = sums
    return Slice(
        begin_s=_number(part.get("begin_s"), "begin_s"),
        load=_read_load(part.get("load")),
        decoded=DecodeSums(steps=steps, requests=requests, busy_s=busy_s, request_busy_s=request_busy_s, tokens=tokens),
    )


def _read_hour(value: object) -> WeekHour | None:
    if value is None:
        return None
    hour = _object(value, "an hour")
    return WeekHour(at_s=_number(hour.get("at_s"), "at_s"), load=_read_load(hour.get("load")))


def _read_cell(value: object) -> Cell:
    cell = _object(value, "a cell")
    label, band, context = cell.get("mode"), cell.get("band"), cell.get("context_tokens")
    if not isinstance(label, str):
        raise ProfileFormatError("a cell has no mode")
    try:
        mode = parse_mode(label)
    except ValueError as error:
        raise ProfileFormatError(f"a cell's mode is wrong: {error}") from error
    numbers = {name: _number(cell.get(name), name) for name in _CELL_NUMBERS}
    if not (numbers["weight_s"] > 0 and numbers["batch"] > 0):
        raise ProfileFormatError("a cell has no weight or no batch")
    return Cell(
        mode=mode,
        place=_whole(cell.get("place"), "place", BINS),
        band=None if band is None else _whole(band, "band", len(CONTEXT_TOPS) + 1),
        context_tokens=None if context is None else _number(context, "context_tokens"),
        **numbers,
    )


_CELL_NUMBERS = ("at_s", "weight_s", "samples", "batch", "tokens_s", "spread", "tokens", "requests")
