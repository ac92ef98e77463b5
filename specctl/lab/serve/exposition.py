"""Write families of samples as Prometheus text (format 0.0.4); numbers are written so that they read back exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from specctl.lab.serve.histogram import Distribution

Labels = Mapping[str, str]
Value = int | float | Distribution
LONGEST_PLAIN = 6
"""Digits before the point that are still written plainly."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric: its name, type, help and samples."""

    name: str
    kind: str
    meaning: str
    samples: tuple[tuple[Labels, Value], ...]


def text(families: Iterable[Family]) -> str:
    """Return the families as one page."""
    return "".join(line + "\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    """Yield a family's lines."""
    yield f"# HELP {family.name} {family.meaning}"
    yield f"# TYPE {family.name} {family.kind}"
    for labels, value in family.samples:
        if isinstance(value, Distribution):
            yield from _distribution(family.name, labels, value)
        else:
            yield _sample(family.name, labels, value)


def _distribution(name: str, labels: Labels, value: Distribution) -> Iterator[str]:
    """Yield a histogram's samples in the order of the real server: sum, buckets, count."""
    yield _sample(f"{name}_sum", labels, value.total)
    for edge, count in value.buckets:
        yield _sample(f"{name}_bucket", {**labels, "le": "+Inf" if edge == float("inf") else _number(edge)}, count)
    yield _sample(f"{name}_count", labels, value.count)


def _sample(name: str, labels: Labels, value: float) -> str:
    """Return one sample's line, its labels in alphabetic order."""
    inner = ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels))
    return f"{name}{{{inner}}} {_number(value)}" if inner else f"{name} {_number(value)}"


def _number(value: float) -> str:
    """Return a number as Prometheus' own clients write it: from a million on with an exponent, whatever the precision needs."""
    if math.isnan(value):
        return "NaN"
    plain = repr(float(value))
    dot = plain.find(".")
    if value > 0 and dot > LONGEST_PLAIN and "e" not in plain:
        mantissa = f"{plain[0]}.{plain[1:dot]}{plain[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return plain


def _escaped(label: str) -> str:
    """Return a label's value with its special characters escaped."""
    return label.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
