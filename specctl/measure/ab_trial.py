"""A trial: what an A/B experiment was asked, what it compares, on what, in which order, and what was measured; values alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specctl.measure.ab_diff import Deviation
from specctl.measure.ab_types import Arm, Segment
from specctl.rollout.plan import flag_groups

ARM_A, ARM_B, ARM_CHAIN = 0, 1, 2
# The smallest difference that anybody would change a server for, where nobody says another.
WANTED = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the command line asks for: both modes as they are spelled, and how much is measured of them.

    `options_b`, `env_b`: NAME=VALUE over B's launch alone. `live`: one engine that is told the modes over HTTP. `wanted`: the
    smallest difference that matters, as a part.
    """

    a: str
    b: str
    concurrency: tuple[int, ...] = (1,)
    tokens: int = 512
    prompts: str = "mixed"
    cycles: int = 2
    runs: int = 3
    rounds: int = 4
    seconds: float = 0.0
    warmup: int = 1
    seed: int = 0
    wanted: float = WANTED
    options_b: tuple[str, ...] = ()
    env_b: tuple[str, ...] = ()
    confounded: bool = False
    third_arm: bool = False
    live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An experiment, begun or done.

    `named`: the one thing that differs, `beside` what else does. `pairs`: which arms are compared. `before`: release and algo that
    ran, and are brought back. `releases`: the release of each arm once it is on the host. `facts`: what must stay as it is for the
    segments to be of one experiment. `exact`: the engine computes alike every time. `gpu`: it computes on GPUs.
    """

    id: str
    began: str
    specctl: str
    host: str
    server: str
    ask: Ask
    arms: tuple[Arm, ...]
    order: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    before: tuple[str, str]
    named: str | None
    beside: tuple[Deviation, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    exact: bool = False
    gpu: bool = True
    resumed: int = 0
    segments: tuple[Segment, ...] = ()

    @property
    def letters(self) -> str:
        """Return the arms' letters, in order."""
        return "".join(arm.letter for arm in self.arms)

    def between(self, base: int, other: int) -> str:
        """Say which arms a comparison is of, and of what, where there is more than one comparison; empty where there is one."""
        if len(self.pairs) < 2:
            return ""
        of = {
            (ARM_CHAIN, ARM_B): "the algorithm alone",
            (ARM_A, ARM_CHAIN): "the flags that come with it alone",
            (ARM_A, ARM_B): "both together",
        }
        what = of.get((base, other), "of all that differs")
        return f"{self.letters[other]} against {self.letters[base]}, {what}"

    @property
    def done(self) -> bool:
        """Claim that every segment was measured."""
        return len(self.segments) == len(self.order)


def changed(kept: Trial, now: Trial) -> tuple[str, ...]:
    """Say what is no longer as it was when a trial began: segments from before and after would be of two experiments."""
    return (*_arms(kept, now), *_facts(kept, now))


def _arms(kept: Trial, now: Trial) -> Iterator[str]:
    for one, other in zip(kept.arms, now.arms, strict=False):
        before, after = flag_groups(one.words), flag_groups(other.words)
        flags = {name: (before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])}
        variables = {name: (one.env.get(name), other.env.get(name)) for name in dict.fromkeys([*one.env, *other.env])}
        for name, (was, is_now) in [*flags.items(), *variables.items()]:
            if was != is_now:
                yield f"arm {one.letter}: {name} was {_value(was)} and is {_value(is_now)}"
    if len(kept.arms) != len(now.arms):
        yield f"there were {len(kept.arms)} arms and are {len(now.arms)}"


def _facts(kept: Trial, now: Trial) -> Iterator[str]:
    for name in dict.fromkeys([*kept.facts, *now.facts]):
        was, is_now = kept.facts.get(name), now.facts.get(name)
        if was != is_now:
            yield f"{name} was {_value(was)} and is {_value(is_now)}"


def _value(value: str | None) -> str:
    return "absent" if value is None else value or "set"
