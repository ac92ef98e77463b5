"""A model file: rates between its points, and each thing in it that cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.control.replay import service
from tests.unit.control.replay.loads import CHAIN, NONE, SERVICE, TREE

GOOD = {"max_running": 8, "modes": {"none": {"1": 40, "8": 280}}}
FILE = Path(__file__).parents[3] / "data" / "traces" / "model.json"


def test_a_model_file_is_read() -> None:
    """Modes, points, places and prefill are those of the file."""
    found = service.parse(json.loads(FILE.read_text(encoding="utf-8")))
    assert (found.rates, found.max_running, found.prefill_s) == (SERVICE.rates, 8, 0.0001)


@pytest.mark.parametrize(
    ("concurrency", "rate"),
    [(0, 0.0), (0.5, 20.0), (1, 40.0), (2.5, 95.0), (4, 150.0), (6, 215.0), (8, 280.0), (99, 280.0)],
)
def test_rates_are_linear_between_points(concurrency: float, rate: float) -> None:
    """Nothing without requests, linear between points, and the last one's from there on."""
    assert SERVICE.rate(NONE, concurrency) == pytest.approx(rate)


def test_what_waits_is_not_served_faster() -> None:
    """Requests beyond those that can run do not raise the rate, even where the model has points beyond."""
    found = service.parse({"max_running": 4, "modes": {"none": {"1": 10, "16": 160}}})
    assert found.rate(NONE, 16) == found.rate(NONE, 4) == pytest.approx(40.0)
    assert found.by_running(NONE) == pytest.approx((0.0, 10.0, 20.0, 30.0, 40.0))


def test_capacity_is_the_highest_rate_at_any_load() -> None:
    """A mode whose rate falls again has its capacity at its peak."""
    found = service.parse({"max_running": 4, "modes": {"none": {"1": 10, "2": 50, "4": 20}, "dflash": {"1": 30}}})
    assert (found.capacity(NONE), found.capacity(CHAIN), found.best_capacity) == (50.0, 30.0, 50.0)
    assert SERVICE.capacity(TREE) == 160.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_running": 0}, "max_running"),
        ({"max_running": True}, "max_running"),
        ({"max_running": 10**9}, "max_running"),
        ({"max_running": None}, "max_running"),
        ({"prefill_s_per_input_token": -1}, "prefill_s_per_input_token"),
        ({"prefill_s_per_input_token": float("nan")}, "prefill_s_per_input_token"),
        ({"modes": {}}, "modes: an object"),
        ({"modes": []}, "modes: an object"),
        ({"modes": {"eagle": {"1": 1}}}, "modes.eagle: no algo"),
        ({"modes": {"none": {}}}, "modes.none: an object of 1"),
        ({"modes": {"none": {"one": 1}}}, "modes.none: 'one' is not a concurrency"),
        ({"modes": {"none": {"0": 1}}}, "modes.none: a concurrency is a number above zero"),
        ({"modes": {"none": {"1": 1, "1.0": 2}}}, "modes.none: a concurrency is a number above zero that stands once"),
        ({"modes": {"none": {"nan": 1}}}, "modes.none: a concurrency"),
        ({"modes": {"none": {"1": "40"}}}, "modes.none.1: a number"),
        ({"modes": {"none": {"1": 0}}}, "modes.none.1: a mode that serves nothing"),
        ({"modes": {"none": {"1": 1}, "none:": {"1": 2}}}, "modes.none:: the mode is given twice"),
    ],
)
def test_a_model_that_cannot_be_meant_names_its_key(change: dict[str, object], words: str) -> None:
    """The error begins with the key of the value that is wrong."""
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        service.parse(GOOD | change)


@pytest.mark.parametrize("values", [None, [], "text", 4])
def test_a_model_is_an_object(values: object) -> None:
    """Any other JSON is refused."""
    with pytest.raises(ValueError, match="a model is an object"):
        service.parse(values)
