"""Lay the parts of a launch over one another: built in, defaults, hardware, server, groups, host, command line.

A later layer wins; mappings (options, env, knobs, …) merge by key; null takes an inherited value away. Every leaf keeps where it
came from, and what is built in cannot be taken away. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specctl.errors import Problem
from specctl.fleet.positions import Document, KeyPath, dotted
from specctl.fleet.schema_section import Section
from specctl.fleet.types import AgentSettings, Hooks, Limits, Origin, UnitSettings

BUILT_IN = Origin(layer="built in")
COMMAND_LINE = "command line"
LeafPath = tuple[str, ...]
_SAME_SLOT: Mapping[str, str] = {"python": "venv", "venv": "python"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value with its origin; `document` and `at` are its file and path there, None for what no file says."""

    value: object
    origin: Origin
    document: Document | None = None
    at: KeyPath = ()

    @property
    def text(self) -> str:
        """The value as it was written: 0.50 stays 0.50 where text is wanted."""
        spot = self.document.spots.get(self.at) if self.document else None
        return str(self.value) if isinstance(self.value, str) or spot is None or spot.source is None else spot.source

    def problem(self, message: str, *, suggestion: str | None = None, at_key: bool = False) -> Problem:
        """Make a problem of this value, where it stands."""
        if self.document is not None:
            return self.document.problem(self.at, message, suggestion=suggestion, at_key=at_key)
        path = dotted(self.at)
        return Problem(
            file=self.origin.layer, line=None, column=None, path=path, message=message, suggestion=suggestion
        )


Leaves = Mapping[LeafPath, Leaf]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One section of one file (or the command line) that says something about a launch."""

    name: str
    section: Mapping[str, object]
    document: Document | None = None
    path: KeyPath = ()


def built_in_leaves() -> Leaves:
    """Return what holds where no layer says anything."""
    limits, agent = Limits(), AgentSettings()
    values: Mapping[LeafPath, object] = {
        ("algo",): "none",
        ("bind",): "127.0.0.1",
        ("limits", "load"): limits.load_s,
        ("limits", "drain"): limits.drain_s,
        ("limits", "stop"): limits.stop_s,
        ("limits", "stall"): limits.stall_s,
        ("limits", "smoke"): limits.smoke_s,
        ("limits", "guard"): limits.guard_s,
        ("limits", "confirm"): limits.confirm_s,
        ("unit", "restart"): UnitSettings().restart,
        ("agent", "mode"): agent.mode.value,
        ("agent", "objective"): agent.objective.value,
        ("agent", "min_dwell"): agent.min_dwell_s,
        ("agent", "switches_a_day"): agent.switches_a_day,
        ("agent", "outage_ok"): agent.outage_ok,
        ("agent", "table"): agent.table,
        ("agent", "hooks", "limit"): Hooks().limit_s,
    }
    return {path: Leaf(value=value, origin=BUILT_IN, at=path) for path, value in values.items()}


def built_in_host_leaves() -> Leaves:
    """Return what holds for a host that no layer speaks of."""
    values: Mapping[LeafPath, object] = {
        ("connect", "via"): "ssh",
        ("connect", "sudo"): False,
        ("service_manager",): "systemd",
        ("state_dir",): "/var/lib/specctl",
        ("python",): "python3",
    }
    return {path: Leaf(value=value, origin=BUILT_IN, at=path) for path, value in values.items()}


def section_layer(name: str, section: Section | None, document: Document, path: KeyPath) -> Layer | None:
    """Make a layer of a section; None where there is none."""
    if section is None:
        return None
    return Layer(name=name, section=section.said(), document=document, path=path)


def lay(base: Leaves, layers: Sequence[Layer | None]) -> dict[LeafPath, Leaf]:
    """Return the leaves that result from laying each layer over those before it."""
    result = dict(base)
    for layer in layers:
        for path, leaf in _leaves(layer) if layer is not None else ():
            if leaf.value is None:
                _take_away(result, base, path)
                continue
            result.pop((_SAME_SLOT.get(path[0], ""),), None)
            result[path] = leaf
    return result


def _take_away(result: dict[LeafPath, Leaf], base: Leaves, path: LeafPath) -> None:
    """Remove what stands at and below a path; what is built in holds again."""
    for known in [known for known in result if known[: len(path)] == path]:
        del result[known]
    result.update({known: leaf for known, leaf in base.items() if known[: len(path)] == path})


def option_name(key: str) -> str:
    """Return the flag that a key of options means: with its leading dashes."""
    return key if key.startswith("-") else f"--{key}"


def _leaves(layer: Layer) -> Iterator[tuple[LeafPath, Leaf]]:
    for path, at, value in _walk(layer.section, (), layer.path):
        yield path, Leaf(value=value, origin=_origin(layer, at), document=layer.document, at=at)


def _walk(values: Mapping[str, object], path: LeafPath, at: KeyPath) -> Iterator[tuple[LeafPath, KeyPath, object]]:
    for key, value in values.items():
        name = option_name(key) if path == ("options",) else key
        if isinstance(value, Mapping):
            yield from _walk(value, (*path, name), (*at, key))
        else:
            yield (*path, name), (*at, key), value


def _origin(layer: Layer, at: KeyPath) -> Origin:
    spot = layer.document.spots.get(at) if layer.document else None
    if layer.document is None or spot is None:
        return Origin(layer=layer.name)
    return Origin(layer=layer.name, file=layer.document.file, line=spot.key.line, column=spot.key.column)
