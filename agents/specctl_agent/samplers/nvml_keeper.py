"""Keeps an NVML process at hand: starts it with back-off, kills it when it hangs, leaves alone the GPU that hung it.

A killed process that the kernel still holds (a call stuck in the driver) is left behind and counted; while too many
are, none is started. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from specctl.control.sample.gpu import NvmlHealth, Problem, Trouble
from specctl_agent.samplers.nvml_process import NvmlProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long, how often and how many, in seconds.

    `patience_s`: one look waits that long for an answer, and says so when there is none yet. `hang_s`: a call that
    has not come back by then hangs; `start_s`: the same of the start (without persistence mode the driver sets up
    each GPU anew, seconds each).
    `retry_…`: from one failed start to the next, doubled each time. `spare_…`: how long a GPU that hung a call is
    left alone, likewise.
    `renew_s`: a GPU that the process asks in vain for so long gets a new process: a reset GPU may need a new
    connection to the driver.
    `wear_s`, `processes_s`, `links_s`: periods of what is asked seldom; links of one GPU a time.
    """

    patience_s: float = 0.8
    hang_s: float = 5.0
    start_s: float = 60.0
    retry_first_s: float = 1.0
    retry_last_s: float = 60.0
    spare_first_s: float = 60.0
    spare_last_s: float = 3600.0
    renew_s: float = 300.0
    max_stuck: int = 4
    wear_s: float = 10.0
    processes_s: float = 5.0
    links_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spared:
    """A GPU that hung a call: its trouble, how often it did, and whether its time is up and it is asked again."""

    trouble: Trouble
    hangs: int
    asked_again: bool = False

    def forgiven(self, now_s: float) -> bool:
        """Whether it has been asked again for as long as it was left alone before."""
        back_s = self.trouble.retry_at_s or now_s
        return self.asked_again and now_s >= back_s + (back_s - self.trouble.since_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What the process was last seen at: the call, since when it can have been at it, and when it was seen."""

    mark: tuple[int | None, str]
    since_s: float
    seen_s: float


# Before the first of these is over there is nothing to speak to; an empty one is the interpreter's own start.
_START = frozenset({"", "nvmlInit"})


class Keeper:
    """One NVML process at a time, and the memory of those before it."""

    def __init__(self, start: Callable[[tuple[int, ...]], NvmlProcess], limits: Limits) -> None:
        self._start = start
        self._limits = limits
        self._process: NvmlProcess | None = None
        self._stuck: list[NvmlProcess] = []
        self._spared: dict[int, _Spared] = {}
        self._call: _Call | None = None
        self._failures = 0
        self._retry_at_s: float | None = None
        self._counts = NvmlHealth()
        self.trouble: Trouble | None = None

    @property
    def health(self) -> NvmlHealth:
        """What all of it cost so far."""
        return replace(self._counts, stuck=len(self._stuck))

    @property
    def spared(self) -> dict[int, Trouble]:
        """The GPUs that are left alone, and why."""
        return {index: spared.trouble for index, spared in self._spared.items() if not spared.asked_again}

    def process(self, now_s: float) -> tuple[NvmlProcess | None, bool]:
        """Return the process to ask, and whether it is a new one.

        None where it is too early to start one, or too many are stuck.
        """
        self._stuck = [process for process in self._stuck if process.ended() is None]
        self._ask_spared_again(now_s)
        if self._process is not None:
            return self._process, False
        if len(self._stuck) >= self._limits.max_stuck:
            held = f"{len(self._stuck)} killed NVML processes are still held in the driver"
            self._say(Problem.TOO_MANY_STUCK, held, now_s)
            return None, False
        if self._retry_at_s is not None and now_s < self._retry_at_s:
            return None, False
        try:
            self._process = self._start(tuple(sorted(self.spared)))
        except OSError as error:
            self.failed(Problem.FAILED, f"cannot start a process: {error}", now_s)
            return None, False
        self._counts = replace(self._counts, starts=self._counts.starts + 1)
        return self._process, True

    def answered(self, now_s: float) -> None:
        """Note a whole answer: whatever was wrong is over.

        What a GPU once hung is forgotten after as long as it was left alone.
        """
        self._failures, self._retry_at_s, self._call, self.trouble = 0, None, None, None
        self._spared = {index: spared for index, spared in self._spared.items() if not spared.forgiven(now_s)}

    @property
    def owed(self) -> bool:
        """Whether a request is not answered yet."""
        return self._call is not None

    def asked(self, now_s: float) -> None:
        """Note a request."""
        self._call = _Call(mark=(None, ""), since_s=now_s, seen_s=now_s)

    def overdue(self, now_s: float) -> None:
        """Judge an answer that is not there yet: its present call is slow, or it hangs and the process is killed."""
        if self._process is None or self._call is None:
            return
        mark = self._process.mark()
        since_s = self._call.since_s if mark == self._call.mark else self._call.seen_s
        self._call = _Call(mark=mark, since_s=since_s, seen_s=now_s)
        index, call = mark
        starting = call in _START
        if now_s - since_s > (self._limits.start_s if starting else self._limits.hang_s):
            self._hung(index, call, now_s, now_s - since_s)
        else:
            text = f"{call or 'the process'}{_on(index)} has not come back for {now_s - since_s:.1f} s"
            self._say(Problem.STARTING if starting else Problem.NO_ANSWER, text, now_s)

    def _hung(self, index: int | None, call: str, now_s: float, for_s: float) -> None:
        """Kill the process, and leave the GPU alone that its call was about; a call about none is tried again later."""
        self._counts = replace(self._counts, hangs=self._counts.hangs + 1, hung_s=self._counts.hung_s + for_s)
        self.drop()
        detail = f"{call or 'the start'} did not come back within {for_s:.1f} s"
        if index is None:
            self.failed(Problem.HUNG, detail, now_s)
            return
        hangs = self._spared[index].hangs + 1 if index in self._spared else 1
        spare_s = min(self._limits.spare_last_s, self._limits.spare_first_s * 2 ** (hangs - 1))
        trouble = Trouble(problem=Problem.HUNG, detail=detail, since_s=now_s, retry_at_s=now_s + spare_s)
        self._spared[index] = _Spared(trouble=trouble, hangs=hangs)
        self._retry_at_s = None
        self._say(Problem.HUNG, detail + _on(index), now_s)

    def died(self, now_s: float) -> None:
        """Note that the process ended, by itself or by somebody's hand."""
        status = None if self._process is None else self._process.ended()
        self._counts = replace(self._counts, deaths=self._counts.deaths + 1)
        self.failed(Problem.CHILD_DIED, "the NVML process ended" + ("" if status is None else f" ({status})"), now_s)

    def failed(self, problem: Problem, detail: str, now_s: float) -> None:
        """Give up this process; the next one is started later, and later each time."""
        self.drop()
        self._failures += 1
        wait_s = min(self._limits.retry_last_s, self._limits.retry_first_s * 2 ** min(self._failures - 1, 30))
        self._retry_at_s = now_s + wait_s
        self._say(problem, detail, now_s, self._retry_at_s)

    def drop(self) -> None:
        """Kill the process; it is stuck until the kernel lets go of it."""
        if self._process is not None:
            self._process.kill()
            self._stuck.append(self._process)
            self._process = self._call = None

    def _ask_spared_again(self, now_s: float) -> None:
        """Give GPUs whose time alone is over to a new process, unless the driver would hold that too, as it holds an old one."""
        if self._stuck:
            return
        due = [
            index
            for index, spared in self._spared.items()
            if not spared.asked_again and now_s >= (spared.trouble.retry_at_s or 0.0)
        ]
        for index in due:
            self._spared[index] = replace(self._spared[index], asked_again=True)
        if due:
            self.drop()

    def _say(self, problem: Problem, detail: str, now_s: float, retry_at_s: float | None = None) -> None:
        before = self.trouble
        since_s = before.since_s if before is not None and before.problem is problem else now_s
        self.trouble = Trouble(problem=problem, detail=detail, since_s=since_s, retry_at_s=retry_at_s)


def _on(index: int | None) -> str:
    return "" if index is None else f" on GPU {index}"
