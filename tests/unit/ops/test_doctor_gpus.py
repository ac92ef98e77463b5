"""Rows of the driver's tool become looks at GPUs; what a driver does not say is None, what is no row is nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.doctor.evidence import GpuLook
from specctl.ops.doctor_gpus import FIELDS, from_row
from tests.examples import HOSTILE

WHOLE = "3, NVIDIA RTX PRO 6000, 97, 212.50, 600.00, 600.00, 2100, 2600, 87040, 97887, 4, 5, 8, 16, 0x0000000000000024"
OLD = "0, Tesla, 0, [N/A], [Not Supported], [N/A], 300, 1500, 10, 16000, 3, 3, 16, 16"


def test_a_row_is_read_whole() -> None:
    """Each cell goes to its field, in the units of its name."""
    assert len(WHOLE.split(",")) == len(FIELDS) + 1
    assert from_row(WHOLE, 1.5) == GpuLook(
        index=3,
        at_s=1.5,
        model="NVIDIA RTX PRO 6000",
        busy_ratio=0.97,
        power_w=212.5,
        power_limit_w=600.0,
        power_default_w=600.0,
        sm_clock_hz=2.1e9,
        sm_clock_max_hz=2.6e9,
        memory_used_bytes=87040 << 20,
        memory_total_bytes=97887 << 20,
        throttles=("sw_power_cap", "sw_thermal"),
        link_generation=4,
        link_generation_max=5,
        link_width=8,
        link_width_max=16,
    )


def test_what_an_old_driver_does_not_say_is_unknown() -> None:
    """No power and no reasons are None, not 0."""
    found = from_row(OLD, 0.0)
    assert found is not None
    assert (found.power_w, found.power_limit_w, found.throttles, found.busy_ratio) == (None, None, None, 0.0)


@pytest.mark.parametrize(
    "line", ["", "No devices were found", "index, name", "x" * 1000, "-1" + ", 0" * 13, ", ".join(["9" * 30] * 15)]
)
def test_what_is_no_row_is_nothing(line: str) -> None:
    """Words of the tool are no GPU."""
    assert from_row(line, 0.0) is None


@settings(max_examples=HOSTILE, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=14, max_size=16))
def test_any_row_is_read(cells: list[str]) -> None:
    """Whatever a tool prints, reading it fails nowhere."""
    from_row(", ".join(["1", *cells[1:]]), 0.0)
