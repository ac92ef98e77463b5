"""Checks of how GPUs reach each other: fabric, NCCL's environment against the topology, IOMMU, ACS."""

from __future__ import annotations

import pytest

from specctl.rollout.preflight.nccl import level_name
from specctl.rollout.preflight.types import Level
from tests.unit.rollout.preflight.subjects import NVLINK, SWITCHED, finding, gpu, said, square, subject

ONE_SOCKET = square({True: "PIX", False: "PHB"}, "PHB")
ALONE = ("/opt/venv/bin/python", "-m", "engine", "--tp-size", "1")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("0", "LOC"),
        ("1", "PIX"),
        ("2", "PXB"),
        ("3", "PHB"),
        ("4", "SYS"),
        ("5", "SYS"),
        ("nvl", "NVL"),
        ("WIDE", None),
    ],
)
def test_old_numbers_of_a_level(value: str, name: str | None) -> None:
    """The numbers that NCCL still reads, by its documentation; the field's 5 is SYS."""
    assert level_name(value) == name


@pytest.mark.parametrize(
    ("level", "topology", "expected"),
    [
        ("SYS", None, Level.PASS),
        ("5", None, Level.PASS),
        ("PHB", None, Level.WARN),
        ("PHB", ONE_SOCKET, Level.PASS),
        ("PIX", ONE_SOCKET, Level.WARN),
        ("NVL", NVLINK, Level.PASS),
        ("NVL", None, Level.WARN),
        ("2", None, Level.WARN),
        ("WIDE", None, Level.WARN),
    ],
)
def test_a_level_narrower_than_the_distance_warns(level: str, topology: object, expected: Level) -> None:
    """The farthest pair decides; a name that NCCL does not know is told."""
    graphics = {} if topology is None else {"topology": topology}
    assert said(subject(graphics=graphics, env={"NCCL_P2P_LEVEL": level}), "P041")[0] is expected


def test_an_old_number_is_explained() -> None:
    """Whoever reads 2 learns what it means and which GPUs it parts."""
    assert said(subject(env={"NCCL_P2P_LEVEL": "2"}), "P041")[1] == (
        "NCCL_P2P_LEVEL=2 (the old number of PXB) is narrower than the distance of GPU 0 and GPU 4 (SYS): "
        "their traffic takes the way through host memory"
    )


@pytest.mark.parametrize("env", [{"NCCL_P2P_DISABLE": "1"}, {"NCCL_P2P_LEVEL": "LOC"}, {"NCCL_P2P_LEVEL": "0"}])
def test_p2p_off_on_a_topology_that_allows_it_warns(env: dict[str, str]) -> None:
    """Three ways to say the same; what P2P would meet is then no matter."""
    translating = {"iommu_units": 4, "iommu_kinds": {"DMA": 8}}
    one = subject(env=env, graphics=translating)
    assert said(one, "P042")[0] is Level.WARN
    assert [finding(one, number) for number in ("P041", "P044", "P045")] == [None, None, None]


def test_p2p_off_between_sockets_alone_passes() -> None:
    """Where all GPUs are SYS apart, it can be right."""
    far = square({True: "SYS", False: "SYS"}, "SYS")
    assert said(subject(env={"NCCL_P2P_DISABLE": "1"}, graphics={"topology": far}), "P042")[0] is Level.PASS


def test_ring_on_nvswitches_warns_and_on_pcie_does_not_apply() -> None:
    """The field's NCCL_ALGO=Ring is right where it was set."""
    env = {"NCCL_ALGO": "Ring"}
    assert said(subject(of=SWITCHED, env=env), "P043")[0] is Level.WARN
    assert said(subject(of=SWITCHED, env={"NCCL_ALGO": "Ring,Tree"}), "P043")[0] is Level.PASS
    assert finding(subject(env=env), "P043") is None


@pytest.mark.parametrize(
    ("graphics", "level"),
    [
        ({"iommu_units": 4, "iommu_kinds": {"DMA-FQ": 8}}, Level.WARN),
        ({"iommu_units": 4, "iommu_kinds": {"identity": 8}}, Level.PASS),
        ({"iommu_units": 0}, Level.PASS),
        ({"iommu_units": None}, Level.UNKNOWN),
        ({"iommu_units": 4}, Level.UNKNOWN),
    ],
)
def test_an_iommu_that_translates_warns(graphics: dict[str, object], level: Level) -> None:
    """Passed through or off is well; an IOMMU whose mode is not told is unknown."""
    assert said(subject(graphics=graphics), "P044")[0] is level


def test_the_kernels_words_are_shown() -> None:
    """What the kernel was told is in the reason."""
    graphics = {"iommu_units": 4, "iommu_kinds": {"DMA": 8}, "kernel_words": ("amd_iommu=on",)}
    assert said(subject(graphics=graphics), "P044")[1].endswith("(kernel: amd_iommu=on)")


@pytest.mark.parametrize(("redirecting", "level"), [(0, Level.PASS), (3, Level.WARN), (None, Level.UNKNOWN)])
def test_acs_that_redirects_warns(redirecting: int | None, level: Level) -> None:
    """Unknown where the session is not root."""
    assert said(subject(graphics={"acs_redirecting": redirecting}), "P045")[0] is level


@pytest.mark.parametrize(
    ("state", "status", "manager", "level"),
    [
        ("Completed", "Success", "active", Level.PASS),
        ("Completed", "Success", "not-found", Level.PASS),
        ("Completed", "Success", "failed", Level.WARN),
        ("In Progress", None, "active", Level.WARN),
        ("Not Started", None, "inactive", Level.FAIL),
        ("Completed", "Insufficient Resources", "active", Level.FAIL),
        (None, None, "inactive", Level.FAIL),
        (None, None, "failed", Level.FAIL),
        (None, None, "active", Level.PASS),
        (None, None, None, Level.UNKNOWN),
    ],
)
def test_the_fabric(state: str | None, status: str | None, manager: str | None, level: Level) -> None:
    """GPUs that are not registered fail, whatever systemd says; without the GPUs' word the service decides."""
    gpus = tuple(gpu(index, fabric_state=state, fabric_status=status) for index in range(8))
    one = subject(of=SWITCHED, graphics={"gpus": gpus, "fabric_manager": manager})
    assert said(one, "P040")[0] is level


def test_one_gpu_has_no_links_to_check() -> None:
    """Without tensor parallelism NCCL is not used."""
    one = subject(
        argv=ALONE, env={"NCCL_P2P_LEVEL": "NVL", "NCCL_P2P_DISABLE": "1"}, graphics={"iommu_kinds": {"DMA": 8}}
    )
    assert [finding(one, f"P04{number}") for number in range(1, 6)] == [None] * 5
