"""What all files together declare, by name: one Inventory of several documents; a name in two places is a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from specctl.errors import Problem
from specctl.fleet.positions import Document, KeyPath, Plain, Spot
from specctl.fleet.schema import (
    GroupSection,
    HardwareSection,
    HostSection,
    InventoryFile,
    ModelSection,
    ServerSection,
    SharedSection,
)
from specctl.fleet.schema_profiles import ProfileSection
from specctl.fleet.schema_section import Section

S = TypeVar("S", bound=Section)
S_co = TypeVar("S_co", bound=Section, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[S_co]):
    """One named section and the document that it stands in; `section` is None where the schema refused it."""

    name: str
    document: Document
    path: KeyPath
    section: S_co | None

    def problem(self, message: str, *below: str | int, suggestion: str | None = None, at_key: bool = False) -> Problem:
        """Make a problem of this entry, or of a path below it."""
        path = (*self.path, *below)
        return self.document.problem(path, message, suggestion=suggestion, at_key=at_key or not below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything that the files declare, in file order."""

    profiles: Mapping[str, Entry[ProfileSection]]
    hardware: Mapping[str, Entry[HardwareSection]]
    models: Mapping[str, Entry[ModelSection]]
    servers: Mapping[str, Entry[ServerSection]]
    hosts: Mapping[str, Entry[HostSection]]
    groups: Mapping[str, Entry[GroupSection]]
    defaults: Entry[SharedSection] | None
    files: tuple[str, ...]


class _Collector:
    """Puts entries of several documents under one roof and keeps the first of each name."""

    def __init__(self, parts: Sequence[tuple[Document, InventoryFile]]) -> None:
        self.parts = parts
        self.problems: list[Problem] = []

    def entries(self, key: str, kind: type[S]) -> Mapping[str, Entry[S]]:
        found: dict[str, Entry[S]] = {}
        for document, file in self.parts:
            declared = document.data.get(key)
            sections: Mapping[str, object] = getattr(file, key) or {}
            for name, raw in declared.items() if isinstance(declared, dict) else ():
                entry = Entry(
                    name=name, document=document, path=(key, name), section=_section(kind, sections, name, raw)
                )
                if name in found:
                    self.problems.append(_taken(entry, found[name].document))
                else:
                    found[name] = entry
        return found

    def defaults(self) -> Entry[SharedSection] | None:
        found: Entry[SharedSection] | None = None
        for document, file in self.parts:
            if document.data.get("defaults") is None:
                continue
            entry = Entry(name="defaults", document=document, path=("defaults",), section=file.defaults)
            if found is None:
                found = entry
            else:
                self.problems.append(_taken(entry, found.document))
        return found


def _section(kind: type[S], sections: Mapping[str, object], name: str, raw: Plain) -> S | None:
    """Return the section; an entry of a name alone (`gpu1:`) is an empty one where the schema allows it."""
    section = sections.get(name)
    if isinstance(section, kind):
        return section
    return kind.model_construct() if name in sections and raw is None else None


def _taken(entry: Entry[S], first: Document) -> Problem:
    spot: Spot | None = first.spots.get(entry.path)
    place = f"{first.file}:{spot.key.line}:{spot.key.column}" if spot else first.file
    return entry.problem(f"is declared twice: it stands in {place} already")


def declare(parts: Sequence[tuple[Document, InventoryFile]]) -> tuple[Inventory, tuple[Problem, ...]]:
    """Put the files together."""
    collect = _Collector(parts)
    inventory = Inventory(
        profiles=collect.entries("engine_profiles", ProfileSection),
        hardware=collect.entries("hardware", HardwareSection),
        models=collect.entries("models", ModelSection),
        servers=collect.entries("servers", ServerSection),
        hosts=collect.entries("hosts", HostSection),
        groups=collect.entries("groups", GroupSection),
        defaults=collect.defaults(),
        files=tuple(document.file for document, _ in parts),
    )
    return inventory, tuple(collect.problems)
