"""The facts of a host on one screen: everything known with its unit, everything unknown as —."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.gpu_facts import GpuProcess, Graphics
from specctl.rollout.machine_facts import Machine
from specctl.ui import facts as views
from specctl.ui.theme import console
from tests.unit.rollout.preflight import subjects


def shown(facts: HostFacts, width: int = 200) -> str:
    """Return what `specctl facts` prints."""
    out = io.StringIO()
    console(file=out, width=width).print(views.view(facts, width))
    return out.getvalue()


WHOLE = HostFacts(
    host="gpu1",
    machine=subjects.MACHINE,
    graphics=replace(
        subjects.GRAPHICS, processes=(GpuProcess(pid=4121, name="python3", gpu="GPU-3", used_bytes=7 << 30),)
    ),
    servers={"chat": subjects.FACTS},
    warnings=("not known in time: acs",),
)


def test_a_host_of_which_nothing_is_known() -> None:
    """No zero and no empty field: everything is —."""
    text = shown(HostFacts(host="gpu1", servers={"chat": ServerFacts(name="chat")}))
    assert text.splitlines() == [
        "gpu1",
        "  system    — · kernel — · systemd —",
        "  cpu       —× —",
        "  memory    — free of —",
        "  limits    open files — · locked memory —",
        "  clock     —, synchronised —",
        "  gpus      —",
        "  server    chat · nothing deployed · unit — · port —",
        "  python    —",
        "  target    —",
        "  draft     —",
        "",
    ]


def test_a_whole_host_fits_one_screen() -> None:
    """Links are counted, processes stand at their GPU, models tell what decides whether they fit."""
    text = shown(WHOLE)
    assert "driver    580.95.05 · CUDA 13.0" in text
    assert "links     16 pairs SYS, 8 pairs NODE, 4 pairs PIX" in text
    assert "4121 python3 7.0 GiB" in next(line for line in text.splitlines() if line.lstrip().startswith("3 "))
    assert "target    /models/big · 550.0 GiB · hidden 7168 · vocabulary 163840 · layers 61" in text
    assert "block 16" in text
    assert "warn      not known in time: acs" in text
    assert len(text.splitlines()) < 45


def test_narrow_terminals_lose_settings_not_memory() -> None:
    """At 80 columns the table of GPUs keeps memory and who holds it."""
    table = shown(replace(WHOLE, servers={}), width=80)
    assert "PERSIST" not in table
    assert "PERSIST" in shown(WHOLE)
    assert "4121" in table
    assert "PROCESSES" in table


def test_a_refusal_of_the_driver_is_shown_in_its_words() -> None:
    """What nvidia-smi said stands in the place of the GPUs."""
    text = shown(HostFacts(host="gpu1", graphics=Graphics(problem="GPU is lost")))
    assert "  gpus      GPU is lost" in text.splitlines()


@pytest.mark.parametrize(
    ("ahead", "kept", "text"),
    [
        (0.4, True, "agrees, synchronised"),
        (90.0, False, "90 s ahead, not synchronised"),
        (-7200.0, None, "2.0 h behind, synchronised —"),
        (None, True, "—, synchronised"),
    ],
)
def test_the_clock(ahead: float | None, kept: bool | None, text: str) -> None:
    """Which way it is off, and whether anything keeps it."""
    assert views.clock_text(Machine(clock_ahead_s=ahead, clock_synchronised=kept)) == text
