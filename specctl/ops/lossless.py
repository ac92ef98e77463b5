"""Compare greedy output with that of algo none, prompt by prompt, on the same server (`--prove-lossless`).

Exact on the lab engine. On GPUs near-ties may part with other batch shapes, so only prompts are compared whose output under none
was the same twice (design: metric truth).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from specctl.errors import RemoteCommandError
from specctl.ops.engine_http import EngineClient
from specctl.ops.turn import Turn
from specctl.rollout import smoke as smokes

Output = Sequence[int] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The outputs of algo none by prompt; None: not the same twice."""

    ALGO: ClassVar[str] = "none"
    outputs: tuple[Output | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the comparison found, in a sentence."""

    parted: bool
    text: str


def _outputs(turn: Turn) -> list[Output]:
    client = EngineClient.of(turn.contact, turn.live)
    found: list[Output] = []
    for prompt in smokes.PROMPTS:
        request = smokes.SmokeRequest(prompt=prompt, max_new_tokens=smokes.TOKENS_A_REQUEST)
        reply = client.post("/generate", request.body(), timeout_s=turn.server.limits.smoke_s)
        ids, text = reply.fields.get("output_ids"), reply.fields.get("text")
        if isinstance(ids, list) and ids:
            found.append([int(token) for token in ids])
        elif isinstance(text, str) and text:
            found.append(text)
        else:
            raise RemoteCommandError(
                f"no output to compare: {reply.failure or f'status {reply.status}'}",
                hint=f"specctl logs --host {turn.host}",
            )
    return found


def take_baseline(turn: Turn) -> Baseline:
    """Generate twice with what runs now."""
    turn.reporter.step(turn.host, "lossless", "greedy output of none, twice")
    first, second = _outputs(turn), _outputs(turn)
    return Baseline(outputs=tuple(a if a == b else None for a, b in zip(first, second, strict=True)))


def compare_with(turn: Turn, baseline: Baseline) -> Said:
    """Generate with what runs now and compare."""
    turn.reporter.step(turn.host, "lossless", "greedy output compared")
    pairs = [(a, b) for a, b in zip(baseline.outputs, _outputs(turn), strict=True) if a is not None]
    result = smokes.compare([a for a, _ in pairs], [b for _, b in pairs])
    if result.lossless:
        return Said(parted=False, text=f"{result.compared} greedy outputs equal those of none, token for token")
    if not result.compared:
        return Said(parted=True, text="no greedy output of none was the same twice: nothing can be compared")
    number, where = next(iter(result.divergences.items()))
    return Said(
        parted=True,
        text=f"{len(result.divergences)} of {result.compared} greedy outputs differ from those of none; "
        f"prompt {number + 1} from token {where.at + 1} on ({where.left} became {where.right})",
    )
