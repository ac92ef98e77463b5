"""What an A/B experiment is made of: the figures it compares, what was seen in one segment, and the arms; values alone."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from specctl.measure.figures import Figures


class Better(enum.Enum):
    """Which way of a figure is the good one."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One figure that is compared. `more` and `less`: what B is when its figure is above or below A's; shown is value × `scale`."""

    key: str
    label: str
    short: str
    unit: str
    better: Better
    more: str = "higher"
    less: str = "lower"
    scale: float = 1.0
    digits: int = 1


MS = 1000.0
PRIMARY = "tokens_s"
QUANTITIES: tuple[Quantity, ...] = (
    Quantity(key=PRIMARY, label="tok/s", short="tok/s", unit="", better=Better.HIGHER, more="faster", less="slower"),
    Quantity(key="request_tokens_s", label="tok/s a request", short="a request", unit="", better=Better.HIGHER),
    Quantity(
        key="ttft_s",
        label="first token",
        short="TTFT",
        unit="ms",
        better=Better.LOWER,
        more="later",
        less="earlier",
        scale=MS,
    ),
    Quantity(key="itl_s", label="token to token", short="ITL", unit="ms", better=Better.LOWER, scale=MS, digits=2),
    Quantity(
        key="itl_p99_s",
        label="token to token, p99",
        short="ITL p99",
        unit="ms",
        better=Better.LOWER,
        scale=MS,
        digits=2,
    ),
    Quantity(key="accept_length", label="accept length", short="accept", unit="", better=Better.HIGHER, digits=3),
    Quantity(key="verify_steps_s", label="verify steps/s", short="steps/s", unit="", better=Better.HIGHER),
    Quantity(key="power_w", label="power", short="power", unit="W", better=Better.NEITHER, digits=0),
)


def quantity(key: str) -> Quantity:
    """Return the quantity of a key; raises KeyError for another."""
    return {each.key: each for each in QUANTITIES}[key]


def values_of(figures: Figures) -> Mapping[str, float | None]:
    """Return the quantities of one run; verify steps are of one request (measure/figures.py), times are medians."""
    return {
        "tokens_s": figures.tokens_s,
        "request_tokens_s": figures.request_tokens_s,
        "ttft_s": figures.ttft.p50 if figures.ttft else None,
        "itl_s": figures.itl.p50 if figures.itl else None,
        "itl_p99_s": figures.itl.p99 if figures.itl else None,
        "accept_length": figures.accept_length,
        "verify_steps_s": figures.verify_steps_s,
        "power_w": figures.gpus.power_w if figures.gpus else None,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSeen:
    """One concurrency within one segment: the figures of its runs, in their order."""

    concurrency: int
    runs: Sequence[Figures]

    def value(self, key: str) -> float | None:
        """Return the median of a quantity over the runs; None where any run does not tell it."""
        found = [values_of(run)[key] for run in self.runs]
        known = [value for value in found if value is not None]
        return median(known) if known and len(known) == len(found) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One greedy answer: its tokens (or characters), and how far its first choice was ahead of the second at each, in nats.

    `gaps` is empty where the engine gives no log probabilities.
    """

    prompt: str
    tokens: Sequence[int] | str
    gaps: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What was so around a segment, beside the engine. None: not known.

    `strangers`: processes on the GPUs that are not the server's. `foreign_cores`: processor cores that others than the server and
    ourselves used meanwhile, `stolen_ratio` the part of all cores' time that the hypervisor took. `temperature_c`, `clock_hz`,
    `power_w`: the GPUs at rest before it began (hottest, mean, in all). `upset`: why the segment is not of one undisturbed start.
    """

    strangers: tuple[str, ...] | None = None
    foreign_cores: float | None = None
    cores: int | None = None
    stolen_ratio: float | None = None
    temperature_c: float | None = None
    clock_hz: float | None = None
    power_w: float | None = None
    upset: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One arm, started anew and measured at every concurrency. `waited_s`: for the GPUs to be as in the first segment.

    `settled` is false where they were not so in time, None where the GPUs tell nothing. `began` is the wall clock in UTC.
    """

    place: int
    arm: int
    began: str
    load_s: float | None
    waited_s: float = 0.0
    settled: bool | None = None
    levels: tuple[LevelSeen, ...] = ()
    outputs: tuple[Output, ...] = ()
    around: Around = Around()

    def level(self, concurrency: int) -> LevelSeen | None:
        """Return what was seen at a concurrency."""
        return next((level for level in self.levels if level.concurrency == concurrency), None)

    def value(self, concurrency: int, key: str) -> float | None:
        """Return a quantity at a concurrency."""
        level = self.level(concurrency)
        return None if level is None else level.value(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of the experiment: its letter, the mode as the command line spells it, what it is beside that, and its launch."""

    letter: str
    mode: str
    note: str = ""
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
