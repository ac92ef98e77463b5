"""The agent's handle on its NVML process: started, asked, listened to within a limit, killed, never waited for."""

from __future__ import annotations

import contextlib
import marshal
import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from typing import Protocol

from specctl_agent.samplers import nvml_wire as wire

# The process gets the agent's own module path by argument, and neither the site module nor the environment's say on
# it: half a megabyte less, and nothing but our own code runs in it.
_BOOT = (
    "import sys; sys.path += [p for p in sys.argv[5:] if p not in sys.path]; "
    "from specctl_agent.samplers.nvml_child import main; main(sys.argv[1:])"
)
# The largest packet that a socket's usual buffer takes; untouched pages of it cost nothing.
_PACKET_BYTES = 212_992
# A killed process is gone within a millisecond, or held in the kernel for who knows how long.
_END_S = 0.2


class NvmlProcess(Protocol):
    """A process that answers requests. None of these waits beyond a moment, but `receive`, within its limit."""

    def ask(self, asked: int) -> None:
        """Send one request; one that is gone is told by `receive`, after its last words."""

    def receive(self, limit_s: float) -> wire.Message | None:
        """Return its next message, None where none came in time; raises EOFError where it is gone and has said all."""

    def mark(self) -> tuple[int | None, str]:
        """Return which GPU (None: none) it is asking, and by what call."""

    def kill(self) -> None:
        """Kill it, and wait for its end a moment at most."""

    def ended(self) -> int | None:
        """Return its exit status, negative for a signal, as subprocess has it; None where the kernel still holds it."""


class ChildProcess:
    """The real one; raises OSError where it cannot be started.

    It ends with the thread that started it (PR_SET_PDEATHSIG is about threads), and when its socket is closed.
    """

    def __init__(self, skipped: Iterable[int] = ()) -> None:
        self._wires, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("specctl-nvml", os.MFD_CLOEXEC)
        try:
            os.truncate(memory, wire.MARK_BYTES)
            self._held = mmap.mmap(memory, wire.MARK_BYTES)
            self._buffer = bytearray(_PACKET_BYTES)
            self._process = self._start(theirs.fileno(), memory, ",".join(map(str, skipped)))
        except OSError:
            self._wires.close()
            raise
        finally:
            theirs.close()
            os.close(memory)

    def _start(self, wires: int, memory: int, skipped: str) -> subprocess.Popen[bytes]:
        arguments = [str(wires), str(memory), str(os.getpid()), skipped, *filter(None, sys.path)]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(wires, memory),
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, asked: int) -> None:
        """Send one request; one that is gone is told by `receive`, after its last words."""
        with contextlib.suppress(OSError):
            self._wires.send(bytes((asked,)))

    def receive(self, limit_s: float) -> wire.Message | None:
        """Return its next message, None where none came in time; raises EOFError where it is gone and has said all."""
        self._wires.settimeout(max(limit_s, 1e-6))  # 0 would mean: do not wait, by another exception
        try:
            size = self._packet()
        except TimeoutError:
            return None
        except OSError as error:
            raise EOFError(str(error)) from error
        if not size:
            raise EOFError("the NVML process ended")
        message: wire.Message = marshal.loads(memoryview(self._buffer)[:size])  # noqa: S302 - from our own process
        return message

    def _packet(self) -> int:
        """Return the size of the next packet, 0 at the end; raises OSError."""
        try:
            return self._wires.recv_into(self._buffer)
        except ConnectionResetError:
            # It ended with a request unread. That is said once, before what it had sent until then.
            return self._wires.recv_into(self._buffer)

    def mark(self) -> tuple[int | None, str]:
        """Return which GPU (None: none) it is asking, and by what call."""
        return wire.read_mark(self._held[:])

    def kill(self) -> None:
        """Kill it; one that the kernel holds in a driver's call is not waited for, it ends when that returns."""
        self._process.send_signal(signal.SIGKILL)
        self._wires.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)

    def ended(self) -> int | None:
        """Return its exit status, None where the kernel still holds it; takes it off the process table."""
        return self._process.poll()
