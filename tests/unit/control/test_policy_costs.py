"""What a change takes on a host."""

from __future__ import annotations

from specctl.control.mode import mode, parse
from specctl.control.policy_costs import HostCosts
from specctl.control.policy_types import Means, Price

SMALL, LARGE, CHAIN = (
    parse("ddtree:tree_budget=16,topk_cap=4"),
    parse("ddtree:tree_budget=64,topk_cap=4"),
    mode("dflash"),
)
HOST = HostCosts(live_knobs={"ddtree": frozenset({"tree_budget"})}, drain_s=20.0, load_s={"dflash": 400.0})


def test_a_live_knob_is_set_live() -> None:
    """What the engine takes over HTTP costs a tenth of a second."""
    assert HOST.price(SMALL, LARGE) == Price(means=Means.LIVE, seconds=0.1)


def test_another_knob_or_algo_takes_a_restart_of_known_length() -> None:
    """Drain and load come from this host's own past."""
    assert HOST.price(SMALL, CHAIN) == Price(means=Means.RESTART, seconds=420.0)
    assert HOST.price(SMALL, parse("ddtree:tree_budget=16,topk_cap=8")) is None


def test_an_algo_that_was_never_loaded_has_no_price() -> None:
    """Without a load of it, or one that stands in, the change cannot be priced and is not made."""
    assert HOST.price(CHAIN, SMALL) is None
    guessed = HostCosts(default_load_s=480.0, weight=0.5)
    assert guessed.price(CHAIN, SMALL) == Price(means=Means.RESTART, seconds=480.0, weight=0.5)


def test_an_engine_that_takes_algos_live_needs_no_restart() -> None:
    """The lab engine changes its algo over HTTP."""
    assert HostCosts(live_algos=True).price(CHAIN, SMALL) == Price(means=Means.LIVE, seconds=0.1)


def test_a_knob_that_only_one_of_them_has_takes_a_restart() -> None:
    """A knob that appears or goes cannot be set live."""
    assert HOST.price(SMALL, parse("ddtree:tree_budget=16")) is None
