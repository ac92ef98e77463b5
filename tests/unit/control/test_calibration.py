"""Calibration files: what is read, and every problem of one at once."""

from __future__ import annotations

import pytest

from specctl.control.calibration import CalibrationError, parse
from specctl.control.mode import mode
from specctl.control.mode import parse as parse_mode
from specctl.control.rates_table import Beyond

CHAIN = mode("dflash")
GOOD: dict[str, object] = {
    "about": "points of a bench run",
    "gpu": "a card",
    "max_running": 64,
    "prefill_s_per_input_token": 5e-05,
    "modes": {"none": {"1": 40, "4": 158.84}, "ddtree:tree_budget=16": {"8": 610, "1": 92}},
    "measured": {"none": ["4"], "ddtree:tree_budget=16": ["8"]},
}


def test_a_model_file_is_a_calibration() -> None:
    """The format of shared model files is read as it is, points in rising order."""
    found = parse(GOOD, beyond=Beyond.STAYS, spread=0.0)
    assert found.table.points == {
        mode("none"): ((1.0, 40.0), (4.0, 158.84)),
        parse_mode("ddtree:tree_budget=16"): ((1.0, 92.0), (8.0, 610.0)),
    }
    assert (found.max_running, found.prefill_s_per_input_token) == (64, 5e-05)
    assert found.measured == {mode("none"): frozenset({4.0}), parse_mode("ddtree:tree_budget=16"): frozenset({8.0})}
    assert found.texts == {"about": "points of a bench run", "gpu": "a card"}


def test_numbers_may_be_keys() -> None:
    """YAML writes concurrencies as numbers, JSON as texts."""
    assert parse({"modes": {"dflash": {1: 70, 2.5: 80}}}).table.points == {CHAIN: ((1.0, 70.0), (2.5, 80.0))}


def test_a_file_without_a_spread_is_taken_with_doubt() -> None:
    """No bench run is exact: the bounds are apart unless the file says otherwise."""
    doubted = parse({"modes": {"dflash": {1: 100}}}).table.tokens_s(CHAIN, 1.0)
    exact = parse({"spread": 0, "modes": {"dflash": {1: 100}}}).table.tokens_s(CHAIN, 1.0)
    assert doubted is not None
    assert exact is not None
    assert (doubted.low, doubted.high) == (95.0, 105.0)
    assert (exact.low, exact.high) == (100.0, 100.0)


def test_without_a_list_all_points_are_measured() -> None:
    """A file that does not tell assumptions apart states measurements."""
    assert parse({"modes": {"dflash": {1: 70, 2: 80}}}).measured == {CHAIN: frozenset({1.0, 2.0})}


def test_every_problem_is_told_at_once_with_its_place() -> None:
    """One reading is enough to mend a file."""
    wrong = {
        "max_running": 0,
        "prefill_s_per_input_token": -1,
        "spread": 2,
        "colour": "red",
        "modes": {
            "dflush": {1: 1},
            "none": {},
            "dflash": {"x": 1, 1: "fast", 2: float("nan"), 3: 0},
            "ddtree:tree_budget=16": {1: 5},
            "ddtree:tree_budget=016": {1: 5},
        },
        "measured": {"dflash": [7], "none": "4"},
    }
    with pytest.raises(CalibrationError) as caught:
        parse(wrong)
    places = {problem.split(": ")[0] for problem in caught.value.problems}
    assert places == {
        "colour",
        "max_running",
        "prefill_s_per_input_token",
        "spread",
        "modes.dflush",
        "modes.none",
        "modes.dflash.x",
        "modes.dflash.1",
        "modes.dflash.2",
        "modes.dflash.3",
        "modes.ddtree:tree_budget=016",
        "measured.dflash",
        "measured.none",
    }


@pytest.mark.parametrize("plain", [None, [], "modes", {}, {"modes": []}, {"modes": {}}])
def test_what_is_no_calibration_is_refused(plain: object) -> None:
    """Anything but a mapping with modes is refused in words."""
    with pytest.raises(CalibrationError, match="modes"):
        parse(plain)
