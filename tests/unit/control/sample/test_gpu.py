"""What a GPU's sample says of its own health, and how XIDs are kept."""

from __future__ import annotations

import pytest

from specctl.control.sample.gpu import GpuSample, NvmlSample, Throttle, XidCount, XidEvent, XidLog


def gpu(throttle_bits: int | None) -> GpuSample:
    return GpuSample(uuid="GPU-1", index=0, throttle_bits=throttle_bits)


@pytest.mark.parametrize(
    ("bits", "throttles", "slowing", "capped"),
    [
        (0x0, (), (), False),
        (0x1, (Throttle.IDLE,), (), False),
        (0x2, (Throttle.APP_CLOCKS,), (), False),
        (0x4, (Throttle.SW_POWER_CAP,), (), True),
        (0x8, (Throttle.HW_SLOWDOWN,), (Throttle.HW_SLOWDOWN,), False),
        (0x10, (Throttle.SYNC_BOOST,), (), False),
        (0x20, (Throttle.SW_THERMAL,), (Throttle.SW_THERMAL,), False),
        (0x48, (Throttle.HW_SLOWDOWN, Throttle.HW_THERMAL), (Throttle.HW_SLOWDOWN, Throttle.HW_THERMAL), False),
        (0x84, (Throttle.SW_POWER_CAP, Throttle.HW_POWER_BRAKE), (Throttle.HW_POWER_BRAKE,), True),
        (0x100, (Throttle.DISPLAY_CLOCKS,), (), False),
        (0x8000, (), (), False),
    ],
)
def test_throttle_reasons(
    bits: int, throttles: tuple[Throttle, ...], slowing: tuple[Throttle, ...], *, capped: bool
) -> None:
    """Each bit of nvml.h has its name; heat and faults of supply slow a GPU, its power cap and what somebody set do not count."""
    sample = gpu(bits)
    assert (sample.throttles, sample.slowing, sample.power_capped) == (throttles, slowing, capped)


def test_unknown_throttling_is_no_health() -> None:
    """A GPU that does not tell why it is slow is not called well."""
    sample = gpu(None)
    assert (sample.throttles, sample.slowing, sample.power_capped) == (None, None, None)


def test_events_are_numbered_and_counted() -> None:
    """Each event gets the next serial, and the counts are by GPU and XID."""
    log = XidLog().add(1.0, [("GPU-1", 31)]).add(2.0, [("GPU-1", 31), (None, 79)])
    assert log.events == (
        XidEvent(serial=1, at_s=1.0, uuid="GPU-1", xid=31),
        XidEvent(serial=2, at_s=2.0, uuid="GPU-1", xid=31),
        XidEvent(serial=3, at_s=2.0, uuid=None, xid=79),
    )
    assert log.counts == (XidCount(uuid="GPU-1", xid=31, count=2), XidCount(uuid=None, xid=79, count=1))


def test_a_storm_of_events_stays_bounded() -> None:
    """Old events make room, but serials and counts go on."""
    log = XidLog()
    for at in range(10):
        log = log.add(float(at), [("GPU-1", 13)] * 50)
    assert len(log.events) == XidLog.KEPT
    assert log.events[-1].serial == 500
    assert log.counts == (XidCount(uuid="GPU-1", xid=13, count=500),)


def test_a_reader_sees_each_event_once() -> None:
    """Who remembers the last serial gets what came after it, however many samples were missed."""
    log = XidLog().add(1.0, [("GPU-1", 31)]).add(2.0, [("GPU-1", 79)])
    sample = NvmlSample(at_s=3.0, xids=log.events)
    assert [event.xid for event in sample.xids_after(0)] == [31, 79]
    assert [event.xid for event in sample.xids_after(1)] == [79]
    assert sample.xids_after(2) == ()
