"""What a deploy tells the agent: the inventory's server, and the calibration that lies beside the inventory's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specctl.errors import UsageError
from specctl.fleet.types import AgentSettings, Origin, Server
from specctl.ops.agent_note import CALIBRATION_BYTES, letter
from tests.fakes import SERVER


def calibrated(name: str, inventory: Path | None = None) -> Server:
    """Return a server whose inventory names a calibration."""
    origin = Origin(layer="server:chat", file=None if inventory is None else str(inventory), line=1, column=1)
    return replace(
        SERVER,
        agent=AgentSettings(calibration=name),
        provenance={} if inventory is None else {"agent.calibration": origin},
    )


def test_without_a_calibration_there_is_none() -> None:
    """The server alone."""
    assert (letter(SERVER).server, letter(SERVER).calibration) == (SERVER, None)


def test_a_calibration_lies_beside_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is not absolute begins at the file that names it, else at the working folder; an absolute one is itself."""
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "c.json").write_text("beside")
    (tmp_path / "c.json").write_text("here")
    monkeypatch.chdir(tmp_path)
    inventory = tmp_path / "fleet" / "inventory.yaml"
    assert letter(calibrated("c.json", inventory)).calibration == "beside"
    assert letter(calibrated("c.json")).calibration == "here"
    assert letter(calibrated(str(tmp_path / "c.json"), inventory)).calibration == "here"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "is not text"),
        (b" " * (CALIBRATION_BYTES + 1), "has over 1048576 bytes"),
    ],
)
def test_a_calibration_that_cannot_be_told_is_said(tmp_path: Path, content: bytes | None, words: str) -> None:
    """Missing, no text, too long: an error before the host is touched."""
    path = tmp_path / "c.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        letter(calibrated(str(path)))
