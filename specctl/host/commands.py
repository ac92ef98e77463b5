"""Run programs on the host, always bounded in time and output, in a known environment; ends them when the session ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import IO, Dict, List, Mapping, NamedTuple, Optional, Sequence

NOT_FOUND = 127
OUTPUT_BYTES = 1 << 20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR")

_lock = threading.Lock()
_children: List[subprocess.Popen[bytes]] = []


class Finished(NamedTuple):
    """How a program ended; `status` None: it was stopped at its time limit. Long output is cut."""

    status: Optional[int]
    stdout: bytes
    stderr: bytes

    def last_word(self, mark: str = "") -> str:
        """Return the last line that it said, one that begins with the mark if there is any; standard error goes first."""
        lines = (self.stderr.strip() or self.stdout.strip()).decode("utf-8", "replace").splitlines()
        marked = [line[len(mark) :] for line in lines if line.startswith(mark)]
        return (marked or lines)[-1].strip() if lines else "no message"


def environment(extra: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    """Return the environment that programs get: few of ours, a full PATH, the C locale."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PATH": PATH, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", **(extra or {})}


def start(argv: Sequence[str], env: Optional[Mapping[str, str]] = None, folder: str = "/") -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own; raises FileNotFoundError when there is none."""
    child = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env) if env is not None else environment(),
        cwd=folder,
        start_new_session=True,
    )
    with _lock:
        _children.append(child)
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    """Kill a program's group, if it still runs, and forget it."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    with _lock:
        if child in _children:
            _children.remove(child)


def end_all() -> None:
    """Kill every program that still runs; the session is about to end."""
    with _lock:
        for child in _children:
            if child.poll() is None:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def _drain(pipe: IO[bytes], kept: List[bytes], limit: int) -> None:
    size = 0
    while True:
        part = pipe.read1(65536) if hasattr(pipe, "read1") else pipe.read(65536)
        if not part:
            return
        if size < limit:
            kept.append(part[: limit - size])
            size += len(part)


def run(
    argv: Sequence[str],
    timeout_s: float,
    *,
    env: Optional[Mapping[str, str]] = None,
    limit: int = OUTPUT_BYTES,
    folder: str = "/",
) -> Finished:
    """Run a program to its end; a missing one has status 127, one out of time None (its whole group is killed)."""
    try:
        child = start(argv, env, folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        return Finished(NOT_FOUND, b"", str(error).encode())
    assert child.stdout is not None
    assert child.stderr is not None
    out: List[bytes] = []
    err: List[bytes] = []
    threads = [
        threading.Thread(target=_drain, args=(child.stdout, out, limit), daemon=True),
        threading.Thread(target=_drain, args=(child.stderr, err, limit), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        status: Optional[int] = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        status = None
    end(child)
    for thread in threads:
        thread.join(1.0)
    return Finished(status, b"".join(out), b"".join(err))
