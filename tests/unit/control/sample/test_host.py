"""What systemd and control groups print of a unit, read."""

from __future__ import annotations

import pytest

from specctl.control.sample.host import UnitState, parse_count, parse_event, parse_show

# As `systemctl show` of systemd 252 prints it; the second unit does not exist.
SHOWN = """\
Id=specctl-chat.service
LoadState=loaded
ActiveState=active
SubState=running
Result=success
MainPID=4242
NRestarts=2
InvocationID=0123456789abcdef0123456789abcdef
ControlGroup=/system.slice/specctl-chat.service

MainPID=0
NRestarts=0
Result=success
ControlGroup=
Id=specctl-none.service
LoadState=not-found
ActiveState=inactive
SubState=dead
InvocationID=
"""


def test_units_are_read_in_the_order_of_the_question() -> None:
    """Each block is one unit; no process, no id and no group are None, while no restart is 0."""
    assert parse_show(SHOWN) == (
        UnitState(
            unit="specctl-chat.service",
            load="loaded",
            active="active",
            sub="running",
            result="success",
            main_pid=4242,
            restarts=2,
            invocation="0123456789abcdef0123456789abcdef",
            control_group="/system.slice/specctl-chat.service",
        ),
        UnitState(
            unit="specctl-none.service", load="not-found", active="inactive", sub="dead", result="success", restarts=0
        ),
    )


@pytest.mark.parametrize("text", ["", "\n", "\n\n"])
def test_no_answer_is_no_unit(text: str) -> None:
    """An empty answer names no unit."""
    assert parse_show(text) == ()


def test_a_broken_answer_is_unknown() -> None:
    """Lines without a value and numbers that are none leave their field unknown."""
    (state,) = parse_show("Id=a.service\nNRestarts=[not set]\nnonsense\n")
    assert state == UnitState(unit="a.service")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096\n", 4096), ("0\n", 0), ("max\n", None), ("9223372036854771712\n", None), ("", None), ("-1", None)],
)
def test_a_count_of_a_group(text: str, expected: int | None) -> None:
    """A number is a number, `max` is no limit, and anything else is unknown."""
    assert parse_count(text) == expected


def test_an_event_of_a_group() -> None:
    """One key of a flat-keyed file is found, a longer key of the same beginning is not taken for it."""
    text = "low 0\noom 4\noom_kill 3\noom_group_kill 1\n"
    assert parse_event(text, "oom_kill") == 3
    assert parse_event(text, "oom") == 4
    assert parse_event(text, "high") is None
    assert parse_event("", "oom_kill") is None
