"""Linux namespaces from Python: the calls that Python has only since 3.12, and a way to enter some for a while.

A namespace is a thread's: what `entered` does concerns the calling thread, and the threads and programs that it starts meanwhile.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_FS = 0x00000200
CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
KINDS = {"net": CLONE_NEWNET, "mnt": CLONE_NEWNS}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces (or the shared working folder) named by `flags` for new ones."""
    _checked(_libc.unshare(flags))


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process the signal when its parent dies."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0))


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Put the calling thread into the process's network and mount namespaces; put it back at the end."""
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    own = {kind: _opened(Path(f"/proc/thread-self/ns/{kind}")) for kind in KINDS}
    try:
        theirs = {kind: _opened(Path(f"/proc/{pid}/ns/{kind}")) for kind in KINDS}
        try:
            _enter(theirs, folder)
            yield
        finally:
            _enter(own, folder)
            for descriptor in theirs.values():
                os.close(descriptor)
    finally:
        for descriptor in (folder, *own.values()):
            os.close(descriptor)


def _enter(namespaces: dict[str, int], folder: int) -> None:
    # The kernel lets a thread change its mounts only while it shares its working folder with no other thread.
    unshare(CLONE_FS)
    for kind, descriptor in namespaces.items():
        _checked(_libc.setns(descriptor, KINDS[kind]))
    os.fchdir(folder)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
