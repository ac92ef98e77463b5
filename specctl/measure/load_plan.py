"""Which requests a run sends: the prompts in their order, each with a salt of its own, and the moments of an open loop.

The salt stands before a prompt so that no two requests of a bench begin alike: an engine with a prefix cache would serve the
second one without reading it. Every run begins with the same prompt, so that runs differ by their salts and not by what they ask;
the same seed gives the same requests, so that two arms of an experiment are asked the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specctl.measure.chance import seeded
from specctl.measure.load import Arrival, Closed, Level, Open, Prompt, Replay

ASSUMED_CHARS_A_TOKEN = 4.0
# A slot's first request is this long at least, so that there is a decode step in it.
LEAST_WARMUP_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One request to send: its number in the run, the prompt it was made of, its text, and how many tokens are asked for."""

    number: int
    prompt: Prompt
    text: str
    tokens: int
    warmup: bool = False
    due_s: float | None = None

    def body(self, level: Level) -> Mapping[str, object]:
        """Return the JSON of POST /generate: a length that does not depend on what the model wants to say."""
        sampling: dict[str, object] = {
            "temperature": level.temperature,
            "max_new_tokens": self.tokens,
            "ignore_eos": True,
        }
        if level.temperature > 0:
            sampling["sampling_seed"] = self.number
        return {"text": self.text, "sampling_params": sampling, "stream": True}


class Requests:
    """Deals out the requests of a run; which one comes does not depend on who asks first."""

    def __init__(self, level: Level, prompts: Sequence[Prompt]) -> None:
        if not prompts:
            raise ValueError("there is no prompt")
        self._level = level
        self._prompts = tuple(prompts)

    def send(
        self, number: int, tokens: int, *, warmup: bool, due_s: float | None = None, text: str | None = None
    ) -> Send:
        """Return the request of a number."""
        prompt = self._prompts[number % len(self._prompts)]
        salted = f"{salt(self._level.seed, number)}\n{prompt.text if text is None else text}"
        return Send(number=number, prompt=prompt, text=salted, tokens=tokens, warmup=warmup, due_s=due_s)

    def closed(self, slot: int, turn: int) -> Send:
        """Return a slot's request of a turn; turns before `warmup` are not counted.

        The first one of a slot is cut to a length of the slot's own, evenly from short to whole: slots that began at once would
        else end at once for ever, and the engine would see their prompts in bursts.
        """
        assert isinstance(self._level.pace, Closed)
        slots = self._level.pace.concurrency
        tokens = self._level.tokens
        if turn == 0 and self._level.warmup > 0:
            tokens = min(tokens, max(LEAST_WARMUP_TOKENS, round(tokens * (slot + 1) / slots)))
        return self.send(turn * slots + slot, tokens, warmup=turn < self._level.warmup)

    def arriving(self, chars_a_token: float = ASSUMED_CHARS_A_TOKEN) -> Iterator[Send]:
        """Yield the requests of an open loop or a trace, in the order of their moments."""
        level = self._level
        match level.pace:
            case Open(requests_s=rate):
                count = max(level.rounds, math.ceil(rate * level.seconds)) + level.warmup
                for number, due_s in enumerate(poisson(rate, count, seed=level.seed + 1)):
                    yield self.send(number, level.tokens, warmup=number < level.warmup, due_s=due_s)
            case Replay(arrivals=arrivals):
                for number, each in enumerate(arrivals):
                    yield self._traced(number, each, chars_a_token)
            case Closed():
                raise ValueError("a closed loop has no moments")

    def _traced(self, number: int, arrival: Arrival, chars_a_token: float) -> Send:
        """Return a request of about as many prompt tokens as the trace has: whole prompts one after another, then cut."""
        wanted = max(1, round(arrival.prompt_tokens * chars_a_token))
        texts: list[str] = []
        size, place = 0, number
        while size < wanted:
            texts.append(self._prompts[place % len(self._prompts)].text)
            size += len(texts[-1]) + 1
            place += 1
        text = "\n".join(texts)[:wanted]
        warm = number < self._level.warmup
        return self.send(number, arrival.tokens, warmup=warm, due_s=arrival.at_s, text=text)


def salt(seed: int, number: int) -> str:
    """Return a short word that differs between the requests of a run, and between runs of different seeds."""
    return f"{(seed * 1_000_003 + number) * 2_654_435_761 % 2**32:08x}"


def poisson(rate: float, count: int, *, seed: int) -> Iterator[float]:
    """Yield moments of a Poisson process: exponential gaps, the first moment after the first gap. Seconds."""
    chance = seeded(seed)
    at_s = 0.0
    for _ in range(count):
        at_s += chance.expovariate(rate)
        yield at_s
