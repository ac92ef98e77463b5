"""The plan: what a deploy or switch would change on one server, from the desired release and the host's facts; pure."""

from __future__ import annotations

import difflib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.rollout.facts import ServerFacts
from specctl.rollout.launch import Launch
from specctl.rollout.release import Release, differing, next_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that would be different; None: was not there, or will not be."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done to one server.

    `nothing` says why there is nothing to do; else `release` is the id that would serve, new where `writes` is true. `diff` is
    a unified diff of the main files (no secret is in them). `predicted_s` is the median of `past_loads_s`.
    """

    host: str
    server: str
    algo: str
    release: str
    writes: bool
    running: tuple[str, str] | None
    nothing: str | None = None
    changes: tuple[Change, ...] = ()
    arguments_changed: int = 0
    arguments: int = 0
    files: tuple[str, ...] = ()
    diff: str = ""
    past_loads_s: tuple[float, ...] = ()
    predicted_s: float | None = None
    warnings: tuple[str, ...] = ()
    knobs: Mapping[str, int] = field(default_factory=dict)

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the plan (docs/json.md)."""
        return {
            "host": self.host,
            "server": self.server,
            "algo": self.algo,
            "release": self.release,
            "writes": self.writes,
            "running": list(self.running) if self.running else None,
            "nothing": self.nothing,
            "changes": [{"name": c.name, "before": c.before, "after": c.after} for c in self.changes],
            "arguments_changed": self.arguments_changed,
            "arguments": self.arguments,
            "files": list(self.files),
            "diff": self.diff,
            "past_loads_s": list(self.past_loads_s),
            "predicted_s": self.predicted_s,
            "warnings": list(self.warnings),
            "knobs": dict(self.knobs),
        }


def flag_groups(words: Sequence[str]) -> Mapping[str, str]:
    """Group an argv by flag: each `--flag` with the words behind it; what stands before the first flag is `command`."""
    groups: dict[str, list[str]] = {"command": []}
    name = "command"
    for word in words:
        if word.startswith("--"):
            name = word
            groups.setdefault(name, [])
        else:
            groups[name].append(word)
    return {key: " ".join(values) for key, values in groups.items()}


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    names = list(dict.fromkeys([*before, *after]))
    return [
        Change(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def compare(launch: Launch, stored: Mapping[str, object] | None) -> tuple[tuple[Change, ...], int]:
    """Return what a launch changes against the stored one of a manifest, and how many of its flags differ."""
    found = stored or {}
    argv = found.get("argv")
    env = found.get("env")
    old_flags = flag_groups([str(word) for word in argv]) if isinstance(argv, list) else {}
    flags = _differences(old_flags, flag_groups(launch.words()))
    old_env = {str(key): str(value) for key, value in env.items()} if isinstance(env, Mapping) else {}
    return (*flags, *_differences(old_env, launch.env)), len(flags)


def _stored_launch(facts: ServerFacts) -> Mapping[str, object] | None:
    if facts.current is None:
        return None
    launches = facts.current.manifest.get("launches")
    found = launches.get(facts.current.algo) if isinstance(launches, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _idle_reason(facts: ServerFacts, algo: str, files: tuple[str, ...]) -> str | None:
    """Say why there is nothing to do, or None when there is something."""
    current = facts.current
    if current is None or files or current.algo != algo or facts.drift:
        return None
    if facts.unit.active != "active":
        return None
    return f"release {current.id} runs {algo} already, and every file is the same"


def diff_text(before: str, after: str, name: str) -> str:
    """Return a unified diff of two main files."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"running/{name}", f"planned/{name}", lineterm="", n=1
    )
    return "\n".join(lines)


def make(
    release: Release,
    launch: Launch,
    facts: ServerFacts,
    *,
    current_unit: str = "",
    force: bool = False,
) -> Plan:
    """Plan the release and algo for a server whose facts are known.

    `release` must be rendered under the id of the host's current release when there is one, so that it can be compared; the
    plan's own `release` says under which id it has to be written.
    """
    current = facts.current
    files = differing(release, current.manifest) if current else tuple(file.name for file in release.files)
    nothing = None if force else _idle_reason(facts, launch.algo, files)
    changes, flags = compare(launch, _stored_launch(facts))
    knobs = [Change(name=name, before=None, after=str(value)) for name, value in launch.knobs.items()]
    algo = Change(name="algo", before=current.algo if current else None, after=launch.algo)
    writes = bool(files) or current is None
    unit = release.file(release.units[launch.algo])
    loads = facts.past_loads_s
    return Plan(
        host=launch.host,
        server=launch.server,
        algo=launch.algo,
        release=next_id(facts.releases) if writes or current is None else current.id,
        writes=writes,
        running=(current.id, current.algo) if current else None,
        nothing=nothing,
        changes=(*([algo] if algo.before != algo.after else []), *knobs, *changes),
        arguments_changed=flags,
        arguments=len(flag_groups(launch.words())) - 1,
        files=files,
        diff=diff_text(current_unit, unit.content if unit else "", release.units[launch.algo]) if not nothing else "",
        past_loads_s=loads,
        predicted_s=statistics.median(loads) if loads else None,
        warnings=facts.warnings,
        knobs=launch.knobs,
    )
