"""The decision journal: one JSON line for each change of what the agent decides, bounded in size, read by `specctl why`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from specctl_agent.storing import Complaints

FILE_BYTES = 1 << 20
LINE_BYTES = 1 << 14
KEPT_IN_MEMORY = 200
NAME = "decisions.jsonl"


class DecisionJournal:
    """Appends decisions to a file, with one older file beside it; the newest are in memory too, whatever the disk does."""

    def __init__(self, folder: Path, complaints: Complaints, limit_bytes: int = FILE_BYTES) -> None:
        self._path = folder / NAME
        self._complaints = complaints
        self._limit_bytes = limit_bytes
        self._recent: deque[Mapping[str, object]] = deque(maxlen=KEPT_IN_MEMORY)
        self._whole = False
        self._read()

    def append(self, decision: Mapping[str, object]) -> bool:
        """Add a decision; returns whether it is in the file."""
        self._recent.append(decision)
        line = json.dumps(decision, separators=(",", ":"), ensure_ascii=False, default=str).encode("utf-8", "replace")
        if len(line) > LINE_BYTES:
            short = {name: decision.get(name) for name in ("at", "server", "decision", "rule", "reason")}
            line = json.dumps({**short, "shortened": True}, default=str).encode()[:LINE_BYTES]
        try:
            self._rotate(len(line) + 2)
            with self._path.open("ab") as file:
                # What a power cut left of a line before must not swallow this one.
                file.write((b"" if self._whole else b"\n") + line + b"\n")
            self._whole = True
        except OSError as error:
            self._whole = False
            self._complaints.trouble(NAME, f"cannot be written: {error.strerror}")
            return False
        self._complaints.over(NAME)
        return True

    def newest(self, limit: int, server: str | None) -> list[Mapping[str, object]]:
        """Return the newest decisions, oldest first; of one server, or of all."""
        found = [row for row in self._recent if server in (None, row.get("server"))]
        return found[-limit:]

    def _rotate(self, more_bytes: int) -> None:
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            self._whole = True
            return
        if size + more_bytes > self._limit_bytes:
            self._path.replace(self._path.with_name(f"{NAME}.1"))
            self._whole = True

    def _read(self) -> None:
        """Take up what is in the files; lines that cannot be read are left out."""
        for path in (self._path.with_name(f"{NAME}.1"), self._path):
            try:
                with path.open("rb") as file:
                    content = file.read(self._limit_bytes + LINE_BYTES)
            except OSError:
                continue
            for line in content.split(b"\n"):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    self._recent.append(row)
