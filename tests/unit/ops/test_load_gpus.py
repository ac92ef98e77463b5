"""Readings of GPUs: the driver's own table, and the agent's newest sample."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.measure.load import GpuReading
from specctl.ops.load_gpus import from_row, from_snapshot
from tests.examples import HOSTILE


def test_row_of_the_drivers_table() -> None:
    """Watts, megahertz, per cent and mebibytes become our units, the mask becomes reasons."""
    found = from_row("3, 512.31, 600.00, 1980, 64, 97, 139264, 0x0000000000000024", 5.0)
    assert found == GpuReading(
        at_s=5.0,
        index=3,
        power_w=512.31,
        power_limit_w=600.0,
        sm_clock_hz=1.98e9,
        temperature_c=64.0,
        busy_ratio=0.97,
        memory_used_bytes=139264 << 20,
        throttle=("sw_power_cap", "sw_thermal"),
    )


def test_what_the_driver_does_not_say_is_unknown() -> None:
    """`[N/A]` is unknown and no zero; without the mask no reasons are known, with a zero there are none."""
    found = from_row("0, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]", 5.0)
    assert found == GpuReading(at_s=5.0, index=0)
    none = from_row("0, 1, 1, 1, 1, 1, 1, 0x0000000000000000", 5.0)
    assert none is not None
    assert none.throttle == ()


@pytest.mark.parametrize(
    "line", ["", "No devices were found", "index, power", 'Field "x" is not a valid field to query.']
)
def test_words_of_the_tool_are_no_reading(line: str) -> None:
    """Errors and headings are passed over."""
    assert from_row(line, 0.0) is None


@given(line=st.text(max_size=80))
@settings(max_examples=HOSTILE, deadline=None)
def test_any_line_is_taken(line: str) -> None:
    """No line raises."""
    from_row("0," + line, 0.0)


def test_sample_of_the_agent() -> None:
    """The agent's values are taken as they are, at the moment when they were read."""
    gpu = {"index": 1, "power_w": 300.5, "sm_clock_hz": 1_900_000_000, "throttle_bits": 64, "processes": [{"pid": 7}]}
    (found,) = from_snapshot({"nvml_age_s": 0.5, "nvml": {"gpus": [gpu]}}, 10.0)
    assert (found.at_s, found.index, found.power_w, found.sm_clock_hz) == (9.5, 1, 300.5, 1.9e9)
    assert (found.throttle, found.pids, found.temperature_c) == (("hw_thermal",), (7,), None)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"nvml": None, "nvml_age_s": 0.1},
        {"nvml": {"gpus": [{"index": 0}]}, "nvml_age_s": 99.0},
        {"nvml": {"gpus": "x"}, "nvml_age_s": 0},
    ],
)
def test_no_gpus_or_old_ones_are_no_readings(told: dict[str, object]) -> None:
    """An agent without GPUs, and a sample of long ago, tell nothing."""
    assert from_snapshot(told, 10.0) == ()
