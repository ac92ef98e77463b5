"""Read SGLang's `sampling_params` into the decoder's Sampling; refuse what the lab does not do rather than ignore it."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.lab.serve.answers import BadRequestError, UnknownFieldError
from specctl.lab.types import Sampling

DEFAULT_NEW_TOKENS = 128
GREEDY_BELOW = 1e-5
FIELDS = (
    *(
        "max_new_tokens",
        "stop",
        "stop_token_ids",
        "stop_regex",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
    ),
    *(
        "presence_penalty",
        "repetition_penalty",
        "min_new_tokens",
        "n",
        "json_schema",
        "regex",
        "ebnf",
        "structural_tag",
        "ignore_eos",
    ),
    *(
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "no_stop_trim",
        "stream_interval",
        "logit_bias",
        "sampling_seed",
    ),
    *("custom_params", "beam_width", "watermark", "choice"),
)
"""Every field that SGLang 0.5.23 knows, in the order of its refusal."""
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "stop_regex": (None,),
    "min_p": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "presence_penalty": (None, 0, 0.0),
    "repetition_penalty": (None, 1, 1.0),
    "n": (None, 1),
    "json_schema": (None,),
    "regex": (None,),
    "ebnf": (None,),
    "structural_tag": (None,),
    "logit_bias": (None, {}),
    "custom_params": (None,),
    "beam_width": (None, 1),
    "watermark": (None, False),
    "choice": (None,),
    "no_stop_trim": (None, False),
}
"""Fields that the lab does not act on, with the values that ask for nothing."""


def read(params: Mapping[str, object], *, default_new_tokens: int = DEFAULT_NEW_TOKENS) -> Sampling:
    """Return the sampling asked for; raise BadRequestError for an unknown field, a wrong type or something the lab lacks."""
    unknown = next((name for name in params if name not in FIELDS), None)
    if unknown is not None:
        raise UnknownFieldError(
            f"unknown field `{unknown}`, expected one of {', '.join(f'`{name}`' for name in FIELDS)}"
        )
    for name, values in _NEUTRAL.items():
        if name in params and params[name] not in values:
            raise BadRequestError(f"{name} is not supported by the lab engine")
    temperature = number(params, "temperature", 1.0, lowest=0.0)
    top_p = number(params, "top_p", 1.0, lowest=0.0)
    if not 0 < top_p <= 1:
        raise BadRequestError(f"top_p must be in (0, 1], got {top_p}.")
    return Sampling(
        max_new_tokens=integer(params, "max_new_tokens", default_new_tokens, lowest=1),
        temperature=0.0 if temperature < GREEDY_BELOW else temperature,
        top_p=top_p,
        top_k=integer(params, "top_k", -1, lowest=-1),
        seed=optional_integer(params, "sampling_seed"),
        stop=_texts(params.get("stop")),
        stop_token_ids=_ids(params.get("stop_token_ids")),
        ignore_eos=params.get("ignore_eos") is True,
        min_new_tokens=integer(params, "min_new_tokens", 0, lowest=0),
    )


def number(params: Mapping[str, object], name: str, default: float, *, lowest: float) -> float:
    """Return a number of the parameters."""
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value < float("inf"):
        raise BadRequestError(f"{name} must be a number of at least {lowest}, got {value!r}.")
    return float(value)


def integer(params: Mapping[str, object], name: str, default: int, *, lowest: int) -> int:
    """Return a whole number of the parameters."""
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise BadRequestError(f"{name} must be an integer of at least {lowest}, got {value!r}.")
    return value


def optional_integer(params: Mapping[str, object], name: str) -> int | None:
    """Return a whole number of the parameters, None where it is not given."""
    return None if params.get(name) is None else integer(params, name, 0, lowest=0)


def _texts(value: object) -> tuple[str, ...]:
    """Return stop strings, given as one or several."""
    if value is None:
        return ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise BadRequestError("stop must be a string or a list of strings that are not empty.")
    return tuple(texts)


def _ids(value: object) -> tuple[int, ...]:
    """Return stop tokens."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(token, int) and not isinstance(token, bool) for token in value
    ):
        raise BadRequestError("stop_token_ids must be a list of integers.")
    return tuple(value)
