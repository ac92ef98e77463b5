"""The catalogue of faults and how they are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.lab import bends
from specctl.lab.seam import RIGHT
from specctl.lab.serve import bending, faults
from specctl.lab.serve.faults import Fault, FaultRefusedError, Takes

DOCUMENT = Path(__file__).parents[4] / "docs" / "lab-server.md"
PARAMETERS = {
    Takes.NOTHING: "",
    Takes.PHASE: ":weights",
    Takes.OOM_PHASE: ":graph",
    Takes.SECONDS: ":0.5",
    Takes.COUNT: ":7",
}


@pytest.mark.parametrize("name", faults.CATALOGUE)
def test_every_fault_parses_and_is_documented(name: str) -> None:
    """Each fault can be asked for by its name and parameter, and the document names it."""
    found = faults.parse([name + PARAMETERS[faults.CATALOGUE[name][0]]], allowed=True)
    assert found.has(name)
    assert f"`{name}" in DOCUMENT.read_text(encoding="utf-8")


def test_parameters_are_read() -> None:
    """Phases and numbers arrive as values; several faults can be active at once."""
    found = faults.parse(["crash:draft", "slow-steps:0.05", "wrong-token:7"], allowed=True)
    assert found.at("draft") == (Fault(name="crash", phase="draft"),)
    assert (
        found.at("weights"),
        found.number("slow-steps"),
        found.number("wrong-token"),
        found.number("port-late"),
    ) == ((), 0.05, 7.0, None)


@pytest.mark.parametrize(
    "text",
    [
        "crash",
        "crash:lunch",
        "oom:kv",
        "never-ready:1",
        "slow-steps",
        "slow-steps:x",
        "slow-steps:0",
        "slow-steps:inf",
        "wrong-token:1.5",
        "",
    ],
)
def test_misspelled_faults_are_refused(text: str) -> None:
    """A missing, surplus or wrong parameter is refused."""
    with pytest.raises(FaultRefusedError):
        faults.parse([text], allowed=True)


@pytest.mark.parametrize("spelled", faults.ALIASES)
def test_another_spelling_is_the_same_fault(spelled: str) -> None:
    """An alias stands for a fault of the catalogue, and the document names it."""
    found = faults.parse([spelled], allowed=True)
    assert found.has(faults.ALIASES[spelled])
    assert f"`{spelled}`" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", bends.BENDS)
def test_every_bend_can_be_injected(name: str) -> None:
    """A fault of a bend's name bends the engine's seam; without a fault it is the right one itself."""
    assert bending.seam(faults.parse([name], allowed=True)) != RIGHT
    assert bending.seam(faults.Faults()) is RIGHT


def test_nothing_is_active_by_default() -> None:
    """A server without faults has none."""
    assert faults.parse([], allowed=False) == faults.Faults()
