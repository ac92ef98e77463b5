"""The plan: what a deploy or switch would change on one server, from the desired release and the host's facts; pure."""

from __future__ import annotations

import difflib
import enum
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import ServerFacts, stored_launch
from specctl.rollout.preflight.types import Report
from specctl.rollout.release import Release, differing, next_id


class ChangeKind(enum.Enum):
    """What a change is of."""

    ALGO = "algo"
    KNOB = "knob"
    FLAG = "flag"
    ENV = "env"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that would be different; None: was not there, or will not be."""

    kind: ChangeKind
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done to one server.

    `nothing` says why there is nothing to do; else `release` is the id that would serve, new where `writes` is true. `diff` is
    a unified diff of the main files (no secret is in them). `predicted_s` is the median of `past_loads_s`. `checks` None: nothing
    is to be done, so nothing was checked. `note`: the host's agent is told something new, which touches no server.
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
    checks: Report | None = None
    note: bool = False

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
            "changes": [
                {"kind": c.kind.value, "name": c.name, "before": c.before, "after": c.after} for c in self.changes
            ],
            "arguments_changed": self.arguments_changed,
            "arguments": self.arguments,
            "files": list(self.files),
            "diff": self.diff,
            "past_loads_s": list(self.past_loads_s),
            "predicted_s": self.predicted_s,
            "warnings": list(self.warnings),
            "knobs": dict(self.knobs),
            "checks": self.checks.as_wire() if self.checks else None,
            "note": self.note,
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


def _differences(kind: ChangeKind, before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    names = list(dict.fromkeys([*before, *after]))
    return [
        Change(kind=kind, name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def launch_changes(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[tuple[Change, ...], int, int]:
    """Compare two launches as manifests keep them: the changes, how many flags differ, and of how many in all."""
    flags_before, flags_after = flag_groups(_words(before)), flag_groups(_words(after))
    flags = _differences(ChangeKind.FLAG, flags_before, flags_after)
    changes = (*flags, *_differences(ChangeKind.ENV, _environment(before), _environment(after)))
    return changes, len(flags), len({*flags_before, *flags_after} - {"command"})


def _words(launch: Mapping[str, object]) -> list[str]:
    argv = launch.get("argv")
    return [str(word) for word in argv] if isinstance(argv, list) else []


def _environment(launch: Mapping[str, object]) -> Mapping[str, str]:
    env = launch.get("env")
    return {str(key): str(value) for key, value in env.items()} if isinstance(env, Mapping) else {}


def _idle_reason(facts: ServerFacts, algo: str, files: tuple[str, ...], release: str) -> str | None:
    """Say why there is nothing to do, or None when there is something."""
    current = facts.current
    if current is None or files or (current.id, current.algo) != (release, algo) or facts.drift:
        return None
    if facts.unit.active != "active" or facts.guard is not None:
        return None
    moved = live_move(facts)
    at_start = "" if moved is None else f"; a start would run that, and {moved.who} has it on {moved} live"
    return f"release {current.id} runs {algo} already, and every file is the same{at_start}"


def diff_text(before: str, after: str, name: str) -> str:
    """Return a unified diff of two main files."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"running/{name}", f"planned/{name}", lineterm="", n=1
    )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What should serve, as it is compared: a release's launch of one algo, its knobs and the text of its main file."""

    host: str
    server: str
    algo: str
    release: str
    launch: Mapping[str, object]
    knobs: Mapping[str, int]
    unit_name: str
    unit_text: str


def make(wish: Wish, facts: ServerFacts, *, files: tuple[str, ...], writes: bool, force: bool = False) -> Plan:
    """Plan a wish for a server whose facts are known; `files` names the release files that differ from the host's."""
    current = facts.current
    nothing = None if force else _idle_reason(facts, wish.algo, files, wish.release)
    before = stored_launch(current.manifest, current.algo) if current else {}
    changes, changed, flags = launch_changes(before, wish.launch)
    old_knobs = {name: str(value) for name, value in (current.knobs() if current else {}).items()}
    knobs = _differences(ChangeKind.KNOB, old_knobs, {name: str(value) for name, value in wish.knobs.items()})
    algo = Change(kind=ChangeKind.ALGO, name="algo", before=current.algo if current else None, after=wish.algo)
    loads = tuple(load.total_s for load in facts.past_loads(wish.algo))
    return Plan(
        host=wish.host,
        server=wish.server,
        algo=wish.algo,
        release=wish.release,
        writes=writes,
        running=(current.id, current.algo) if current else None,
        nothing=nothing,
        changes=(*([algo] if algo.before != algo.after else []), *knobs, *changes),
        arguments_changed=changed,
        arguments=flags,
        files=files,
        diff="" if nothing else diff_text(facts.current_unit, wish.unit_text, wish.unit_name),
        past_loads_s=loads,
        predicted_s=statistics.median(loads) if loads else None,
        warnings=(*((facts.guard.words(),) if facts.guard else ()), *facts.drift, *facts.warnings),
        knobs=wish.knobs,
    )


def of_release(release: Release, algo: str, facts: ServerFacts, *, host: str, force: bool = False) -> Plan:
    """Plan a rendered release: written anew when a file differs.

    `release` must be rendered under the id of the host's current release when there is one, so that it can be compared; the
    plan's own `release` says under which id it has to be written.
    """
    current = facts.current
    files = differing(release, current.manifest) if current else tuple(file.name for file in release.files)
    writes = bool(files) or current is None
    unit = release.file(release.units[algo])
    wish = Wish(
        host=host,
        server=release.server,
        algo=algo,
        release=next_id(facts.releases) if writes or current is None else current.id,
        launch=release.launches[algo],
        knobs=release.knobs[algo],
        unit_name=release.units[algo],
        unit_text=unit.content if unit else "",
    )
    return make(wish, facts, files=files, writes=writes, force=force)
