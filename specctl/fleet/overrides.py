"""What a command line says over an inventory; a value, imported by commands before anything heavy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.engines.types import FlagValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The last layer: `knobs` are those of the algo that results; options and variables merge by name."""

    algo: str | None = None
    knobs: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, FlagValue] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.algo or self.knobs or self.options or self.env)
