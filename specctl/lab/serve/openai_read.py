"""Read the bodies of the OpenAI routes into prompts and sampling; refuse what the lab lacks with SGLang's shape of a 400."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.lab.serve import sampling
from specctl.lab.serve.answers import BadRequestError
from specctl.lab.serve.generate import is_ids
from specctl.lab.serve.service import Service
from specctl.lab.types import Sampling

DEFAULT_COMPLETION_TOKENS = 16
ROLE_LINE = "{role}: {content}\n"
ANSWER_LINE = "assistant:"
"""The lab's chat template: a line a message, then the answer's beginning. (SGLang takes the model's own; this model has none.)"""
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (None, 1),
    "best_of": (None, 1),
    "echo": (None, False),
    "suffix": (None,),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "response_format": (None, {"type": "text"}),
    "tools": (None, []),
    "use_beam_search": (None, False),
}
_COPIED = (
    *(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "stop",
        "stop_token_ids",
    ),
    *("ignore_eos", "logit_bias", "json_schema", "regex", "ebnf", "stop_regex", "no_stop_trim"),
)
"""Fields that mean the same in `sampling_params`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A body of /v1/completions or /v1/chat/completions, read."""

    model: str
    prompts: tuple[tuple[int, ...], ...]
    sampling: Sampling
    stream: bool
    include_usage: bool


def completion(body: Mapping[str, object], service: Service) -> Asked:
    """Read a body of /v1/completions."""
    return _asked(
        body, _prompts(body.get("prompt"), service), _tokens(body, ("max_tokens",), DEFAULT_COMPLETION_TOKENS), service
    )


def chat(body: Mapping[str, object], service: Service) -> Asked:
    """Read a body of /v1/chat/completions; without a limit the answer may fill the context."""
    prompt = tuple(service.tokenizer.encode(_transcript(body.get("messages"))))
    room = max(service.launch.context_length - len(prompt), 1)
    return _asked(body, (prompt,), _tokens(body, ("max_completion_tokens", "max_tokens"), room), service)


def _asked(
    body: Mapping[str, object], prompts: tuple[tuple[int, ...], ...], new_tokens: int, service: Service
) -> Asked:
    """Read what both routes share."""
    for name, values in _NEUTRAL.items():
        if name in body and body[name] not in values:
            raise BadRequestError(f"{name} is not supported by the lab engine")
    options = body.get("stream_options")
    params = {name: body[name] for name in _COPIED if body.get(name) is not None}
    params |= {
        "max_new_tokens": new_tokens,
        "min_new_tokens": body.get("min_tokens"),
        "sampling_seed": body.get("seed"),
    }
    asked = Asked(
        model=str(body.get("model") or service.launch.options.served_model_name),
        prompts=prompts,
        sampling=sampling.read(params),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )
    for prompt in prompts:
        service.check(prompt, asked.sampling)
    return asked


def _tokens(body: Mapping[str, object], names: tuple[str, ...], default: int) -> int:
    """Return the first limit that is given."""
    return next(
        (sampling.integer(body, name, default, lowest=1) for name in names if body.get(name) is not None), default
    )


def _prompts(value: object, service: Service) -> tuple[tuple[int, ...], ...]:
    """Return the prompts as tokens: a text, a list of texts, token ids, or a list of those."""
    if isinstance(value, str):
        return (tuple(service.tokenizer.encode(value)),)
    if is_ids(value):
        return (tuple(value),)
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(tuple(service.tokenizer.encode(part)) for part in value)
    if isinstance(value, list) and value and all(is_ids(part) for part in value):
        return tuple(tuple(part) for part in value)
    raise BadRequestError("prompt must be a string, a list of strings, token ids or a list of token ids")


def _transcript(value: object) -> str:
    """Return the messages as the text that the model continues."""
    if not isinstance(value, list) or not value:
        raise BadRequestError("messages must be a list of messages that is not empty")
    return "".join(ROLE_LINE.format(role=role, content=content) for role, content in map(_message, value)) + ANSWER_LINE


def _message(value: object) -> tuple[str, str]:
    """Return a message's role and text."""
    role = value.get("role") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(role, str):
        raise BadRequestError("every message needs a role")
    content = value.get("content")
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if not isinstance(content, str):
        raise BadRequestError("every message needs a content of text")
    return role, content


def _part(value: object) -> str:
    """Return the text of one part of a message."""
    if isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str):
        return str(value["text"])
    raise BadRequestError("only text parts are supported by the lab engine")
