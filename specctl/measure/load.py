"""What a load run is, as values: prompts, a level of load, the times of one request, and all that one run of a level measured.

Made by ops/load.py, judged by measure/figures.py, used by bench, ab, calibrate and doctor. Seconds are of the caller's monotonic
clock, counted from the run's beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specctl.control.sample.engine import DecodeSums, EngineCounters

MOST_CONCURRENCY = 1024
MOST_TOKENS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One text to go on from; `id` is unique in its set, `kind` what sort of text it is (code, maths, chat, long, file)."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A closed loop: so many requests are in flight at every moment, the next one is sent when one has ended."""

    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """An open loop: requests arrive by chance (Poisson) at a mean rate, whether or not earlier ones have ended."""

    requests_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request of a trace: when it comes, the tokens of its prompt (about) and of its answer (exactly)."""

    at_s: float
    prompt_tokens: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The requests of a trace, each at its moment."""

    arrivals: tuple[Arrival, ...]


Pace = Closed | Open | Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of load.

    `tokens`: new tokens of every request, exactly (the end token is ignored), so that lengths are equal; a trace has its own.
    `warmup`: requests a slot (closed loop) or in all (else) that are sent first and never counted.
    `rounds`: counted requests that a slot sends at least (an open loop: in all).
    `seconds`: the window lasts at least that long. `limit_s`: no request is sent after it.
    """

    pace: Pace
    tokens: int = 512
    warmup: int = 1
    rounds: int = 3
    seconds: float = 0.0
    limit_s: float = 600.0
    seed: int = 0
    temperature: float = 0.0

    @property
    def concurrency(self) -> int | None:
        """Return how many requests are in flight; None where the pace does not say."""
        return self.pace.concurrency if isinstance(self.pace, Closed) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What came of one request.

    `due_s`: when an open loop would have sent it; `sent_s`: its bytes were handed to the connection; `first_s`: its first token
    came. `at_s` and `counts`: when each chunk with new tokens came, and the tokens that the engine had counted by then
    (`completion_tokens`), so that tokens come from the engine's usage and never from counting chunks. `prompt_tokens`,
    `output_tokens`, `verify_steps` (`spec_verify_ct`), `finish`: of the last chunk; None where it did not say. `failure`: why it is
    no whole answer. `warmup`: one that is never counted. `unfinished`: hung up on by ourselves, which is no failure.
    """

    number: int
    prompt: str
    asked_tokens: int
    sent_s: float
    ended_s: float
    slot: int = 0
    due_s: float | None = None
    first_s: float | None = None
    at_s: Sequence[float] = ()
    counts: Sequence[int] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    verify_steps: int | None = None
    finish: str | None = None
    failure: str | None = None
    warmup: bool = False
    unfinished: bool = False

    @property
    def whole(self) -> bool:
        """Claim that the answer came to its end, with all the tokens that were asked for."""
        return self.failure is None and not self.unfinished and self.output_tokens == self.asked_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The steady stretch of a run: all load is there, warm-up is over, nothing has begun to run out. Seconds of the run."""

    opened_s: float
    closed_s: float

    @property
    def span_s(self) -> float:
        """How long it lasts."""
        return self.closed_s - self.opened_s

    def holds(self, at_s: float) -> bool:
        """Claim that a moment is in it: the beginning is out, the end is in, so that windows side by side count nothing twice."""
        return self.opened_s < at_s <= self.closed_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the engine has counted by one moment; None where it does not tell.

    `page`: /metrics; `decoded`: sums over decode steps of /v1/loads; `running`: requests running and waiting, ours or not;
    `seed`: tells one start of the engine from another.
    """

    at_s: float
    page: EngineCounters | None = None
    decoded: DecodeSums | None = None
    running: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU at one moment of the run; None where the driver does not say. `throttle`: reasons (control.sample.gpu.Throttle).

    `pids`: processes that compute on it, ours or not; None where they cannot be listed.
    """

    at_s: float
    index: int
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_hz: float | None = None
    temperature_c: float | None = None
    busy_ratio: float | None = None
    memory_used_bytes: int | None = None
    throttle: tuple[str, ...] | None = None
    pids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What the load cost its sender: processor and wall seconds of the run.

    `late_s`: the largest delay behind a request's due. `lag_s`: by how much an alarm of the sender's came late (p95): how long its
    readers may have waited for a processor, so that times of tokens below it mean nothing; None: no alarm was set.
    """

    cpu_s: float
    wall_s: float
    late_s: float = 0.0
    lag_s: float | None = None

    @property
    def busy_ratio(self) -> float:
        """Return the part of one core that the sender took; near 1, it and not the engine sets the pace."""
        return self.cpu_s / self.wall_s if self.wall_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that one run of one level measured. `stopped`: why it ended before its time; None: it is whole.

    `gave_up`: it ended because the server served no more, so that another run would be the same.
    """

    level: Level
    timings: Sequence[Timing]
    client: Client
    before: Counters | None = None
    after: Counters | None = None
    gpus: Sequence[GpuReading] = field(default=())
    stopped: str | None = None
    gave_up: bool = False
