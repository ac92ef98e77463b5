"""Checks of the GPUs: driver, number, kind, strangers on them, settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specctl.rollout.gpu_facts import GpuProcess, Graphics
from specctl.rollout.observation import UnitState
from specctl.rollout.preflight.types import Level
from tests.unit.rollout.preflight.subjects import GIB, GRAPHICS, HARDWARE, HOST, finding, gpu, said, subject

DATA = Path(__file__).parents[3] / "data" / "nvidia-smi"
GPUS = GRAPHICS.gpus or ()


def changed(index: int, **more: object) -> dict[str, object]:
    """Return the GPUs with one of them changed."""
    return {"gpus": tuple(gpu(one.index, **more) if one.index == index else one for one in GPUS)}


def test_a_driver_mismatch_is_told_in_the_tools_words() -> None:
    """The driver was updated under the running kernel: a reboot helps, and the other GPU checks keep silent."""
    words = " ".join((DATA / "mismatch.txt").read_text().split())
    one = subject(of=Graphics(problem=words))
    found = finding(one, "P020")
    assert found is not None
    assert (found.level, found.reason) == (Level.FAIL, words)
    assert found.remedy == "reboot gpu1: the driver was updated under the running kernel"
    assert [finding(one, number) for number in ("P021", "P023", "P030")] == [None, None, None]


def test_another_refusal_of_the_driver_has_the_general_remedy() -> None:
    """A GPU that is lost is no mismatch."""
    found = finding(subject(of=Graphics(problem="Unable to determine the device handle: GPU is lost")), "P020")
    assert found is not None
    assert found.remedy.startswith("specctl exec --host gpu1 -- nvidia-smi")


def test_a_host_without_the_tool_is_unknown() -> None:
    """No nvidia-smi says nothing of GPUs, also where the inventory has some."""
    assert said(subject(of=Graphics()), "P020")[0] is Level.UNKNOWN


@pytest.mark.parametrize(
    ("count", "env", "words"),
    [
        (7, {}, "tensor parallel 8 needs as many GPUs, and 7 are offered"),
        (8, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, "tensor parallel 8 needs as many GPUs, and 4 are offered"),
        (7, {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, "GPU 7 of CUDA_VISIBLE_DEVICES is not there"),
    ],
)
def test_too_few_gpus_fail(count: int, env: dict[str, str], words: str) -> None:
    """A GPU that fell off the bus, and a list that is too short, are found before the load."""
    level, reason = said(subject(graphics={"gpus": GPUS[:count]}, env=env), "P021")
    assert level is Level.FAIL
    assert words in reason


def test_another_number_than_the_hardwares_warns() -> None:
    """Enough for the launch, but not what the inventory says of the machine."""
    hardware = replace(HARDWARE, gpu_count=10)
    assert said(subject(host=replace(HOST, hardware=hardware)), "P021")[0] is Level.WARN


def test_other_gpus_than_the_inventorys_warn() -> None:
    """Kind, memory, and a mixture are each told."""
    other = replace(HOST, hardware=replace(HARDWARE, gpu_model="B300"))
    assert "the inventory B300" in said(subject(host=other), "P022")[1]
    assert "has 40.0 GiB" in said(subject(graphics=changed(2, memory_bytes=40 * GIB)), "P022")[1]
    assert "the GPUs differ" in said(subject(graphics=changed(2, model="NVIDIA L40S")), "P022")[1]


def test_a_stranger_with_much_memory_fails_with_pid_name_and_bytes() -> None:
    """The remedy names the pid."""
    process = GpuProcess(pid=4121, name="python3", gpu="GPU-3", used_bytes=7 * GIB)
    found = finding(subject(graphics={"processes": (process,)}), "P023")
    assert found is not None
    assert (found.level, found.reason) == (Level.FAIL, "pid 4121 (python3) holds 7.0 GiB on GPU 3")
    assert found.remedy == "specctl exec --host gpu1 -- kill 4121"


def test_the_servers_own_processes_are_not_foreign() -> None:
    """What lies in the managed unit's control group is the server that will be replaced."""
    process = GpuProcess(pid=4001, name="sglang::scheduler_TP0", gpu="GPU-0", used_bytes=80 * GIB)
    assert said(subject(graphics={"processes": (process,)}), "P023")[0] is Level.PASS


def test_a_small_stranger_and_one_of_unknown_size_warn() -> None:
    """A monitor is a nuisance; what is not known never fails."""
    for used in (50 << 20, None):
        process = GpuProcess(pid=9, name="dcgm", gpu="GPU-0", used_bytes=used)
        assert said(subject(graphics={"processes": (process,)}), "P023")[0] is Level.WARN


def test_a_stranger_on_other_gpus_is_no_matter() -> None:
    """A server that uses GPUs 0 and 1 does not mind what happens on GPU 5."""
    process = GpuProcess(pid=9, name="other", gpu="GPU-5", used_bytes=70 * GIB)
    argv = ("/opt/venv/bin/python", "-m", "engine", "--tp-size", "2")
    one = subject(graphics={"processes": (process,)}, argv=argv, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert said(one, "P023")[0] is Level.PASS


def test_processes_of_an_unknown_unit_are_unknown() -> None:
    """Without the list of the unit's own processes nobody can be called foreign."""
    process = GpuProcess(pid=9, name="x", gpu="GPU-0", used_bytes=70 * GIB)
    assert said(subject(graphics={"processes": (process,)}, facts={"own_pids": None}), "P023")[0] is Level.UNKNOWN


def test_memory_without_a_process_warns_only_while_the_server_is_down() -> None:
    """What a killed server left is found; a running server's memory is its own."""
    held = changed(4, used_bytes=30 * GIB)
    down = {"unit": UnitState(active="inactive")}
    assert said(subject(graphics=held, facts=down), "P024")[1].startswith("30.0 GiB on GPU 4")
    assert finding(subject(graphics=held), "P024") is None


@pytest.mark.parametrize(
    ("number", "change", "level"),
    [
        ("P025", {"persistence": False}, Level.WARN),
        ("P026", {"power_limit_w": 450.0}, Level.WARN),
        ("P026", {"power_limit_w": 600.0}, Level.PASS),
        ("P027", {"mig": True}, Level.FAIL),
    ],
)
def test_settings(number: str, change: dict[str, object], level: Level) -> None:
    """Persistence mode off and a lowered power limit warn; MIG with tensor parallelism fails."""
    assert said(subject(graphics=changed(6, **change)), number)[0] is level


def test_mig_on_one_gpu_warns() -> None:
    """Without tensor parallelism an instance can serve."""
    argv = ("/opt/venv/bin/python", "-m", "engine", "--tp-size", "1")
    assert said(subject(graphics=changed(0, mig=True), argv=argv), "P027")[0] is Level.WARN


def test_settings_that_the_driver_does_not_tell_do_not_apply() -> None:
    """An old driver, or a GPU without the setting, is passed over in silence."""
    plain = tuple(gpu(i, persistence=None, mig=None, power_limit_w=None) for i in range(8))
    one = subject(graphics={"gpus": plain})
    assert [finding(one, number) for number in ("P025", "P026", "P027")] == [None, None, None]
