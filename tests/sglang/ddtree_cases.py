"""What is asked of every engine: greedy requests of many kinds, whose answers may not depend on how they were drafted."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from tests.sglang.ddtree_engine import Answer, Engine

VOCABULARY = 510
CONTEXT = 2048
TOKENS = 64
LIMITS = (1, 2, 3, 5, 11)
# What may be drawn is small enough to write all texts of three tokens down.
SAMPLED_TOPK = 3
SAMPLED_TOKENS = 3
Body = dict[str, object]


def prompt(number: int, length: int) -> list[int]:
    """Return some token ids, the same ones each time."""
    chance = random.Random(number)
    return [chance.randrange(2, VOCABULARY) for _ in range(length)]


PROMPTS = tuple(prompt(number, 5 + 7 * number) for number in range(6))


def greedy(ids: list[int], *, tokens: int = TOKENS, parameters: Mapping[str, object] | None = None) -> Body:
    """Return a greedy request that goes on to its last token."""
    sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True} | dict(parameters or {})
    return {"input_ids": ids, "sampling_params": sampling}


def plain_bodies() -> list[Body]:
    """Return the requests that are held against plain decoding with every setting of the knobs."""
    return [greedy(ids) for ids in PROMPTS]


def special_bodies(texts: list[list[int]]) -> dict[str, Body]:
    """Return requests whose ends, masks or prefixes are special; `texts` are the answers to the plain ones."""
    bodies: dict[str, Body] = {f"limit {tokens}": greedy(PROMPTS[1], tokens=tokens) for tokens in LIMITS}
    stop = texts[2][TOKENS // 2]
    bodies["stop token inside a text"] = greedy(PROMPTS[2], parameters={"stop_token_ids": [stop], "ignore_eos": False})
    bodies["logit bias"] = greedy(PROMPTS[3], parameters={"logit_bias": {"300": 0.05, "77": 0.04}})
    # The second prompt goes on from the first's text: its cache is what a tree left there.
    bodies["follow-up"] = greedy([*PROMPTS[4], *texts[4], *prompt(50, 6)])
    bodies["follow-up cut inside a text"] = greedy([*PROMPTS[5], *texts[5][:31], *prompt(51, 3)])
    bodies["prompt of one token"] = greedy([7])
    bodies["prompt of one token, limit 1"] = greedy([7], tokens=1)
    # To the last token that the model has a position for: a tree's deeper nodes lie beyond.
    bodies["text to the end of the context"] = greedy(prompt(60, CONTEXT - 20), tokens=20)
    bodies["regular expression"] = {
        "text": "once upon",
        "sampling_params": {"temperature": 0, "max_new_tokens": 30, "regex": "([0-9]{2}[a-c]{3}-){3}x"},
    }
    bodies["log-probabilities"] = greedy(PROMPTS[0], tokens=24) | {
        "return_logprob": True,
        "top_logprobs_num": 2,
        "logprob_start_len": -1,
    }
    return bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """What a plain engine answers: texts, special requests, and the probabilities of all texts that could be drawn."""

    texts: list[list[int]]
    special: Mapping[str, Answer]
    drawn: Mapping[tuple[int, ...], float]


def asked(engine: Engine) -> Plain:
    """Ask a plain engine for everything."""
    texts = [answer.tokens for answer in engine.ask_all(plain_bodies())]
    special = {name: engine.ask(body) for name, body in special_bodies(texts).items()}
    return Plain(texts=texts, special=special, drawn=probabilities(engine))


def probabilities(engine: Engine) -> dict[tuple[int, ...], float]:
    """Return the probability of every text that sampling with top-k can give, by the engine's own next-token figures."""
    known: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(SAMPLED_TOKENS):
        known = dict(
            itertools.chain.from_iterable(
                [((*text, token), chance * share) for token, share in following(engine, text)]
                for text, chance in known.items()
            )
        )
    return known


def following(engine: Engine, text: tuple[int, ...]) -> list[tuple[int, float]]:
    """Return the tokens that may follow a text and their probabilities."""
    said = engine.ask(
        greedy([*PROMPTS[0], *text], tokens=1)
        | {"return_logprob": True, "top_logprobs_num": SAMPLED_TOPK, "logprob_start_len": -1}
    )
    best = said.meta["output_top_logprobs"][0]  # type: ignore[index]  # JSON
    weights = [(int(token), math.exp(score)) for score, token, _ in best]
    total = sum(weight for _, weight in weights)
    return [(token, weight / total) for token, weight in weights]


def sampled(count: int) -> Body:
    """Return a request for so many texts, drawn."""
    return {
        "input_ids": PROMPTS[0],
        "sampling_params": {
            "temperature": 1.0,
            "top_k": SAMPLED_TOPK,
            "max_new_tokens": SAMPLED_TOKENS,
            "ignore_eos": True,
            "n": count,
        },
    }
