"""References: whatever is named must be declared, be of the right kind, and stand once in a list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from specctl.errors import Problem
from specctl.fleet.declared import Entry, Inventory
from specctl.fleet.positions import shorten
from specctl.fleet.profiles import Profiles
from specctl.fleet.schema import ModelSection, ServerSection
from specctl.fleet.schema_section import Section
from specctl.fleet.suggest import listed, nearest


def check(inventory: Inventory, profiles: Profiles) -> Iterator[Problem]:
    """Yield what is named but not there."""
    for host in inventory.hosts.values():
        if host.section is None:
            continue
        if host.section.hardware is not None:
            yield from _one(host, "hardware", host.section.hardware, "hardware", inventory.hardware)
        yield from _many(host, "groups", host.section.groups or (), "group", inventory.groups)
        yield from _many(host, "servers", host.section.servers or (), "server", inventory.servers)
    for group in inventory.groups.values():
        members = group.section.hosts if group.section else None
        yield from _many(group, "hosts", members or (), "host", inventory.hosts)
    for server in inventory.servers.values():
        if server.section is not None:
            yield from _one(server, "engine", server.section.engine, "engine profile", profiles.names())
            yield from _models(inventory, server, server.section)
    for model in inventory.models.values():
        if model.section is not None:
            yield from _model(inventory, model, model.section)


def _one(entry: Entry[Section], key: str, name: str, kind: str, known: Collection[str]) -> Iterator[Problem]:
    if name not in known:
        yield _missing(entry, (key,), name, kind, known)


def _many(
    entry: Entry[Section], key: str, names: Sequence[str], kind: str, known: Collection[str]
) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield _missing(entry, (key, index), name, kind, known)
        elif name in names[:index]:
            yield entry.problem(f"names {name} twice", key, index)


def _missing(
    entry: Entry[Section], below: Sequence[str | int], name: str, kind: str, known: Collection[str]
) -> Problem:
    near = nearest(name, known)
    hint = "" if near else f" (there is {listed(known)})"
    return entry.problem(f"there is no {kind} {shorten(name)}{hint}", *below, suggestion=near)


def _models(inventory: Inventory, server: Entry[ServerSection], section: ServerSection) -> Iterator[Problem]:
    for key, name in (("target", section.target), ("draft", section.draft)):
        if name is None:
            continue
        yield from _one(server, key, name, "model", inventory.models)
        entry = inventory.models.get(name)
        if entry is not None and entry.section is not None and entry.section.kind != key:
            yield server.problem(
                f"{name} is a {entry.section.kind}, not a {key}: say kind: {key} in models.{name}", key
            )
    trained = _trained_for(inventory, section.draft)
    if trained is not None and trained != section.target and section.target in inventory.models:
        yield server.problem(f"{section.draft} drafts for {trained}, not for {section.target}", "draft")


def _trained_for(inventory: Inventory, draft: str | None) -> str | None:
    entry = inventory.models.get(draft) if draft is not None else None
    return entry.section.target if entry is not None and entry.section is not None else None


def _model(inventory: Inventory, entry: Entry[ModelSection], section: ModelSection) -> Iterator[Problem]:
    if section.kind == "target":
        for key in ("block_size", "target"):
            if getattr(section, key) is not None:
                yield entry.problem("only a draft has this: say kind: draft", key, at_key=True)
        return
    if section.target is not None:
        yield from _one(entry, "target", section.target, "model", inventory.models)
        target = inventory.models.get(section.target)
        if target is not None and target.section is not None and target.section.kind != "target":
            yield entry.problem(f"{section.target} is a draft itself", "target")
