"""SGLang's sampling parameters, read strictly."""

from __future__ import annotations

import pytest

from specctl.lab.serve import sampling
from specctl.lab.serve.answers import BadRequestError, UnknownFieldError
from specctl.lab.types import Sampling


def test_defaults_are_sglangs() -> None:
    """Without parameters the answer has 128 tokens at temperature 1."""
    assert sampling.read({}) == Sampling(max_new_tokens=128, temperature=1.0)


def test_every_parameter() -> None:
    """Each parameter that the lab acts on arrives."""
    asked = {
        "max_new_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "sampling_seed": 3,
        "stop": ["a", "b"],
        "stop_token_ids": [1],
        "ignore_eos": True,
        "min_new_tokens": 2,
        "skip_special_tokens": True,
        "n": 1,
        "min_p": 0.0,
    }
    assert sampling.read(asked) == Sampling(
        max_new_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        seed=3,
        stop=("a", "b"),
        stop_token_ids=(1,),
        ignore_eos=True,
        min_new_tokens=2,
    )


def test_tiny_temperatures_are_greedy() -> None:
    """A temperature too small to divide by is greedy."""
    assert sampling.read({"temperature": 1e-9}).temperature == 0.0


def test_unknown_field() -> None:
    """An unknown field is refused with the list of the known ones."""
    with pytest.raises(UnknownFieldError, match="unknown field `nosuch`, expected one of `max_new_tokens`, `stop`"):
        sampling.read({"nosuch": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_new_tokens": 0},
        {"max_new_tokens": "5"},
        {"max_new_tokens": True},
        {"temperature": -1},
        {"temperature": float("inf")},
        {"temperature": "hot"},
        {"top_p": 0},
        {"top_p": 1.1},
        {"stop": 5},
        {"stop": [""]},
        {"stop_token_ids": ["a"]},
        {"n": 2},
        {"regex": "a+"},
        {"json_schema": "{}"},
        {"repetition_penalty": 1.2},
        {"logit_bias": {"5": 1}},
    ],
)
def test_wrong_or_missing_features_are_refused(wrong: dict[str, object]) -> None:
    """A wrong type, a value out of range or a feature that the lab lacks is refused, never ignored."""
    with pytest.raises(BadRequestError):
        sampling.read(wrong)
