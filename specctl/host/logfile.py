"""Follow a server's log where it is a file that supervisord writes: from a recorded place, through truncation and rotation."""

from __future__ import annotations

import os
import threading
from typing import BinaryIO, Dict, List, Mapping, Optional

from specctl.host.journal import Source
from specctl.host.lines import LINE_CHARS, LineQueue, split

PERIOD_S = 0.1
CHUNK_BYTES = 1 << 18
TAIL_BYTES = 4 << 20


def mark(path: str, lines: int = 0) -> Dict[str, object]:
    """Return the place in a log before its last lines; its end for none."""
    try:
        with open(path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            size = file.seek(0, os.SEEK_END)
            begin = max(0, size - TAIL_BYTES)
            file.seek(begin)
            content = file.read(size - begin) if lines else b""
    except OSError:
        return {"log_offset": 0, "log_inode": None}
    if not lines:
        return {"log_offset": size, "log_inode": inode}
    kept = content.splitlines(keepends=True)[-lines:]
    return {"log_offset": size - sum(len(line) for line in kept), "log_inode": inode}


def tail(path: str, count: int) -> List[str]:
    """Return the last lines of a log; none when there is no such file."""
    offset = mark(path, count)["log_offset"]
    try:
        with open(path, "rb") as file:
            file.seek(offset if isinstance(offset, int) else 0)
            found = split(file.read(TAIL_BYTES).decode("utf-8", "replace"))
    except FileNotFoundError:
        return []
    return found[-count:] if count else []


def head(path: str, place: Mapping[str, object], count: int) -> List[str]:
    """Return the first lines from a mark on; none when the log that the mark speaks of is gone."""
    file = FileSource(path, place).open_marked()
    if file is None:
        return []
    with file:
        return split(file.read(TAIL_BYTES).decode("utf-8", "replace"))[:count]


class Pieces:
    """Bytes into lines: a carriage return ends a line too; what has no end yet waits, but not beyond a line's limit."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, part: bytes) -> List[str]:
        """Return the lines that are whole now."""
        found = self._rest + part
        end = max(found.rfind(b"\n"), found.rfind(b"\r"))
        if end < 0 and len(found) > LINE_CHARS:
            end = len(found) - 1
        self._rest = found[end + 1 :]
        return split(found[: end + 1].decode("utf-8", "replace"))


class FileSource(Source):
    """A log file from a mark on (`log_offset`, `log_inode`), followed by name as rotation moves it."""

    def __init__(self, path: str, place: Mapping[str, object]) -> None:
        offset, inode = place.get("log_offset"), place.get("log_inode")
        self._path = path
        self._offset = offset if isinstance(offset, int) else 0
        self._inode = inode if isinstance(inode, int) else None
        self._stopped = threading.Event()
        self._pieces = Pieces()

    def start(self, queue: LineQueue) -> None:
        """Begin to follow in a thread."""
        threading.Thread(target=self._follow, args=(queue,), name="logfile", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def open_marked(self) -> Optional[BinaryIO]:
        """Open the file that the mark speaks of, at its place; None when it is gone."""
        for path in (self._path, f"{self._path}.1"):
            try:
                file = open(path, "rb")  # noqa: SIM115  # read by the thread until the log is rotated
            except OSError:
                continue
            found = os.fstat(file.fileno())
            if self._inode in (None, found.st_ino) and found.st_size >= self._offset:
                file.seek(self._offset)
                return file
            file.close()
        return None

    def _rotated(self, file: BinaryIO) -> bool:
        """Say whether the name means another file by now, or the file was emptied."""
        try:
            named = os.stat(self._path)
        except OSError:
            return False
        return named.st_ino != os.fstat(file.fileno()).st_ino or named.st_size < file.tell()

    def _follow(self, queue: LineQueue) -> None:
        while not self._stopped.is_set():
            file = self.open_marked()
            if file is None:
                # What the mark speaks of is gone: the newest log is read from its beginning.
                self._inode, self._offset = None, 0
                self._stopped.wait(PERIOD_S)
                continue
            with file:
                self._read(file, queue)
            self._inode, self._offset = None, 0

    def _read(self, file: BinaryIO, queue: LineQueue) -> None:
        while not self._stopped.is_set():
            part = file.read(CHUNK_BYTES)
            if part:
                queue.push(self._pieces.add(part))
            elif self._rotated(file):
                return
            else:
                self._stopped.wait(PERIOD_S)
