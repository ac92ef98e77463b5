"""Where a calibration's file goes, and the line that names it to the inventory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control import calibration
from specctl.errors import UsageError
from specctl.fleet.types import AgentSettings, Origin, Server
from specctl.ops import calibrate_output as output
from tests.fakes import HOST, SERVER
from tests.unit.measure.calibrate_studies import EMPTY, measured


def server(folder: Path, calibration: str | None = None) -> Server:
    """Return a server of an inventory in that folder."""
    origin = Origin(layer="server:chat", file=str(folder / "inventory.yaml"), line=3, column=1)
    named = {"agent.calibration": origin} if calibration is not None else {}
    return replace(SERVER, agent=AgentSettings(calibration=calibration), provenance={"port": origin, **named})


def test_the_file_lies_beside_the_inventory(tmp_path: Path) -> None:
    """Named by host and server, and the line to add is the host's own."""
    found = output.place(HOST, server(tmp_path), None)
    assert found.path == tmp_path / "calibration-gpu1-chat.json"
    assert found.line == "hosts: {gpu1: {launch: {agent: {calibration: calibration-gpu1-chat.json}}}}"
    assert not found.named


def test_a_file_that_the_inventory_names_is_written_anew(tmp_path: Path) -> None:
    """Nothing is to be added then; another file than the named one has to be."""
    (tmp_path / "cal").mkdir()
    told = server(tmp_path, "cal/k26.json")
    assert output.place(HOST, told, None).path == tmp_path / "cal" / "k26.json"
    assert output.place(HOST, told, None).named
    assert not output.place(HOST, told, str(tmp_path / "other.json")).named


@pytest.mark.parametrize("name", ["gone/c.json", "."])
def test_a_place_that_cannot_be_is_refused_before_anything_is_measured(tmp_path: Path, name: str) -> None:
    """A folder that is not there, or a folder in the file's place."""
    with pytest.raises(UsageError):
        output.place(HOST, server(tmp_path), str(tmp_path / name))


def test_what_was_measured_is_written_whole(tmp_path: Path) -> None:
    """The file is a calibration; of nothing there is none."""
    study = measured(300.0)
    output.write(study, tmp_path / "c.json")
    assert calibration.parse(json.loads((tmp_path / "c.json").read_text())).holds_for == study.facts
    with pytest.raises(UsageError, match="nothing was measured"):
        output.write(EMPTY, tmp_path / "none.json")
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    """As the figure is, in the format of its name; another name is refused early."""
    output.draw(measured(300.0), tmp_path / "c.svg")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    with pytest.raises(UsageError):
        output.refuse_plot(tmp_path / "c.pdf")
