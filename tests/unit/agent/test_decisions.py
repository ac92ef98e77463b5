"""The decision journal: bounded, whole lines, and in memory where the disk refuses."""

from __future__ import annotations

import json
from pathlib import Path

from specctl_agent import decisions
from specctl_agent.decisions import DecisionJournal
from specctl_agent.storing import Complaints
from tests.unit.agent.recorded import Said


def journal(folder: Path, limit_bytes: int = decisions.FILE_BYTES) -> DecisionJournal:
    """Open the journal of a folder."""
    return DecisionJournal(folder, Complaints(Said()), limit_bytes)


def test_decisions_survive_a_restart(tmp_path: Path) -> None:
    """What one agent wrote the next one knows, oldest first, by server where that is asked."""
    first = journal(tmp_path)
    for number in range(5):
        assert first.append({"server": "k26" if number % 2 else "chat", "number": number, "reason": "weil »es« so ist"})
    again = journal(tmp_path)
    assert [row["number"] for row in again.newest(3, None)] == [2, 3, 4]
    assert [row["number"] for row in again.newest(9, "k26")] == [1, 3]


def test_the_files_are_bounded(tmp_path: Path) -> None:
    """However much is decided, two files of the limit's size are all that is kept, and the newest are among it."""
    kept = journal(tmp_path, 2000)
    for number in range(200):
        assert kept.append({"server": "k26", "number": number})
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"decisions.jsonl", "decisions.jsonl.1"}
    assert max(sizes.values()) <= 2000
    assert journal(tmp_path, 2000).newest(1, None)[0]["number"] == 199


def test_a_line_that_a_power_cut_tore_swallows_no_other(tmp_path: Path) -> None:
    """After half a line the next decision begins a line of its own."""
    (tmp_path / decisions.NAME).write_bytes(b'{"server":"k26","number":1}\n{"server":"k2')
    assert journal(tmp_path).append({"server": "k26", "number": 2})
    assert [row["number"] for row in journal(tmp_path).newest(9, None)] == [1, 2]


def test_an_endless_decision_is_shortened(tmp_path: Path) -> None:
    """A decision whose inputs are longer than a line may be keeps its head: who, what, by which rule, why."""
    kept = journal(tmp_path)
    assert kept.append(
        {"server": "k26", "rule": "gain", "reason": "because", "inputs": {"x": "y" * decisions.LINE_BYTES}}
    )
    (line,) = (tmp_path / decisions.NAME).read_bytes().splitlines()[-1:]
    row = json.loads(line)
    assert (row["server"], row["rule"], row["reason"], row["shortened"]) == ("k26", "gain", "because", True)


def test_a_disk_that_refuses_costs_the_file_alone(tmp_path: Path) -> None:
    """Where nothing can be written, the newest decisions are still answered from memory."""
    kept = DecisionJournal(tmp_path / "none", Complaints(Said()))
    assert not kept.append({"server": "k26", "number": 1})
    assert kept.newest(1, "k26") == [{"server": "k26", "number": 1}]
