"""The process that calls NVML for the agent: answers each request with one look at all GPUs, and ends with the agent.

A call into the driver can hang for ever and no thread can be taken out of it; this process can be killed instead. It
imports as little as it can, keeps nothing that matters, and is started by nvml_process.py only.
"""

from __future__ import annotations

import gc
import os
import sys
from ctypes import CDLL
from marshal import dumps
from mmap import mmap

from specctl_agent.samplers import nvml_binding as nvml
from specctl_agent.samplers import nvml_wire as wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# One answer carries at most that many: more events stay in the driver's queue, more processes are not told.
MAX_XIDS = 64
MAX_PROCESSES = 256

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


class Column:
    """One question to one GPU, and which ways of asking it this GPU knows."""

    __slots__ = ("blank", "mark", "ways")

    def __init__(self, question: nvml.Question, index: int) -> None:
        self.mark = wire.mark(question.call, index)
        self.ways = question.ways
        self.blank = (None,) * question.columns

    def ask(self, handle: nvml.Handle, held: mmap) -> nvml.Row:
        """Return its values, None each where this GPU does not know them: that is remembered. Raises NvmlError."""
        while self.ways:
            held[:] = self.mark
            try:
                return self.ways[0](handle)
            except nvml.NvmlError as error:
                if error.value not in nvml.UNSUPPORTED:
                    raise
                self.ways = self.ways[1:]
        return self.blank


class Gpu:
    """One GPU that answers."""

    __slots__ = ("facts", "fast", "handle", "index", "links", "processes_told", "wear")

    def __init__(self, index: int, held: mmap) -> None:
        self.index = index
        held[:] = wire.mark("nvmlDeviceGetHandleByIndex", index)
        self.handle, uuid = nvml.handle_of(index)
        held[:] = wire.mark("static facts", index)
        self.facts = (index, uuid, *nvml.gpu_facts(self.handle))
        self.fast = [Column(question, index) for question in nvml.FAST]
        self.wear = [Column(question, index) for question in nvml.WEAR]
        self.links = [Column(question, index) for question in nvml.LINKS]
        self.processes_told = True

    def row(self, columns: Sequence[Column], held: mmap) -> tuple[list[int | None], nvml.NvmlError | None]:
        """Return the values, and the last error that made one of them None for this once. Raises NvmlError for graver ones."""
        values: list[int | None] = []
        failure = None
        for column in columns:
            try:
                values += column.ask(self.handle, held)
            except nvml.NvmlError as error:
                if error.value in nvml.LOST or error.value in nvml.NO_DRIVER:
                    raise
                values += column.blank
                failure = error
        return values, failure

    def processes(self, held: mmap) -> list[tuple[int, int | None]] | None:
        """Return (pid, bytes) of each process on it; None where they are not told."""
        if not self.processes_told:
            return None
        held[:] = wire.mark("nvmlDeviceGetComputeRunningProcesses", self.index)
        try:
            return nvml.processes(self.handle)[:MAX_PROCESSES]
        except nvml.NvmlError as error:
            if error.value in nvml.LOST or error.value in nvml.NO_DRIVER:
                raise
            self.processes_told = error.value not in nvml.UNSUPPORTED
            return None


