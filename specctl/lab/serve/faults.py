"""The faults that a test may ask the lab's server for, as values; the modules they bend ask this one what to do.

Refused unless SPECCTL_LAB_ALLOW_FAULTS=1, so that no machine is ever bent by accident. docs/lab-server.md lists them for people.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ALLOW_VARIABLE = "SPECCTL_LAB_ALLOW_FAULTS"
PHASES = ("init", "weights", "draft", "kv", "graph", "warmup", "serving")
"""Where a crash or a hang can be placed; `serving` is the first decode step of a client's request."""
OOM_PHASES = ("weights", "graph")


class FaultRefusedError(ValueError):
    """An `--inject` argument that is unknown, badly spelled or not allowed here."""


class Takes(enum.Enum):
    """What follows the colon of a fault."""

    NOTHING = "nothing"
    PHASE = "phase"
    OOM_PHASE = "oom phase"
    SECONDS = "seconds"
    COUNT = "count"


CATALOGUE: Mapping[str, tuple[Takes, str]] = {
    "crash": (Takes.PHASE, "raise in that phase: traceback, SIGQUIT lines, exit 137, as any scheduler failure"),
    "hang": (Takes.PHASE, "stop for ever in that phase without a word"),
    "exit137": (Takes.PHASE, "die of SIGKILL in that phase without a word, as under the kernel's OOM killer"),
    "oom": (Takes.OOM_PHASE, "raise torch's out-of-memory text in that phase, exit 137"),
    "crash-after": (Takes.SECONDS, "crash that long after the server is ready"),
    "claims-ddtree-runs-linear": (
        Takes.NOTHING,
        "say DDTREE in every answer, decode the linear chain, print no DDTREE line",
    ),
    "claims-dflash-runs-none": (Takes.NOTHING, "say DFLASH in every answer, decode without speculation"),
    "never-ready": (Takes.NOTHING, "the warm-up never ends: /ready and /health stay 503"),
    "half-answer": (Takes.NOTHING, "cut every HTTP answer of a client's request in half"),
    "stale-gauges": (Takes.NOTHING, "gauges keep the values of the first decode log line"),
    "metric-depth-off": (Takes.NOTHING, "the DDTREE line says a depth that is 3 too large"),
    "commit-truncated": (Takes.NOTHING, "the DDTREE line never says more than 2 for the commit length"),
    "bonus-missing": (Takes.NOTHING, "the DDTREE line leaves the bonus token out of the commit length"),
    "commit-claimed": (Takes.NOTHING, "the DDTREE line says drafts + 1 for the commit length, whatever was committed"),
    "mask-wrong": (Takes.NOTHING, "a tree's nodes see nodes that are no ancestors of theirs"),
    "position-off-by-one": (Takes.NOTHING, "drafts are verified one position too far"),
    "position-is-index": (Takes.NOTHING, "a tree's nodes are verified at positions by their index, not their depth"),
    "kv-not-moved": (Takes.NOTHING, "keys and values of an accepted path stay where the pass wrote them"),
    "features-wrong": (Takes.NOTHING, "the drafter is fed the features of the first nodes instead of the path's"),
    "drafts-discarded": (Takes.NOTHING, "all but one of the accepted drafts are thrown away; the counters count them"),
    "walk-short": (Takes.NOTHING, "the walk stops after one draft whatever the target says below it"),
    "budget-ignored": (Takes.NOTHING, "trees have up to twice the nodes that the budget allows"),
    "early-stop": (Takes.COUNT, "every request ends after that many tokens, saying that its limit was reached"),
    "slow-nodes": (Takes.SECONDS, "every token that a verify step packs costs that much more"),
    "garbage-metrics": (Takes.NOTHING, "/metrics answers 200 with text that is no exposition"),
    "wrong-token": (Takes.COUNT, "every Nth committed token is replaced: decoding is no longer lossless"),
    "slow-steps": (Takes.SECONDS, "sleep that long before every step"),
    "ignore-sigterm": (Takes.NOTHING, "SIGTERM does nothing"),
    "port-late": (Takes.SECONDS, "bind the port that long after everything else is ready"),
    "silent-load": (Takes.NOTHING, "print nothing while loading"),
}
ALIASES: Mapping[str, str] = {"stale-gauge": "stale-gauges"}
"""Other spellings that are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One injected fault: its name and, where it takes one, its phase or number."""

    name: str
    phase: str | None = None
    number: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The injected faults of one run."""

    active: tuple[Fault, ...] = field(default=())

    def has(self, name: str) -> bool:
        """Tell whether this fault was injected."""
        return self._known(name) is not None

    def number(self, name: str) -> float | None:
        """Return the fault's number, or None when it was not injected."""
        found = self._known(name)
        return None if found is None else found.number

    def at(self, phase: str) -> tuple[Fault, ...]:
        """Return the faults that strike in this phase."""
        return tuple(fault for fault in self.active if fault.phase == phase)

    def _known(self, name: str) -> Fault | None:
        """Return the injected fault of that name."""
        if name not in CATALOGUE:
            raise KeyError(name)
        return next((fault for fault in self.active if fault.name == name), None)


def allowed(environ: Mapping[str, str]) -> bool:
    """Tell whether this environment permits faults."""
    return environ.get(ALLOW_VARIABLE) == "1"


def parse(texts: Sequence[str], *, allowed: bool) -> Faults:
    """Read the `--inject` arguments; raise FaultRefusedError for the first one that cannot be injected."""
    if texts and not allowed:
        raise FaultRefusedError(f"argument --inject: faults are refused unless {ALLOW_VARIABLE}=1 is set")
    return Faults(active=tuple(_parse_one(text) for text in texts))


def _parse_one(text: str) -> Fault:
    """Read one `NAME` or `NAME:PARAMETER`."""
    spelled, colon, parameter = text.partition(":")
    name = ALIASES.get(spelled, spelled)
    if name not in CATALOGUE:
        raise FaultRefusedError(f"argument --inject: unknown fault {name!r} (choose from {', '.join(CATALOGUE)})")
    takes = CATALOGUE[name][0]
    if takes is Takes.NOTHING:
        if colon:
            raise FaultRefusedError(f"argument --inject: {name} takes no parameter")
        return Fault(name=name)
    if takes in {Takes.PHASE, Takes.OOM_PHASE}:
        choices = PHASES if takes is Takes.PHASE else OOM_PHASES
        if parameter not in choices:
            raise FaultRefusedError(f"argument --inject: {name} needs a phase: {name}:{{{','.join(choices)}}}")
        return Fault(name=name, phase=parameter)
    return Fault(name=name, number=_number(name, takes, parameter))


def _number(name: str, takes: Takes, parameter: str) -> float:
    """Read a fault's number."""
    try:
        number = float(int(parameter)) if takes is Takes.COUNT else float(parameter)
    except ValueError as error:
        raise FaultRefusedError(f"argument --inject: {name} needs a number of {takes.value}: {name}:N") from error
    if not 0 < number < float("inf"):
        raise FaultRefusedError(f"argument --inject: {name} needs a number above 0")
    return number
