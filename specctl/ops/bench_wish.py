"""What a bench is asked for: options become paces, prompts and a setting; nothing is reached. Every fault is a UsageError."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from specctl.adapters import prompt_files, trace_files
from specctl.control.replay import arrivals
from specctl.control.replay.arrivals import Lengths, Windows
from specctl.control.replay.load import Requests
from specctl.errors import UsageError
from specctl.measure import prompts as shipped
from specctl.measure.bench import Setting
from specctl.measure.load import MOST_CONCURRENCY, MOST_TOKENS, Arrival, Closed, Level, Open, Pace, Prompt, Replay

DEFAULT_CONCURRENCY = "1,2,4,8,16,32"
DEFAULT_TOKENS, DEFAULT_RUNS, DEFAULT_WARMUP, DEFAULT_ROUNDS = 512, 3, 1, 3
# Of an open loop, in place of the warm-up and the rounds of a slot: requests in all.
OPEN_WARMUP, OPEN_SECONDS = 4, 30.0
DEFAULT_LIMIT_S = 600.0
MOST_REQUESTS = 20_000
MOST_RATE = 10_000.0
# So that no two runs of a bench send a prompt with the same salt.
SEEDS_A_LEVEL = 1000
# The salt before a prompt, and what counting its tokens by its characters may be wrong by.
RESERVE, FITS = 32, 0.85

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says; None: not said."""

    concurrency: str | None = None
    rate: str | None = None
    trace: str | None = None
    tokens: int | None = None
    runs: int = DEFAULT_RUNS
    prompts: str = shipped.MIXED
    warmup: int | None = None
    rounds: int = DEFAULT_ROUNDS
    seconds: float | None = None
    limit_s: float = DEFAULT_LIMIT_S
    seed: int | None = None
    temperature: float = 0.0
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be measured: the paces in order, each so many runs."""

    paces: tuple[Pace, ...]
    prompts: tuple[Prompt, ...]
    setting: Setting
    limit_s: float = DEFAULT_LIMIT_S
    note: str | None = None

    def level(self, pace: int, run: int) -> Level:
        """Return the level of a pace's run; each has a seed of its own, so that no prompt of it was sent before."""
        setting = self.setting
        return Level(
            pace=self.paces[pace],
            tokens=setting.tokens or DEFAULT_TOKENS,
            warmup=setting.warmup,
            rounds=setting.rounds,
            seconds=setting.seconds,
            limit_s=self.limit_s,
            seed=setting.seed + pace * SEEDS_A_LEVEL + run,
            temperature=setting.temperature,
        )

    def name(self, pace: int) -> str:
        """Return what a level is called in tables."""
        match self.paces[pace]:
            case Closed(concurrency=count):
                return str(count)
            case Open(requests_s=rate):
                return f"{rate:g}/s"
            case Replay():
                return PurePath(self.setting.trace or "trace").name


def wish(options: Options) -> Wish:
    """Return what the options ask for; raises UsageError for what cannot be meant."""
    given = [name for name in ("concurrency", "rate", "trace") if getattr(options, name) is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} are two kinds of load", hint="give one of them")
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    prompts = read_prompts(options.prompts)
    kind = given[0] if given else "concurrency"
    setting = _setting(options, kind, seed=seed, digest=shipped.digest(prompts))
    paces: tuple[Pace, ...]
    if kind == "trace":
        paces = (_traced(options, seed),)
    elif kind == "rate":
        paces = tuple(Open(requests_s=rate) for rate in _rates(options.rate or ""))
    else:
        paces = tuple(Closed(concurrency=count) for count in counts(options.concurrency or DEFAULT_CONCURRENCY))
    return Wish(paces=paces, prompts=prompts, setting=setting, limit_s=options.limit_s, note=options.note)


