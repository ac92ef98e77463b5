"""Facts read from what a host answered: drift is told apart from what could not be found out."""

from __future__ import annotations

from specctl.rollout.facts import HostFacts, ServerFacts

EDITED = "none.service differs from the manifest"
LACKING = "/models/big: 2 of the files that its index names are missing"


def test_drift_is_told_apart_from_other_warnings() -> None:
    """A model that lacks files is no drift of the release."""
    found = ServerFacts.from_wire({"drift": True, "drifted": [EDITED], "warnings": [EDITED, LACKING]}, None)
    assert (found.drift, found.warnings) == ((EDITED,), (LACKING,))


def test_drift_without_words_is_drift_all_the_same() -> None:
    """A host that only says that it drifted is believed."""
    assert ServerFacts.from_wire({"drift": True, "warnings": [EDITED]}, None).drift == (EDITED,)
    assert ServerFacts.from_wire({"drift": True}, None).drift == ("the host differs from its current release",)


def test_no_drift_keeps_every_warning() -> None:
    """What could not be found out stays a warning."""
    found = ServerFacts.from_wire({"drift": False, "drifted": [], "warnings": [LACKING]}, None)
    assert (found.drift, found.warnings) == ((), (LACKING,))


def test_the_clocks_are_compared_at_the_answers_arrival() -> None:
    """The host's wall clock against the operator's; unknown without one of them."""
    assert HostFacts.from_wire("gpu1", {"wall_s": 1060.5}, 1000.0).machine.clock_ahead_s == 60.5
    assert HostFacts.from_wire("gpu1", {"wall_s": 1060.5}).machine.clock_ahead_s is None
    assert HostFacts.from_wire("gpu1", {}, 1000.0).machine.clock_ahead_s is None
