"""What two arms of an experiment differ in: the one thing that was named, and everything else, with where it comes from; pure.

An algorithm comes with the flags that select it, its draft and the knobs that it alone has: those are the one thing. What its
engine profile implies beside (overlap off, a page size), its environment, a knob that both have, another engine build: those are
not, and an experiment that mixes them says nothing of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specctl.engines.types import AlgoProfile
from specctl.fleet.types import Host, Server
from specctl.rollout import launch as launches
from specctl.rollout.launch import Launch
from specctl.rollout.plan import flag_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm as it would be launched; `build`: what identifies the engine's build, by name."""

    server: Server
    launch: Launch
    profile: AlgoProfile
    build: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, host: Host, server: Server, packages: Mapping[str, str]) -> Side:
        """Return the side of a server in its own algo; `packages`: digests of the engine's packages on the host."""
        build = {"engine profile": server.profile.name, "version": server.profile.version or "", **packages}
        return cls(
            server=server,
            launch=launches.build(host, server, server.algo),
            profile=launches.algo_profile(server, server.algo),
            build=build,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One thing that differs beside what was named; None: is not there. `origin`: who says so."""

    kind: str
    name: str
    a: str | None
    b: str | None
    origin: str

    def __str__(self) -> str:
        return f"{self.name}: {_shown(self.a)} → {_shown(self.b)} ({self.origin})"

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {"kind": self.kind, "name": self.name, "a": self.a, "b": self.b, "origin": self.origin}


def _shown(value: str | None) -> str:
    return "absent" if value is None else value or "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What two arms differ in: `named` in words (None: in nothing that was named, an A/A trial), and all else."""

    named: str | None
    beside: tuple[Deviation, ...] = ()


def compare(a: Side, b: Side) -> Contrast:
    """Compare two sides."""
    beside = [*_builds(a, b), *_knobs(a, b), *_flags(a, b), *_environment(a, b)]
    named = _named(a, b)
    if named is None and beside and a.launch.algo == b.launch.algo:
        first, *beside = beside
        named = f"{first.name} ({_shown(first.a)} → {_shown(first.b)})"
    return Contrast(named=named, beside=tuple(beside))


def _named(a: Side, b: Side) -> str | None:
    if a.launch.algo == b.launch.algo:
        return None
    return f"speculative algorithm ({_worded(a, b)} → {_worded(b, a)})"


def _worded(side: Side, other: Side) -> str:
    """Return an algo with the knobs that it alone has."""
    own = [f"{name} {value}" for name, value in side.launch.knobs.items() if name not in other.launch.knobs]
    return " ".join([side.launch.algo, *own])


def _builds(a: Side, b: Side) -> Iterator[Deviation]:
    for name in dict.fromkeys([*a.build, *b.build]):
        one, other = a.build.get(name), b.build.get(name)
        if one != other:
            yield Deviation(kind="build", name=name, a=one, b=other, origin="another engine build")


def _knobs(a: Side, b: Side) -> Iterator[Deviation]:
    """Yield the knobs that both algos have and that differ."""
    for name in a.launch.knobs:
        one, other = a.launch.knobs[name], b.launch.knobs.get(name)
        if other is not None and one != other:
            origin = f"knobs.{b.launch.algo}.{name}: {_origin(b, f'knobs.{b.launch.algo}.{name}')}"
            yield Deviation(kind="knob", name=name, a=str(one), b=str(other), origin=origin)
    if a.launch.algo != b.launch.algo:
        return
    for name in dict.fromkeys([*a.launch.knobs, *b.launch.knobs]):
        if (name in a.launch.knobs) != (name in b.launch.knobs):
            values = [
                None if value is None else str(value) for side in (a, b) for value in [side.launch.knobs.get(name)]
            ]
            yield Deviation(kind="knob", name=name, a=values[0], b=values[1], origin="given to one arm alone")


def _flags(a: Side, b: Side) -> Iterator[Deviation]:
    before, after = flag_groups(a.launch.words()), flag_groups(b.launch.words())
    own = _own_flags(a) | _own_flags(b)
    for name in dict.fromkeys([*before, *after]):
        if name in own or before.get(name) == after.get(name):
            continue
        side = b if name in after else a
        words = "command" if name == "command" else name
        yield Deviation(
            kind="flag", name=words, a=before.get(name), b=after.get(name), origin=_flag_origin(a, b, side, name)
        )


def _own_flags(side: Side) -> set[str]:
    """Name the flags that are the algorithm itself; its knobs' flags are judged by their knobs."""
    profile = side.profile
    return {*profile.select, *profile.knobs.values(), *([profile.draft] if profile.draft else [])}


def _flag_origin(a: Side, b: Side, side: Side, name: str) -> str:
    for one in (b, a):
        if name in one.profile.implies:
            return f"{one.launch.algo} implies it in engine profile {one.server.profile.name}"
    return _origin(side, f"options.{name}")


def _environment(a: Side, b: Side) -> Iterator[Deviation]:
    before, after = a.launch.env, b.launch.env
    own = {*a.profile.knob_env.values(), *b.profile.knob_env.values()}
    for name in dict.fromkeys([*before, *after]):
        if name in own or before.get(name) == after.get(name):
            continue
        side = next((one for one in (b, a) if name in one.profile.env), None)
        if side is not None:
            origin = f"engine profile {side.server.profile.name} sets it for {side.launch.algo}"
        else:
            origin = _origin(b if name in after else a, f"env.{name}")
        yield Deviation(kind="env", name=name, a=before.get(name), b=after.get(name), origin=origin)


def _origin(side: Side, path: str) -> str:
    found = side.server.provenance.get(path)
    return str(found) if found is not None else "not the inventory's"