def _setting(options: Options, kind: str, *, seed: int, digest: str) -> Setting:
    closed = kind == "concurrency"
    tokens = None if kind == "trace" else options.tokens or DEFAULT_TOKENS
    if kind == "trace" and options.tokens is not None:
        raise UsageError("--tokens has no meaning with --trace: a trace has its own lengths", hint="leave it out")
    if tokens is not None and not 2 <= tokens <= MOST_TOKENS:
        raise UsageError(f"--tokens is 2 to {MOST_TOKENS}", hint="--tokens 512")
    if kind != "trace" and options.seconds is not None and options.seconds >= options.limit_s:
        raise UsageError(
            f"--seconds {options.seconds:g} is no shorter than --limit {options.limit_s:g}", hint="give more --limit"
        )
    seconds = options.seconds if options.seconds is not None else (0.0 if closed or kind == "trace" else OPEN_SECONDS)
    return Setting(
        pace={"concurrency": "closed", "rate": "open", "trace": "trace"}[kind],
        runs=options.runs,
        prompts=options.prompts if options.prompts in shipped.NAMES else PurePath(options.prompts).name,
        prompts_digest=digest,
        tokens=tokens,
        warmup=options.warmup if options.warmup is not None else (DEFAULT_WARMUP if closed else OPEN_WARMUP),
        rounds=options.rounds,
        seconds=seconds,
        seed=seed,
        temperature=options.temperature,
        trace=PurePath(options.trace).name if options.trace is not None else None,
    )


def read_prompts(name: str) -> tuple[Prompt, ...]:
    """Return a shipped set by its name, or the prompts of a file; raises UsageError."""
    if name in shipped.NAMES:
        return shipped.shipped(name)
    if not name.endswith((".jsonl", ".json")) and "/" not in name:
        raise UsageError(f"there is no prompt set {name}", hint=f"{', '.join(shipped.NAMES)}, or a file .jsonl")
    return prompt_files.read(name)


def counts(text: str) -> tuple[int, ...]:
    """Read numbers of requests, commas between; in their order, each once."""
    found: list[int] = []
    for part in text.split(","):
        word = part.strip()
        if not word.isascii() or not word.isdigit() or not 1 <= int(word[:9]) <= MOST_CONCURRENCY:
            raise UsageError(
                f"--concurrency {text}: {word or 'nothing'} is not a number from 1 to {MOST_CONCURRENCY}",
                hint=f"--concurrency {DEFAULT_CONCURRENCY}",
            )
        found.append(int(word))
    return _once(found, f"--concurrency {text}")


def _rates(text: str) -> tuple[float, ...]:
    found: list[float] = []
    for part in text.split(","):
        try:
            rate = float(part)
        except ValueError:
            rate = 0.0
        if not 0 < rate <= MOST_RATE:
            raise UsageError(
                f"--rate {text}: {part.strip() or 'nothing'} is not a number of requests a second above 0",
                hint="--rate 0.5,1,2",
            )
        found.append(rate)
    return _once(found, f"--rate {text}")


def _once(found: list[N], said: str) -> tuple[N, ...]:
    if len(set(found)) < len(found):
        raise UsageError(f"{said} names a level twice", hint="name each once; --runs repeats them")
    return tuple(found)


def _traced(options: Options, seed: int) -> Replay:
    """Read a trace's requests, cut to --seconds."""
    assert options.trace is not None
    trace = trace_files.read_trace(options.trace)
    if isinstance(trace, Windows):
        trace = arrivals.requests(trace, Lengths(), seed)
    if not isinstance(trace, Requests):
        raise UsageError(
            f"{options.trace}: a concurrency over time is no list of requests",
            hint="give a trace of requests or rates, or --concurrency",
        )
    seconds = options.seconds or float("inf")
    rows = zip(trace.at_s, trace.inputs, trace.outputs, strict=True)
    found = [
        Arrival(at_s=at_s, prompt_tokens=max(1, prompt), tokens=answer)
        for at_s, prompt, answer in rows
        if at_s <= seconds
    ]
    if len(found) > MOST_REQUESTS:
        raise UsageError(
            f"{options.trace}: {len(found)} requests, and a bench sends at most {MOST_REQUESTS}",
            hint="cut it with --seconds",
        )
    return Replay(arrivals=tuple(found))


def fitted(pace: Replay, context: int | None) -> tuple[Replay, int]:
    """Return a trace cut to an engine's context, and how many of its requests that changed; answers are cut last."""
    if context is None:
        return pace, 0
    room = max(2, round(context * FITS) - RESERVE)
    cut: Sequence[Arrival] = [_fit(each, room) for each in pace.arrivals]
    changed = sum(one != other for one, other in zip(pace.arrivals, cut, strict=True))
    return Replay(arrivals=tuple(cut)), changed


def _fit(each: Arrival, room: int) -> Arrival:
    tokens = min(each.tokens, max(1, room // 2 if each.prompt_tokens > room // 2 else room - each.prompt_tokens))
    return Arrival(at_s=each.at_s, prompt_tokens=max(1, min(each.prompt_tokens, room - tokens)), tokens=tokens)
