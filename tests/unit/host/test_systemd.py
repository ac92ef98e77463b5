"""What systemctl says, read; the rest of systemd is tested on real hosts (tests/fleet/test_session.py)."""

from __future__ import annotations

import pytest

from specctl.host import systemd
from specctl.host.states import State
from specctl.host.wire import Args, OpError

SHOWN = """MainPID=4711
NRestarts=2
Result=success
ExecMainCode=0
ExecMainStatus=0
LoadState=loaded
ActiveState=active
SubState=running
InvocationID=6f4b
ControlGroup=/system.slice/specctl-k26.service
NeedDaemonReload=no
UnitFileState=enabled
"""


def test_a_running_unit() -> None:
    """A running unit has a main process and no exit status."""
    assert systemd.parse_state(SHOWN) == State(
        active="active",
        sub="running",
        invocation="6f4b",
        main_pid=4711,
        restarts=2,
        result="success",
        exit_status=None,
        loaded="loaded",
        needs_reload=False,
        enabled="enabled",
        group="/system.slice/specctl-k26.service",
    )


@pytest.mark.parametrize(
    ("code", "status", "expected"), [("1", "3", 3), ("2", "9", 137), ("3", "11", 139), ("0", "0", None)]
)
def test_exit_statuses(code: str, status: str, expected: int | None) -> None:
    """An exit status is itself, a signal is 128 + its number, no end is None."""
    assert systemd.parse_state(f"MainPID=0\nExecMainCode={code}\nExecMainStatus={status}\n").exit_status == expected


@pytest.mark.parametrize("text", ["", "x", "MainPID=\nNRestarts=[not set]\nExecMainStatus=[not set]\n", "=\n=="])
def test_what_is_not_said_is_none(text: str) -> None:
    """Missing or unset properties are None, not 0."""
    assert systemd.parse_state(text) == State()


def test_wanted_by() -> None:
    """All targets of all WantedBy lines."""
    assert systemd.wanted_by("[Install]\nWantedBy=multi-user.target a.target\nWantedBy = b.target\n") == [
        "multi-user.target",
        "a.target",
        "b.target",
    ]


@pytest.mark.parametrize("unit", ["x", "../x.service", "a/b.service"])
def test_only_names_of_services(unit: str) -> None:
    """A unit's name cannot lead out of the unit folder."""
    with pytest.raises(OpError):
        systemd.Systemd(Args({"unit": unit}))
