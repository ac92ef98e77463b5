"""The smoke test after a load, its pure part: which requests to send, what their answers add up to, where two outputs part.

ops sends the requests; rollout/proof.py judges the result. Answers are an engine's words: any shape of body is taken, and what
is missing stays None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

NEEDED_STEPS = 64  # verify steps under which nothing is proven: the engine logs a decode line every 40
TOKENS_A_REQUEST = 128  # short enough for a context of 256
MAX_REQUESTS = 40
ASSUMED_DRAFTS = 15  # where the knobs do not say how much a step can accept: a block of 16, the drafters' usual size
_OK_STATUS = 200
_TOKENS = "completion_tokens"
_STEPS = "spec_verify_ct"

PROMPTS = (
    "List the whole numbers from one to forty, each on a line of its own, and say which of them are prime.",
    "Write a Python function that reads a text file and returns how often each word occurs in it.",
    "Explain in plain words how a bicycle stays upright while it moves, and why it falls over when it stops.",
    "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n",
    "Describe the way of a letter from the letter box to the house of the person it is addressed to.",
    "import json\nimport sys\n\n\ndef main():\n    data = json.load(sys.stdin)\n",
    "Compare tea and coffee: where they come from, how they are made, and when people drink them.",
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeRequest:
    """One request of the smoke test: greedy, of a fixed length whatever the model wants to say."""

    prompt: str
    max_new_tokens: int

    def body(self) -> dict[str, object]:
        """Return the JSON body of POST /generate."""
        sampling = {"temperature": 0.0, "max_new_tokens": self.max_new_tokens, "ignore_eos": True}
        return {"text": self.prompt, "sampling_params": sampling}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """What the smoke test's answers add up to.

    `verify_steps` is the sum of spec_verify_ct, None where no answer has it (no speculation, or an engine that does not say).
    `accept_length` is tokens a verify step, one prefill token taken off each request. `meta` sums the numeric fields of
    meta_info. `failures`: requests without a usable answer, and answers cut short. `text_ok`: every answer said something.
    """

    requests: int = 0
    completion_tokens: int = 0
    verify_steps: int | None = None
    accept_length: float | None = None
    meta: Mapping[str, float] = field(default_factory=dict)
    took_s: float = 0.0
    text_ok: bool = True
    failures: tuple[str, ...] = ()
    needed_steps: int = NEEDED_STEPS

    @property
    def enough(self) -> bool:
        """Claim that there were the verify steps that a proof needs."""
        return self.verify_steps is not None and self.verify_steps >= self.needed_steps


def plan(max_drafts: int | None, *, needed_steps: int = NEEDED_STEPS) -> tuple[SmokeRequest, ...]:
    """Return requests that surely make so many verify steps even if every draft is accepted; a caller may stop at `enough`.

    A step commits at most 1 + max_drafts tokens, and the first token of a request comes from the prefill. At most 40 requests
    of 128 tokens: with a block over 80 even all of them may be too few, and the result then says so.
    """
    each_step = 1 + (ASSUMED_DRAFTS if max_drafts is None else max(max_drafts, 0))
    sure_steps = max((TOKENS_A_REQUEST - 1) // each_step, 1)
    count = min(math.ceil(needed_steps / sure_steps), MAX_REQUESTS)
    return tuple(
        SmokeRequest(prompt=PROMPTS[i % len(PROMPTS)], max_new_tokens=TOKENS_A_REQUEST) for i in range(max(count, 1))
    )


def fold(result: SmokeResult, request: SmokeRequest, *, status: int | None, body: object, took_s: float) -> SmokeResult:
    """Return the result with one more answer: its HTTP status (None: none came) and its JSON body as parsed."""
    result = replace(result, took_s=result.took_s + max(took_s, 0.0))
    if status != _OK_STATUS:
        said = "no answer" if status is None else f"status {status}"
        return replace(result, failures=(*result.failures, said), text_ok=False)
    if not isinstance(body, Mapping):
        return replace(result, failures=(*result.failures, "an answer that is no object"), text_ok=False)
    return _folded(result, request, body)


def _folded(result: SmokeResult, request: SmokeRequest, body: Mapping[str, object]) -> SmokeResult:
    info = body.get("meta_info")
    meta = _numbers(info) if isinstance(info, Mapping) else {}
    tokens = int(meta.get(_TOKENS, 0.0))
    cut = tokens < request.max_new_tokens
    steps = result.verify_steps if _STEPS not in meta else (result.verify_steps or 0) + int(meta[_STEPS])
    requests = result.requests + 1
    total = result.completion_tokens + tokens
    said = bool(body.get("text")) or bool(body.get("output_ids"))
    short = f"{tokens} of {request.max_new_tokens} tokens came"
    return replace(
        result,
        requests=requests,
        completion_tokens=total,
        verify_steps=steps,
        accept_length=max(total - requests, 0) / steps if steps else None,
        meta={name: result.meta.get(name, 0.0) + meta.get(name, 0.0) for name in {*result.meta, *meta}},
        text_ok=result.text_ok and said and not cut,
        failures=(*result.failures, short) if cut else result.failures,
    )


def _numbers(info: Mapping[str, object]) -> dict[str, float]:
    """Return the fields of meta_info that are finite numbers of a sane size."""
    found = {}
    for name, value in info.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and isinstance(value, (int, float)) and abs(value) < 1e15 and math.isfinite(value):
            found[str(name)] = float(value)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where two outputs part: the first position that differs, and what stands there (None: one ended)."""

    at: int
    left: int | str | None
    right: int | str | None


def first_divergence(left: Sequence[int] | str, right: Sequence[int] | str) -> Divergence | None:
    """Return where two outputs of one prompt part, tokens or characters; None when they are equal."""
    for at in range(max(len(left), len(right))):
        one = left[at] if at < len(left) else None
        other = right[at] if at < len(right) else None
        if one != other:
            return Divergence(at=at, left=one, right=other)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What --prove-lossless found: how many outputs were compared, and where those that differ part, by their number."""

    compared: int
    divergences: Mapping[int, Divergence] = field(default_factory=dict)

    @property
    def lossless(self) -> bool:
        """Claim that there was something to compare and that nothing differed."""
        return self.compared > 0 and not self.divergences


def compare(left: Sequence[Sequence[int] | str], right: Sequence[Sequence[int] | str]) -> Comparison:
    """Compare the greedy outputs of two algos over the same prompts; a missing output differs from its first token."""
    found = {}
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else ()
        other = right[number] if number < len(right) else ()
        parted = first_divergence(one, other)
        if parted is not None:
            found[number] = parted
    return Comparison(compared=min(len(left), len(right)), divergences=found)
