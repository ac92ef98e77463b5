"""What of the GPUs forbids a decision, and for how long."""

from __future__ import annotations

from dataclasses import replace

from specctl.control.sample.gpu import DriverFacts, GpuFacts, GpuSample, LostGpu, NvmlSample, Problem, Trouble, XidEvent
from specctl_agent.gpu_watch import XID_FOR_S, GpuWatch
from specctl_agent.here import Graphics

HOT, BRAKE, CAP = 0x20, 0x08, 0x04
FACTS = (GpuFacts(uuid="A", index=0), GpuFacts(uuid="B", index=1))


def look(at_s: float, bits: tuple[int | None, int | None], **more: object) -> NvmlSample:
    """Return a sample of two GPUs with these throttle reasons."""
    gpus = tuple(GpuSample(uuid=uuid, index=index, throttle_bits=bits[index]) for index, uuid in enumerate("AB"))
    return replace(NvmlSample(at_s=at_s, gpus=gpus, facts=FACTS), **more)  # type: ignore[arg-type]  # fields of a sample


def test_a_slow_gpu_counts_once_it_is_seen_twice() -> None:
    """One look of a slowdown may be a change of state; a power cap and an unknown one are none at all."""
    watch = GpuWatch()
    watch.observe(look(1.0, (HOT, CAP)), 1.0)
    watch.observe(look(1.0, (HOT, CAP)), 2.0)  # the same look again is no second one
    assert watch.troubles(()) == ()
    watch.observe(look(2.0, (HOT, CAP)), 2.0)
    assert watch.troubles(()) == ("GPU 0 is slowed (sw_thermal)",)
    assert watch.troubles((1,)) == ()
    watch.observe(look(3.0, (None, None)), 3.0)
    assert watch.troubles(()) == ()


def test_an_xid_counts_for_a_while() -> None:
    """A fault that the driver reported is trouble for ten minutes, of its own GPU or of all where it names none."""
    watch = GpuWatch()
    events = (XidEvent(serial=1, at_s=10.0, uuid="B", xid=79), XidEvent(serial=2, at_s=10.0, uuid=None, xid=43))
    watch.observe(look(11.0, (0, 0), xids=events), 11.0)
    assert watch.troubles((0,)) == ("GPU ? reported XID 43",)
    assert len(watch.troubles((1,))) == 2
    watch.observe(look(12.0 + XID_FOR_S, (0, 0), xids=events), 12.0 + XID_FOR_S)
    assert watch.troubles(()) == ()


def test_a_lost_gpu_is_trouble_for_its_server_alone() -> None:
    """A server on other GPUs decides on."""
    watch = GpuWatch()
    lost = LostGpu(index=1, uuid="B", trouble=Trouble(problem=Problem.GPU_LOST, detail="lost", since_s=1.0))
    watch.observe(look(1.0, (0, None), lost=(lost,)), 1.0)
    assert watch.troubles((1, 2)) == ("GPU 1 gives no sample (gpu_lost)",)
    assert watch.troubles((0,)) == ()


def test_the_gpus_of_a_server_are_told_as_its_driver_names_them() -> None:
    """Of the named ones, or of all; of a GPU that never said what it is nothing is made up."""
    watch = GpuWatch()
    assert watch.graphics(()) == Graphics()
    facts = (GpuFacts(uuid="A", index=0, name="NVIDIA H200"), GpuFacts(uuid="B", index=1, name="NVIDIA H200"))
    watch.observe(look(1.0, (0, 0), facts=facts, driver=DriverFacts(driver="590.48")), 1.0)
    assert watch.graphics(()) == Graphics(model="NVIDIA H200", count=2, driver="590.48")
    assert watch.graphics((1,)) == Graphics(model="NVIDIA H200", count=1, driver="590.48")
    assert watch.graphics((1, 2)) == Graphics(driver="590.48")
