"""What a running engine was told last lies where the host's agent reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.host import told

LIVE = {
    "live": True, "result": "done", "algo": "dflash", "knobs": {"block_size": 8}, "invocation": "i1", "who": "ann@desk",
    "at": "2026-11-30T12:00:00+00:00", "reason": "never kept here",
}  # fmt: skip


def test_the_last_live_change_is_kept(tmp_path: Path) -> None:
    """The newest one is there, without what the agent has no use for, readable by all."""
    (tmp_path / "agent").mkdir()
    told.keep(str(tmp_path), {**LIVE, "algo": "none"})
    told.keep(str(tmp_path), LIVE)
    kept = tmp_path / "agent" / "live.json"
    assert kept.read_text() == (
        '{"algo": "dflash", "at": "2026-11-30T12:00:00+00:00", "format": 1, "invocation": "i1", "knobs": {"block_size": 8}, '
        '"who": "ann@desk"}'
    )
    assert kept.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("change", [{"live": False}, {"result": "rolled back"}, {"result": "failed"}])
def test_what_changed_nothing_is_not_kept(tmp_path: Path, change: dict[str, object]) -> None:
    """Starts, and changes that were told back, leave nothing."""
    (tmp_path / "agent").mkdir()
    told.keep(str(tmp_path), {**LIVE, **change})
    assert list((tmp_path / "agent").iterdir()) == []


def test_without_a_note_for_an_agent_there_is_nobody_to_tell(tmp_path: Path) -> None:
    """No folder is made for an agent that never was."""
    told.keep(str(tmp_path), LIVE)
    assert list(tmp_path.iterdir()) == []
