"""GPUs as the driver's tool tells them, where no agent does."""

from __future__ import annotations

import pytest

from specctl.control.sample.gpu import Throttle
from specctl.control.sight import GpuSight, Source
from specctl.control.sight_gpus import of_agent, of_facts, trouble_of


def test_the_tools_rows() -> None:
    """What a row says is shown with its age; what it does not say is None; the index orders them."""
    rows = [{"index": 1}, {"index": 0, "uuid": "GPU-0", "power_w": 88.5, "throttle_bits": 0x24, "temperature_c": 41.0}]
    found = of_facts(rows, (), 3.0)
    assert found == (
        GpuSight(
            index=0,
            age_s=3.0,
            source=Source.FACTS,
            uuid="GPU-0",
            power_w=88.5,
            temperature_c=41,
            throttles=(Throttle.SW_POWER_CAP, Throttle.SW_THERMAL),
            slowing=(Throttle.SW_THERMAL,),
        ),
        GpuSight(index=1, age_s=3.0, source=Source.FACTS),
    )


@pytest.mark.parametrize("value", [None, "x", 3])
def test_no_rows(value: object) -> None:
    """A host that cannot tell its GPUs has unknown ones, which is not none."""
    assert of_facts(value, (), 0.0) is None
    assert of_facts([], (), 0.0) == ()


def test_an_nvml_in_trouble() -> None:
    """A sample with a trouble has no GPU in it, and its reason is told."""
    sample = {"trouble": {"detail": "the driver hangs"}, "gpus": [{"index": 0}]}
    assert (of_agent(sample, 0.1, ()), trouble_of(sample)) == (None, "the driver hangs")
