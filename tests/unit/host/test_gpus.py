"""The driver's words parsed: GPUs, who uses them, how they reach each other (tests/data/nvidia-smi says what these files are)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.host import gpus, links

DATA = Path(__file__).parents[2] / "data" / "nvidia-smi"


def text(name: str) -> str:
    """Return one of the files."""
    return (DATA / name).read_text(encoding="utf-8")


def test_gpus_with_all_their_settings() -> None:
    """Every field that the driver tells becomes a value with its unit."""
    found = gpus.inventory(gpus.rows(text("pcie8.gpus.csv")))
    assert len(found) == 8
    assert found[3] == {
        "index": 3,
        "uuid": "GPU-00000003-0000-4000-8000-000000000003",
        "model": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "memory_bytes": 97887 << 20,
        "used_bytes": 4 << 20,
        "persistence": True,
        "mig": False,
        "power_limit_w": 600.0,
        "power_default_w": 600.0,
        "temperature_c": 33.0,
        "bus_id": "00000000:41:00.0",
    }


def test_an_old_drivers_basic_answer() -> None:
    """What was not asked for, and what reads [N/A], is None."""
    found = gpus.inventory(gpus.rows(text("basic.gpus.csv") + "no devices\n"))
    assert [(gpu["index"], gpu["memory_bytes"], gpu["used_bytes"]) for gpu in found] == [
        (0, 32510 << 20, 3 << 20),
        (1, 32510 << 20, None),
    ]
    assert {gpu["persistence"] for gpu in found} == {gpu["power_limit_w"] for gpu in found} == {None}


def test_memory_by_process() -> None:
    """A process on several GPUs counts in sum; memory that is not told counts as none."""
    assert gpus.by_process(gpus.rows("41, 100\n41, 50\n42, [N/A]\n")) == {41: 150 << 20, 42: 0}


@pytest.mark.parametrize(("name", "version"), [("version.txt", "13.0"), ("banner.txt", "12.2")])
def test_cuda_version_in_both_ways(name: str, version: str) -> None:
    """New drivers and old ones tell the CUDA version in other words."""
    found = gpus.CUDA.search(text(name))
    assert found is not None
    assert found.group(1) == version


def test_pcie_matrix() -> None:
    """Two GPUs a switch, two sockets: PIX, NODE and SYS; the underlined header and the other columns do not disturb."""
    found = links.matrix(text("pcie8.topo.txt"))
    assert found is not None
    lines = found["links"]
    assert isinstance(lines, list)
    assert found["gpus"] == list(range(8))
    assert lines[0] == [None, "PIX", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"]
    assert all(lines[one][other] == lines[other][one] for one in range(8) for other in range(8))


def test_nvswitch_matrix_leaves_network_adapters_out() -> None:
    """Rows and columns of network adapters are no GPUs."""
    found = links.matrix(text("nvswitch8.topo.txt"))
    assert found is not None
    lines = found["links"]
    assert isinstance(lines, list)
    assert found["gpus"] == list(range(8))
    assert {cell for line in lines for cell in line} == {None, "NV18"}


def test_a_matrix_that_lost_its_tabs() -> None:
    """A copy with blanks for tabs is read too."""
    found = links.matrix("        GPU0 GPU1 CPU Affinity\nGPU0 X PHB 0-31\nGPU1 PHB X 0-31\n")
    assert found == {"gpus": [0, 1], "links": [[None, "PHB"], ["PHB", None]]}


def test_no_matrix_is_none() -> None:
    """A refusal is no matrix."""
    assert links.matrix(text("mismatch.txt")) is None
    assert links.matrix("") is None


@given(st.text(alphabet=st.sampled_from("GPU012 X\tNVSYPI\n\x1b[4m-"), max_size=200))
def test_any_matrix_is_a_square_or_none(said: str) -> None:
    """Whatever the tool prints, there is a square of known links, or nothing."""
    found = links.matrix(said)
    if found is not None:
        lines, order = found["links"], found["gpus"]
        assert isinstance(lines, list)
        assert isinstance(order, list)
        assert [len(line) for line in lines] == [len(order)] * len(order)


@given(st.text(max_size=200))
def test_any_rows_make_gpus(said: str) -> None:
    """Whatever the tool prints, what is made of it has whole indices."""
    assert all(isinstance(gpu["index"], int) for gpu in gpus.inventory(gpus.rows(said)))


TOOL = """#!/bin/sh
case "$*" in
    *{refused}*) echo 'Field "{refused}" is not a valid field to query.'; exit 2 ;;
    *clocks.mem,*reasons*) echo "{first}, 612.50, 700.00, 93, 64, 1755, 1980, 2619, 0x0000000000000044" ;;
    *clocks.mem*) echo "{first}, [N/A], 700.00, 93, 64, 1755, 1980, 2619" ;;
    *) echo "{first}" ;;
esac
"""
FIGURES = {
    "index": 0,
    "uuid": "GPU-0",
    "model": "NVIDIA H200",
    "memory_total_bytes": 143771 << 20,
    "memory_used_bytes": 1000 << 20,
    "power_w": 612.5,
    "power_limit_w": 700.0,
    "busy_ratio": 0.93,
    "temperature_c": 64.0,
    "sm_clock_hz": 1_755_000_000,
    "sm_clock_max_hz": 1_980_000_000,
    "memory_clock_hz": 2_619_000_000,
    "throttle_bits": 0x44,
}


def figures_of(folder: Path, refused: str) -> gpus.Look:
    """Return what is read from a driver's tool that does not know one field."""
    program = folder / "nvidia-smi"
    program.write_text(TOOL.format(refused=refused, first="0, GPU-0, NVIDIA H200, 143771, 1000"))
    program.chmod(0o755)
    code = (
        "import json, sys; from specctl.host import commands, gpus; commands.PATH = sys.argv[1] + ':' + commands.PATH; "
        "print(json.dumps(gpus.figures()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, check=True, timeout=30)
    return gpus.Look(*json.loads(done.stdout))


@pytest.mark.parametrize("refused", ["no.such.field", "clocks_event_reasons.active"])
def test_figures_of_now(tmp_path: Path, refused: str) -> None:
    """Memory, power, load, heat and clocks with their units, and the reasons of slowed clocks by either name that drivers have."""
    assert figures_of(tmp_path, refused) == gpus.Look([FIGURES])


def test_a_driver_without_reasons(tmp_path: Path) -> None:
    """A driver that knows no reasons is asked for the rest; what it does not say is None, never 0."""
    found = figures_of(tmp_path, "reasons.active").gpus
    assert found == [{**FIGURES, "power_w": None, "throttle_bits": None}]


def test_a_very_old_driver(tmp_path: Path) -> None:
    """A driver that knows the basic fields alone tells the memory."""
    found = figures_of(tmp_path, "clocks.mem").gpus
    assert found is not None
    told = {name: FIGURES[name] for name in ("index", "uuid", "model", "memory_total_bytes", "memory_used_bytes")}
    assert [{name: value for name, value in gpu.items() if value is not None} for gpu in found] == [told]
