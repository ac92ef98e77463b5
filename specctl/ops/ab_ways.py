"""How an experiment gets from arm to arm: a fresh start by a deploy's act, or a word to the running engine; and back at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.errors import UsageError
from specctl.fleet.types import Server
from specctl.measure.ab_trial import Ask, Trial
from specctl.ops import ab_switch
from specctl.ops.ab_switch import Bench
from specctl.ops.calibrate_ways import LiveWay
from specctl.ops.deploy import RELEASES_KEPT
from specctl.ops.engine_live import CannotError, Engine, change
from specctl.ops.reporter import Reporter
from specctl.ops.turn import Aim
from specctl.rollout import launch as launches
from specctl.rollout.gate_types import GateState


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An arm that serves: where, and how long its load took (None: it was no load)."""

    server: Server
    load_s: float | None = None


class Way(Protocol):
    """From arm to arm. `releases`: the release of each arm, by its letter. Raises the SpecctlError of what went wrong."""

    @property
    def releases(self) -> Mapping[str, str]:
        """Return the releases that are on the host for it."""

    def to(self, arm: int) -> Begun:
        """Put an arm into service."""

    def back(self) -> None:
        """Bring back what ran before the experiment."""


# What a deploy says when it went well: of a segment, what it showed is what counts.
WENT_WELL = ("proof", "deployed")


@dataclass(frozen=True, slots=True)
class Brief:
    """Passes on all that an act says but that it went well."""

    reporter: Reporter

    def step(self, host: str, name: str, text: str) -> None:
        """Pass a step on."""
        self.reporter.step(host, name, text)

    def gate(self, host: str, state: GateState) -> None:
        """Pass on how far a load is."""
        self.reporter.gate(host, state)

    def final(self, host: str, name: str, text: str) -> None:
        """Pass on what stays, unless it is that all went well."""
        if name not in WENT_WELL:
            self.reporter.final(host, name, text)


@dataclass(slots=True)
class Fresh:
    """Starts the server anew for every segment."""

    bench: Bench
    trial: Trial
    servers: Sequence[Server]
    before: Aim
    releases: dict[str, str] = field(default_factory=dict)

    def to(self, arm: int) -> Begun:
        """Start an arm and gate it, also where it runs already."""
        letter, server = self.trial.arms[arm].letter, self.servers[arm]
        item = ab_switch.ready(self.bench, server, self.releases.get(letter), *self.releases.values())
        brief = replace(self.bench, reporter=Brief(self.bench.reporter))
        record = ab_switch.put(brief, item, self.before)
        self.releases[letter] = item.plan.release
        return Begun(server=item.server, load_s=record.load_s)

    def back(self) -> None:
        """Start what ran before, unless it runs, and remove releases that nobody needs."""
        ab_switch.restore(self.bench, self.before)
        ab_switch.prune(self.bench, RELEASES_KEPT)


@dataclass(slots=True)
class Told:
    """Tells the running engine each arm's mode."""

    live: LiveWay
    arms: Sequence[Mode]
    releases: dict[str, str] = field(default_factory=dict)

    def to(self, arm: int) -> Begun:
        """Tell the engine an arm's mode, and read back what it says."""
        return Begun(server=self.live.to(self.arms[arm]))

    def back(self) -> None:
        """Tell it what it ran before."""
        self.live.back()


def way_of(bench: Bench, trial: Trial, servers: Sequence[Server]) -> Way:
    """Return the way that the experiment was asked to go."""
    before = ab_switch.way_back(bench.contact, bench.server, trial.before)
    if not trial.ask.live:
        return Fresh(bench, trial, servers, before, dict(trial.releases))
    was = modes.mode(before.algo, before.knobs)
    return Told(LiveWay(Engine(bench.contact, before.server), was), [mode_of(server) for server in servers])


def mode_of(server: Server) -> Mode:
    """Return the mode that a server of the inventory is launched in."""
    profile = launches.algo_profile(server, server.algo)
    told = {*profile.knobs, *(term.knob for term in profile.live_fields.values())}
    knobs = {name: value for name, value in server.knobs.get(server.algo, {}).items() if name in told}
    if "block_size" in profile.knobs and server.draft and server.draft.block_size:
        knobs.setdefault("block_size", server.draft.block_size)
    return modes.mode(server.algo, knobs)


def refuse_cold(servers: Sequence[Server], ask: Ask) -> None:
    """Raise UsageError where a running engine cannot be told the arms."""
    if ask.options_b or ask.env_b or ask.third_arm:
        raise UsageError(
            "--live tells a running engine modes, and neither options nor variables", hint="leave --live out"
        )
    one, other = (mode_of(server) for server in servers)
    try:
        if one != other:
            change(servers[0].profile, one, other)
            change(servers[0].profile, other, one)
    except CannotError as error:
        raise UsageError(f"--live: {error}", hint="leave --live out: every segment is then a fresh start") from error
