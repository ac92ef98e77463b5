"""Follow a server's log: the journal of one invocation through journalctl, read by a thread into a bounded queue."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import IO, Iterator, List, Optional, Tuple

from specctl.host import commands
from specctl.host.lines import LINE_CHARS, LineQueue, split
from specctl.host.wire import REMOTE_COMMAND, OpError

# A message with control characters comes as a list of its bytes, up to four characters of JSON a byte.
ENTRY_BYTES = 6 * LINE_CHARS
CHUNK_BYTES = 1 << 16
RETRY_S = 1.0
TAIL_S = 20.0
FIELDS = "MESSAGE"


class Source:
    """Log lines of one server; `start` begins to push them into a queue, `stop` ends that. Neither blocks."""

    def start(self, queue: LineQueue) -> None:
        """Begin."""
        raise NotImplementedError

    def stop(self) -> None:
        """End; idempotent."""
        raise NotImplementedError


def parse(entry: bytes) -> Tuple[List[str], Optional[str]]:
    """Return the lines of one journal entry in JSON and the journal's own mark of it; what cannot be read has neither."""
    try:
        found = json.loads(entry)
        text, mark = found.get("MESSAGE"), found.get("__CURSOR")
        if isinstance(text, list):
            text = bytes(text).decode("utf-8", "replace")
    except (ValueError, TypeError, AttributeError):
        return [], None
    return split(text) if isinstance(text, str) else [], mark if isinstance(mark, str) else None


def entries(pipe: IO[bytes], limit: int = ENTRY_BYTES) -> Iterator[Optional[bytes]]:
    """Yield the entries that come down a pipe; None in place of one that is too long."""
    buffer = b""
    skipping = False
    while True:
        part = pipe.read1(CHUNK_BYTES)  # type: ignore[attr-defined]  # a buffered pipe has it, IO does not say so
        if not part:
            return
        *whole, buffer = (buffer + part).split(b"\n")
        for entry in whole:
            if skipping:
                skipping = False
            elif entry:
                yield entry
        if len(buffer) > limit:
            buffer = b""
            if not skipping:
                yield None
            skipping = True


def selection(unit: str, invocation: Optional[str]) -> List[str]:
    """Return journalctl's arguments for one start of a unit (its own lines and systemd's of it), or for the unit."""
    if invocation:
        return [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"]
    return ["--unit", unit]


class JournalSource(Source):
    """The journal of one invocation (None: of the unit), all of it or the last lines, then what comes.

    A journalctl that ends is started again behind the last entry seen.
    """

    def __init__(self, unit: str, invocation: Optional[str], lines: Optional[int]) -> None:
        self._selection = selection(unit, invocation)
        self._from = ["--lines=all"] if lines is None else [f"--lines={lines}"]
        self._stopped = threading.Event()
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._lock = threading.Lock()

    def start(self, queue: LineQueue) -> None:
        """Begin to follow in a thread."""
        threading.Thread(target=self._follow, args=(queue,), name="journal", daemon=True).start()

    def stop(self) -> None:
        """End journalctl and the thread."""
        self._stopped.set()
        with self._lock:
            child = self._child
        if child is not None:
            commands.end(child)

    def _open(self) -> Optional[subprocess.Popen[bytes]]:
        argv = [
            "journalctl",
            "--follow",
            "--output=json",
            f"--output-fields={FIELDS}",
            "--all",
            "--quiet",
            *self._from,
            *self._selection,
        ]
        with self._lock:
            if self._stopped.is_set():
                return None
            try:
                self._child = commands.start(argv)
            except OSError:
                self._child = None
            return self._child

    def _follow(self, queue: LineQueue) -> None:
        while not self._stopped.is_set():
            child = self._open()
            if child is not None and child.stdout is not None and child.stderr is not None:
                threading.Thread(target=child.stderr.read, daemon=True).start()
                self._pump(child.stdout, queue)
                commands.end(child)
            if not self._stopped.is_set():
                queue.lose()
                self._stopped.wait(RETRY_S)

    def _pump(self, pipe: IO[bytes], queue: LineQueue) -> None:
        for entry in entries(pipe):
            if entry is None:
                queue.lose()
                continue
            lines, mark = parse(entry)
            queue.push(lines)
            if mark:
                self._from = ["--lines=all", f"--after-cursor={mark}"]


def journal_head(unit: str, lines: int, invocation: Optional[str]) -> List[str]:
    """Return the first lines of one start, however much came after them; fewer when the journal no longer has them."""
    argv = [
        "journalctl",
        "--output=json",
        f"--output-fields={FIELDS}",
        "--all",
        "--quiet",
        *selection(unit, invocation),
    ]
    child = commands.start(argv)
    late = threading.Timer(TAIL_S, commands.end, (child,))
    late.daemon = True
    late.start()
    found: List[str] = []
    try:
        assert child.stdout is not None
        assert child.stderr is not None
        threading.Thread(target=child.stderr.read, daemon=True).start()
        for entry in entries(child.stdout):
            found.extend(parse(entry)[0] if entry is not None else [])
            if len(found) >= lines:
                break
    finally:
        late.cancel()
        commands.end(child)
    return found[:lines]


def journal_tail(unit: str, lines: int, invocation: Optional[str]) -> List[str]:
    """Return the last lines of a unit's journal; raises when the journal cannot be read."""
    argv = ["journalctl", "--output=json", f"--output-fields={FIELDS}", "--all", "--quiet", f"--lines={lines}"]
    done = commands.run([*argv, *selection(unit, invocation)], TAIL_S, limit=8 * ENTRY_BYTES)
    if done.status != 0:
        raise OpError(
            REMOTE_COMMAND,
            f"journalctl: {done.last_word()}",
            hint="set sudo: true for the host, or put the user into the group systemd-journal"
            if b"permission" in done.stderr
            else "journalctl --verify, or systemctl status systemd-journald",
        )
    found = [line for entry in done.stdout.split(b"\n") for line in parse(entry)[0]]
    return found[-lines:] if lines else []
