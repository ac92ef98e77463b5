"""The observer that the rendering tests trust must itself see truly."""

from __future__ import annotations

import pytest

from tests.fleet import echo_unit
from tests.fleet import fleet as fleets
from tests.fleet.waiting import FleetError


def _unit(exec_start: str, *settings: str) -> str:
    return "\n".join(["[Service]", "Type=exec", *settings, f"ExecStart={exec_start}", ""])


def test_an_observation_is_what_systemd_made_of_the_unit(fresh_fleet: fleets.Fleet) -> None:
    """Quotes, escapes and specifiers arrive as systemd resolves them, in argv and environment alike, under hardening too."""
    text = _unit(
        f'{echo_unit.PROGRAM} plain "two words" %% $$x "\\x41é" "" --flag=1\\n2',
        'Environment="A=b c" HOST=%H "B=x=y"',
        "ProtectSystem=strict",
        "PrivateTmp=yes",
        "DynamicUser=yes",
    )

    seen = echo_unit.observe(fresh_fleet.hosts["gpu1"], text)

    assert seen.argv == (echo_unit.PROGRAM, "plain", "two words", "%", "$x", "Aé", "", "--flag=1\n2")
    assert {name: seen.environ[name] for name in ("A", "HOST", "B")} == {"A": "b c", "HOST": "gpu1", "B": "x=y"}


def test_many_units_are_observed_in_order_and_nothing_stays(fresh_fleet: fleets.Fleet) -> None:
    """Sixty units in one go come back in their order, long arguments whole, and leave no unit on the host."""
    host = fresh_fleet.hosts["gpu1"]
    texts = [_unit(f"{echo_unit.PROGRAM} {number} {'x' * number * 100}") for number in range(60)]

    seen = echo_unit.observe_all(host, texts)

    assert [one.argv[1:] for one in seen] == [(str(n), *(("x" * n * 100,) if n else ())) for n in range(60)]
    assert host.output(["systemctl", "list-units", "--all", "--no-legend", "fleet-echo-*"]) == ""


@pytest.mark.parametrize(
    "exec_start",
    [f'{echo_unit.PROGRAM} "open', "/nowhere/program", "/bin/false"],
    ids=["bad setting", "no program", "fails"],
)
def test_a_unit_that_did_not_run_is_an_error(fresh_fleet: fleets.Fleet, exec_start: str) -> None:
    """A unit that systemd refuses, or whose process says nothing, is never an empty observation."""
    with pytest.raises(FleetError, match="a unit did not run"):
        echo_unit.observe(fresh_fleet.hosts["gpu1"], _unit(exec_start))
