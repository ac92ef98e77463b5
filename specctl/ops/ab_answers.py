"""Ask an arm for greedy answers, one after the other, with the gap between its two best tokens where the engine tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.measure.ab_types import Output
from specctl.measure.load import Prompt
from specctl.ops.engine_http import EngineClient, Reply
from specctl.rollout import reading

PATH = "/generate"
ANSWER_S = 300.0
PROMPTS = 8
TOKENS = 64
# The two best of each token: what the gap is made of.
BEST = 2


def answers(client: EngineClient, prompts: Sequence[Prompt], tokens: int) -> tuple[Output, ...]:
    """Return the greedy answers to the first prompts; one that fails is left out, so that it is held against nothing."""
    found: list[Output] = []
    with_gaps = True
    for prompt in prompts[:PROMPTS]:
        reply = _ask(client, prompt, tokens, with_gaps=with_gaps)
        if with_gaps and reply.status != 200:
            with_gaps = False  # a tree, or an engine, that gives no log probabilities
            reply = _ask(client, prompt, tokens, with_gaps=False)
        output = output_of(prompt.id, reply.fields) if reply.status == 200 else None
        if output is not None:
            found.append(output)
    return tuple(found)


def _ask(client: EngineClient, prompt: Prompt, tokens: int, *, with_gaps: bool) -> Reply:
    sampling = {"temperature": 0.0, "max_new_tokens": min(tokens, TOKENS), "ignore_eos": True}
    body: dict[str, object] = {"text": prompt.text, "sampling_params": sampling}
    if with_gaps:
        body |= {"return_logprob": True, "top_logprobs_num": BEST}
    return client.post(PATH, body, timeout_s=ANSWER_S)


def output_of(prompt: str, fields: Mapping[str, object]) -> Output | None:
    """Read an answer of /generate; None where it has neither tokens nor text."""
    ids, text = fields.get("output_ids"), reading.text(fields.get("text"))
    tokens: Sequence[int] | str | None = reading.wholes(ids) if isinstance(ids, list) and ids else text
    if not tokens:
        return None
    return Output(prompt=prompt, tokens=tokens, gaps=_gaps(reading.mapping(fields.get("meta_info"))))


def _gaps(meta: Mapping[str, object]) -> tuple[float, ...]:
    """Return by how much the best token was ahead at each place; `output_top_logprobs` has [log probability, token, text] rows."""
    rows = meta.get("output_top_logprobs")
    found: list[float] = []
    for row in rows if isinstance(rows, list) else []:
        firsts = (
            [reading.number(each[0]) for each in row if isinstance(each, list) and each]
            if isinstance(row, list)
            else []
        )
        known = sorted((value for value in firsts if value is not None), reverse=True)
        if len(known) < BEST:
            return ()
        found.append(known[0] - known[1])
    return tuple(found)
