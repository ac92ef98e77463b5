"""The operator's copy of the records: each is a line of JSON that can be read again, whatever somebody gave as a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.adapters import records


@pytest.mark.parametrize("reason", ["plain", "Größe ×2", "caf\udce9", "two\nlines", "\u202e", "\0"])
def test_any_reason_is_kept(reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written as UTF-8 is spelled out, and a record is one line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert records.keep({"reason": reason}) is None
    assert records.keep({"reason": "next"}) is None
    lines = (tmp_path / "specctl" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["reason"] for line in lines] == [reason, "next"]
