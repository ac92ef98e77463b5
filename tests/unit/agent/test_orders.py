"""Orders of people: kept over restarts and reboots, ended by time that no clock can bend."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.control import wire
from specctl.control.mode import mode
from specctl.fleet.types import AgentMode
from specctl_agent.orders import FORMAT, NAME, Orders
from specctl_agent.storing import Complaints, StateFile
from tests.unit.agent.recorded import HandClock, Said

PIN = wire.Pin(who="ops@desk", mode=mode("ddtree", {"tree_budget": 16}), for_s=3600.0, reason="a demo")


@pytest.fixture
def clock() -> HandClock:
    """Give a clock."""
    return HandClock()


def opened(folder: Path, clock: HandClock) -> Orders:
    """Open the orders of a folder as an agent does that starts."""
    said = Said()
    orders = Orders(file=StateFile(folder / NAME, FORMAT, Complaints(said), said), clock=clock)
    orders.load()
    return orders


def test_every_order_is_kept_over_a_restart(tmp_path: Path, clock: HandClock) -> None:
    """Mode, hold and pin of each server are what they were when the agent starts again."""
    orders = opened(tmp_path, clock)
    assert orders.take("k26", PIN)
    assert orders.take("k26", wire.Hold(who="ops@desk", reason="firmware"))
    assert orders.take("chat", wire.SetConduct(who="ops@desk", conduct=AgentMode.ACT))
    again = opened(tmp_path, clock)
    assert (again.of("k26"), again.of("chat")) == (orders.of("k26"), orders.of("chat"))
    assert again.of("k26").held == "firmware"
    assert again.of("chat").conduct is AgentMode.ACT


def test_orders_are_ended_by_their_opposites(tmp_path: Path, clock: HandClock) -> None:
    """Unpin, resume and the inventory's mode undo pin, hold and mode, and nothing else."""
    orders = opened(tmp_path, clock)
    for order in (PIN, wire.Hold(who="a", reason="b"), wire.SetConduct(who="a", conduct=AgentMode.ACT)):
        orders.take("k26", order)
    orders.take("k26", wire.Unpin(who="a"))
    assert (orders.of("k26").pin, orders.of("k26").held) == (None, "b")
    orders.take("k26", wire.Resume(who="a"))
    assert (orders.of("k26").held, orders.of("k26").resumed) == (None, 1)
    orders.take("k26", wire.SetConduct(who="a", conduct=None))
    assert orders.of("k26").conduct is None


def test_a_pin_ends_by_itself(tmp_path: Path, clock: HandClock) -> None:
    """A pin holds until its time is over, and is gone from the disk too."""
    orders = opened(tmp_path, clock)
    orders.take("k26", PIN)
    clock.advance(3599.0)
    assert orders.of("k26").pin is not None
    clock.advance(1.5)
    assert orders.of("k26").pin is None
    assert opened(tmp_path, clock).of("k26").pin is None


@pytest.mark.parametrize("jump_s", [86_400.0 * 400, -86_400.0 * 400])
def test_a_wall_clock_that_jumps_moves_no_pin(tmp_path: Path, clock: HandClock, jump_s: float) -> None:
    """Within a boot, a pin's time is that of the clock that nobody can set, also over a restart of the agent."""
    orders = opened(tmp_path, clock)
    orders.take("k26", PIN)
    clock.advance(600.0)
    clock.jump(jump_s)
    for seen in (orders, opened(tmp_path, clock)):
        pin = seen.of("k26").pin
        assert pin is not None
        assert pin.until.left_s(clock.now()) == 3000.0


def test_a_pin_survives_a_reboot_by_the_wall_clock(tmp_path: Path, clock: HandClock) -> None:
    """After a reboot what is left of a pin is what the wall clock says, and never more than a pin may take."""
    orders = opened(tmp_path, clock)
    orders.take("k26", PIN)
    clock.reboot(down_s=600.0)
    pin = opened(tmp_path, clock).of("k26").pin
    assert pin is not None
    assert pin.until.left_s(clock.now()) == 3000.0
    clock.jump(-86_400.0 * 4000)
    assert pin.until.left_s(clock.now()) == wire.LONGEST_S


def test_a_disk_that_refuses_loses_no_order(clock: HandClock, tmp_path: Path) -> None:
    """An order holds at once though it cannot be written, and whoever gave it is told so."""
    orders = opened(tmp_path / "none", clock)
    assert not orders.take("k26", PIN)
    assert orders.of("k26").pin is not None


def test_nonsense_in_the_file_is_left_out(tmp_path: Path, clock: HandClock) -> None:
    """What somebody wrote by hand and cannot be meant is no order."""
    (tmp_path / NAME).write_text(
        '{"format": 1, "servers": {"k26": {"conduct": "destroy", "held": 7, "resumed": "x", "pin": {"mode": "warp", "mono_s": 1, '
        '"wall_s": 2}}, "chat": []}}'
    )
    orders = opened(tmp_path, clock)
    assert (orders.of("k26"), orders.of("chat")) == (orders.of("never"), orders.of("never"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": 1, "servers": {"k26": {"held": "firm', "it is damaged"),
        (b'{"format": 99, "servers": {}}', "a newer agent wrote it (format 99, this one reads 1)"),
    ],
)
def test_orders_that_are_lost_may_have_been_a_hold(
    tmp_path: Path, clock: HandClock, content: bytes, reason: str
) -> None:
    """Where the file cannot be read, every server is held until somebody resumes it, also over the next restarts."""
    (tmp_path / NAME).write_bytes(content)
    for orders in (opened(tmp_path, clock), opened(tmp_path, clock)):
        assert orders.of("k26").held == orders.of("chat").held == f"what people ordered is lost, {NAME}: {reason}"
    orders.take("k26", PIN)
    assert orders.of("k26").held is not None
    orders.take("k26", wire.Resume(who="ops@desk"))
    again = opened(tmp_path, clock)
    assert (again.of("k26").held, again.of("chat").held is None) == (None, False)


def test_orders_that_cannot_be_read_now_are_a_hold(tmp_path: Path, clock: HandClock) -> None:
    """A disk that gives the file not back leaves it unknown whether somebody forbade all acts."""
    (tmp_path / NAME).mkdir()
    assert (
        opened(tmp_path, clock).of("k26").held == f"what people ordered is lost, {NAME}: cannot be read: Is a directory"
    )