class Watch:
    """All GPUs but those to be left alone, those that are lost, and the queue of their XIDs."""

    def __init__(self, answers: int, held: mmap, skipped: frozenset[int]) -> None:
        self._answers = answers
        self._held = held
        self._next_link = 0
        held[:] = wire.mark("nvmlInit", None)
        count = nvml.connect()
        held[:] = wire.mark("driver facts", None)
        self._driver = nvml.driver_facts()
        self._gpus: list[Gpu] = []
        self._lost: dict[int, str] = {}
        self._open(index for index in range(count) if index not in skipped)
        self._events = self._listen()
        self._hello()

    def answer(self, asked: int) -> None:
        """Take one look and send what was asked for. Raises NvmlError where the driver is gone."""
        self._tell_xids()
        if asked & wire.RETRY_LOST:
            self._retry()
        fast, wear, processes = [], [], []
        for gpu in self._gpus:
            fast_row = self._vital(gpu)
            wear_row = self._row(gpu, gpu.wear) if fast_row and asked & wire.WEAR else []
            found = self._processes(gpu) if fast_row and asked & wire.PROCESSES else None
            if gpu.index in self._lost:
                continue
            fast.append((gpu.index, fast_row))
            if wear_row:
                wear.append((gpu.index, wear_row))
            if asked & wire.PROCESSES:
                processes.append((gpu.index, found))
        self._gpus = [gpu for gpu in self._gpus if gpu.index not in self._lost]
        self._send((wire.SAMPLE, fast, wear, processes, list(self._lost.items())))
        if asked & wire.LINKS and self._gpus:
            self._tell_links()

    def _vital(self, gpu: Gpu) -> list[int | None]:
        """Return the fast row, empty where the GPU is lost: a GPU that answers none of it is, whatever its errors say."""
        try:
            row, failure = gpu.row(gpu.fast, self._held)
        except nvml.NvmlError as error:
            self._lose(gpu.index, error)
            return []
        if failure is not None and row.count(None) == len(row):
            self._lose(gpu.index, failure)
            return []
        return row

    def _row(self, gpu: Gpu, columns: Sequence[Column]) -> list[int | None]:
        """Return another row, empty where the GPU is lost; raises NvmlError where the driver is gone."""
        try:
            return gpu.row(columns, self._held)[0]
        except nvml.NvmlError as error:
            self._lose(gpu.index, error)
            return []

    def _processes(self, gpu: Gpu) -> list[tuple[int, int | None]] | None:
        try:
            return gpu.processes(self._held)
        except nvml.NvmlError as error:
            self._lose(gpu.index, error)
            return None

    def _lose(self, index: int, error: nvml.NvmlError) -> None:
        if error.value in nvml.NO_DRIVER:
            raise error
        self._lost[index] = name_of(error)

    def _open(self, indexes: Iterable[int]) -> bool:
        """Open these GPUs; returns whether any answers."""
        before = len(self._gpus)
        for index in indexes:
            try:
                gpu = Gpu(index, self._held)
            except nvml.NvmlError as error:
                self._lose(index, error)
            else:
                self._lost.pop(index, None)
                self._gpus.append(gpu)
        self._gpus.sort(key=lambda gpu: gpu.index)
        return len(self._gpus) > before

    def _retry(self) -> None:
        """Look whether lost GPUs are back, and listen again where the queue of events was lost."""
        back = self._open(list(self._lost)) if self._lost else False
        if back or self._events is None:
            if self._events is not None:
                self._tell_xids()
                self._events.close()
            self._events = self._listen()
        if back:
            self._hello()

    def _listen(self) -> nvml.XidEvents | None:
        self._held[:] = wire.mark("nvmlDeviceRegisterEvents", None)
        try:
            return nvml.XidEvents([(gpu.index, gpu.handle) for gpu in self._gpus])
        except nvml.NvmlError as error:
            if error.value in nvml.NO_DRIVER:
                raise
            return None

    def _tell_xids(self) -> None:
        if self._events is None:
            return
        self._held[:] = wire.mark("nvmlEventSetWait", None)
        try:
            found = self._events.take(MAX_XIDS)
        except nvml.NvmlError as error:
            if error.value in nvml.NO_DRIVER:
                raise
            self._events.close()
            self._events = None
            return
        if found:
            self._send((wire.XIDS, found))

    def _tell_links(self) -> None:
        gpu = self._gpus[self._next_link % len(self._gpus)]
        self._next_link = (self._next_link + 1) % len(self._gpus)
        row = self._row(gpu, gpu.links)
        if row:
            self._send((wire.LINKED, gpu.index, row))

    def _hello(self) -> None:
        self._send((wire.HELLO, self._driver, [gpu.facts for gpu in self._gpus]))

    def _send(self, message: wire.Message) -> None:
        self._held[: len(_BLANK)] = _BLANK
        os.write(self._answers, dumps(message))


_BLANK = bytes(wire.MARK_BYTES)


def name_of(error: nvml.NvmlError) -> str:
    """Return the error's name as nvml.h has it, without its prefix."""
    return nvml.NAMES.get(error.value, f"error {error.value}")


def main(arguments: Sequence[str]) -> None:
    """Serve until the agent closes its end: the socket, the shared memory, the agent's pid, and GPUs to leave alone."""
    wires, memory, agent, skipped = int(arguments[0]), int(arguments[1]), int(arguments[2]), arguments[3]
    CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # a call that hangs never sees the end of the socket
    if os.getppid() != agent:
        return
    held = mmap(memory, wire.MARK_BYTES)
    os.close(memory)
    try:
        watch = Watch(wires, held, frozenset(int(index) for index in skipped.split(",") if index))
        gc.collect()
        gc.freeze()
        while asked := os.read(wires, 1):
            watch.answer(asked[0])
    except nvml.NvmlError as error:
        os.write(wires, dumps((wire.TROUBLE, name_of(error), str(error))))


if __name__ == "__main__":
    main(sys.argv[1:])
