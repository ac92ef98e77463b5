"""What is checked: one launch (its argv read back by flag) on one host, with the facts of both; built from values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.engines.types import AlgoProfile
from specctl.fleet.types import Host, Server
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.gpu_facts import Gpu, Graphics, Topology
from specctl.rollout.launch import Launch, engines
from specctl.rollout.machine_facts import Machine
from specctl.rollout.model_facts import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What the engine's own interpreter said: whether it knows the algorithm `name` (None: it did not say) and its version.

    `error` is why it could not be imported; `silent` why it could not be asked at all.
    """

    name: str | None = None
    knows: bool | None = None
    version: str | None = None
    error: str | None = None
    silent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One launch on one host. `argv` and `env` are those of the release that would run, which need not be the inventory's."""

    host: Host
    server: Server
    algo: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    host_facts: HostFacts
    knobs: Mapping[str, int] = field(default_factory=dict)
    capability: Capability | None = None

    @classmethod
    def of(cls, host: Host, server: Server, launch: Launch, host_facts: HostFacts) -> Subject:
        """Build it from a launch, rendered now or stored with a release."""
        return cls(
            host=host,
            server=server,
            algo=launch.algo,
            argv=launch.words(),
            env=launch.env,
            host_facts=host_facts,
            knobs=launch.knobs,
        )

    @property
    def facts(self) -> ServerFacts:
        """Return the facts of the server; those of one that nothing is known of where the host did not speak of it."""
        return self.host_facts.servers.get(self.server.name) or ServerFacts(name=self.server.name)

    @property
    def machine(self) -> Machine:
        """Return the host without its GPUs."""
        return self.host_facts.machine

    @property
    def graphics(self) -> Graphics:
        """Return the host's GPUs."""
        return self.host_facts.graphics

    @property
    def profile(self) -> AlgoProfile:
        """Return how this engine starts the algo; a bare one where the profile no longer has it."""
        return self.server.profile.algos.get(self.algo, AlgoProfile(algo=self.algo))

    def flag(self, name: str) -> str | None:
        """Return the value of a flag (or of an alias of it) as the engine would take it: the last one; None: not given."""
        names = {name, *(other for other, exact in self.server.profile.aliases.items() if exact == name)}
        found = None
        for place, word in enumerate(self.argv):
            head, equals, value = word.partition("=")
            if head in names:
                following = self.argv[place + 1] if place + 1 < len(self.argv) else ""
                found = value if equals else following
        return found

    def number(self, name: str) -> float | None:
        """Return a flag's value as a number; None where it is not given or is none."""
        text = self.flag(name)
        try:
            return float(text) if text is not None else None
        except ValueError:
            return None

    @property
    def tp(self) -> int:
        """Return over how many GPUs the weights are split."""
        flag = self.server.profile.flags.get("tp")
        given = self.number(flag) if flag else None
        return int(given) if given is not None and 1 <= given <= 4096 else self.server.tp or 1

    @property
    def uses_gpus(self) -> bool:
        """Claim that the launch is meant for GPUs: its engine needs some, or the inventory speaks of them."""
        engine = engines().get(self.server.profile.engine)
        declared = bool(self.server.gpus) or self.server.tp is not None
        return declared or engine is None or engine.needs_gpu

    @property
    def chosen(self) -> tuple[int, ...] | None:
        """Return the indices that CUDA_VISIBLE_DEVICES names; None where it names none, or names GPUs by uuid."""
        words = [word.strip() for word in self.env.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip()]
        if not words or not all(word.isdecimal() and len(word) < 5 for word in words):
            return None
        return tuple(int(word) for word in words)

    @property
    def gpus(self) -> tuple[Gpu, ...] | None:
        """Return the GPUs that the engine would use, as far as they are there; None where nothing is known of GPUs."""
        there = self.graphics.gpus
        if there is None or not self.uses_gpus:
            return None
        by_index = {gpu.index: gpu for gpu in there}
        order = self.chosen or tuple(sorted(by_index))
        return tuple(by_index[index] for index in order[: self.tp] if index in by_index)

    @property
    def topology(self) -> Topology | None:
        """Return the GPUs' distances where several work together."""
        return self.graphics.topology if self.tp > 1 else None

    def links(self) -> tuple[tuple[int, int, str], ...]:
        """Return the known links between the GPUs that the engine would use."""
        topology, gpus = self.topology, self.gpus
        if topology is None or gpus is None:
            return ()
        return topology.pairs(gpu.index for gpu in gpus)

    def path_of(self, which: str) -> str | None:
        """Return the folder of the target or draft that the launch names; None where it names none."""
        name = self.server.profile.flags.get("target") if which == "target" else self.profile.draft
        return self.flag(name) if name else None

    def model(self, which: str) -> ModelFacts | None:
        """Return what the host says of the target's or draft's folder; None where it was not asked about that folder."""
        found = self.facts.target if which == "target" else self.facts.draft
        return found if found is not None and found.path == self.path_of(which) else None
