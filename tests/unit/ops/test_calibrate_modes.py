"""Which modes a calibration measures: those named or those that the agent owns, whole; and by which way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control import mode as modes
from specctl.errors import UnsupportedError, UsageError
from specctl.fleet.types import AgentSettings
from specctl.ops import calibrate_modes
from tests.fakes import SERVER

DEPLOYED = {"none": {}, "dflash": {"block_size": 8}, "ddtree": {"tree_budget": 7, "topk_cap": 2}}
WAS = modes.mode("dflash", {"block_size": 8})
OWNED = AgentSettings(algos=("dflash", "ddtree"), knobs={"ddtree": {"tree_budget": (6, 20)}})


def named(*given: str) -> list[str]:
    """Return the modes of a command line, spelled."""
    return [str(each) for each in calibrate_modes.wanted(given, SERVER, DEPLOYED, WAS)]


def test_without_names_every_algo_of_the_release_is_measured() -> None:
    """What runs first, the others as they would start."""
    assert named() == ["dflash:block_size=8", "none", "ddtree:topk_cap=2,tree_budget=7"]


def test_what_the_agent_owns_is_measured_at_its_bounds_and_between() -> None:
    """Its algos alone, and each owned knob at both bounds and the powers of two between them."""
    server = replace(SERVER, agent=OWNED)
    found = [str(each) for each in calibrate_modes.wanted((), server, DEPLOYED, WAS)]
    budgets = [f"ddtree:topk_cap=2,tree_budget={budget}" for budget in (7, 6, 8, 16, 20)]
    assert found == ["dflash:block_size=8", *budgets]


def test_knobs_that_are_not_said_are_the_releases() -> None:
    """A named budget keeps the release's cap; an algo named bare is as it would start."""
    assert named("ddtree:tree_budget=32", "dflash") == ["ddtree:topk_cap=2,tree_budget=32", "dflash:block_size=8"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("dflash",), "two or more"),
        (("dflash", "dflash:block_size=8"), "two or more"),
        (("warp", "none"), "no algo 'warp'"),
        (("ddtree:tree_budget=x", "none"), "is not knob=number"),
        (("ddtree:tree_budget=999999", "none"), "outside"),
        (tuple(f"ddtree:tree_budget={budget}" for budget in range(1, 18)), "17 modes are more than 16"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: tuple[str, ...], words: str) -> None:
    """Before anything is measured, with what to write in its place."""
    with pytest.raises(UsageError, match=words) as caught:
        named(*given)
    assert caught.value.hint


def test_a_drafting_mode_needs_a_draft() -> None:
    """A server without a drafter cannot draft."""
    with pytest.raises(UsageError, match="names no draft"):
        calibrate_modes.wanted(("dflash", "none"), replace(SERVER, draft=None), DEPLOYED, WAS)


def test_the_way_is_live_where_the_engine_takes_it() -> None:
    """A restart where it does not or where it is asked for; live is never forced on an engine that refuses."""
    assert calibrate_modes.way_of(None, None) == "live"
    assert calibrate_modes.way_of("restart", None) == "restart"
    assert calibrate_modes.way_of(None, "at its start alone") == "restart"
    with pytest.raises(UnsupportedError, match="at its start alone"):
        calibrate_modes.way_of("live", "at its start alone")
