"""The decode algorithms, one file each, found by their file; `ALGOS[name]` is the whole interface."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.algos.types import Algo
from specctl.plugins import discover

ALGOS: Mapping[str, Algo] = discover("specctl.algos", "ALGO", Algo)
