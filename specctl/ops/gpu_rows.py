"""Rows of the GPU driver's own tool, as bench and doctor ask for them; what the driver does not say is None."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specctl.control.sample.gpu import throttles_of

TOOL = "nvidia-smi"
# The older name is the only one that drivers before R535 know, and newer ones still take it.
REASONS = "clocks_throttle_reasons.active"
MEGA, MEBI = 1e6, 1 << 20
MOST = 1e9
_INDEX = re.compile(r"[0-9]{1,4}")
_BITS = re.compile(r"0x[0-9a-fA-F]{1,16}")


def queries(fields: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the command lines to try in their order: `index` and other fields with the reasons, then without these."""
    asked = ((*fields, REASONS), tuple(fields))
    return tuple((TOOL, f"--query-gpu={','.join(each)}", "--format=csv,noheader,nounits") for each in asked)


@dataclass(frozen=True, slots=True)
class Row:
    """What the tool printed of one GPU: a cell a field."""

    index: int
    cells: Mapping[str, str]

    @classmethod
    def of(cls, line: str, fields: Sequence[str]) -> Row | None:
        """Read a row of `fields`, the first of them `index`, with the reasons or without; None of a line that is none."""
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(fields) or not _INDEX.fullmatch(cells[0]):
            return None
        return cls(int(cells[0]), dict(zip((*fields, REASONS), cells, strict=False)))

    def number(self, name: str) -> float | None:
        """Return a figure in the tool's own unit."""
        try:
            value = float(self.cells[name])
        except ValueError:
            return None
        return value if 0 <= value < MOST else None

    def whole(self, name: str) -> int | None:
        """Return a figure that has no parts."""
        value = self.number(name)
        return None if value is None else int(value)

    def ratio(self, name: str) -> float | None:
        """Return a percentage as a part of one."""
        value = self.number(name)
        return None if value is None else value / 100

    def hertz(self, name: str) -> float | None:
        """Return a clock, which the tool tells in MHz."""
        value = self.number(name)
        return None if value is None else value * MEGA

    def bytes(self, name: str) -> int | None:
        """Return an amount of memory, which the tool tells in MiB."""
        value = self.whole(name)
        return None if value is None else value * MEBI

    @property
    def throttles(self) -> tuple[str, ...] | None:
        """Return why its clocks are down; None where the tool was not asked or does not say."""
        bits = self.cells.get(REASONS, "")
        return tuple(each.value for each in throttles_of(int(bits, 16))) if _BITS.fullmatch(bits) else None
