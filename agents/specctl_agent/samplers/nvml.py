"""The NVML sampler: asks the NVML process for one look at all GPUs, and says what is wrong when none comes."""

from __future__ import annotations

import time
from collections.abc import Callable

from specctl.control.sample.gpu import LostGpu, NvmlSample, Problem
from specctl_agent.samplers import nvml_wire as wire
from specctl_agent.samplers.nvml_keeper import Keeper, Limits
from specctl_agent.samplers.nvml_picture import MessageError, Picture, problem_of
from specctl_agent.samplers.nvml_process import ChildProcess, NvmlProcess

LIMITS = Limits()


class NvmlSampler:
    """Samples all GPUs; whatever the driver does, `sample` returns after about `limits.patience_s`, and says so."""

    name = "nvml"

    def __init__(
        self,
        *,
        period_s: float = 1.0,
        limits: Limits = LIMITS,
        start: Callable[[tuple[int, ...]], NvmlProcess] = ChildProcess,
    ) -> None:
        self.period_s = period_s
        self.deadline_s = limits.patience_s + 5.0
        self._limits = limits
        self._keeper = Keeper(start, limits)
        self._picture = Picture()
        self._due_s = dict.fromkeys((wire.WEAR, wire.PROCESSES, wire.LINKS), 0.0)

    def sample(self) -> NvmlSample:
        """Take one look; what is wrong is in the sample."""
        now_s = time.monotonic()
        process, fresh = self._keeper.process(now_s)
        if process is None:
            return self._result(now_s, answered=False)
        if fresh:
            self._picture.forget()
            self._due_s = dict.fromkeys(self._due_s, 0.0)
        try:
            answered = self._look(process, now_s)
        except EOFError:
            self._keeper.died(now_s)
            answered = False
        except (MessageError, ValueError, TypeError) as error:  # what marshal and the picture raise for nonsense
            self._keeper.failed(Problem.FAILED, str(error), now_s)
            answered = False
        return self._result(now_s, answered=answered)

    def close(self) -> None:
        """Kill the NVML process."""
        self._keeper.drop()

    def _look(self, process: NvmlProcess, now_s: float) -> bool:
        """Ask, unless an answer is still owed, and listen; returns whether it came, and notes what keeps it."""
        if not self._keeper.owed:
            self._keeper.asked(now_s)
            process.ask(self._wanted(now_s))
        until_s = now_s + self._limits.patience_s
        while True:
            message = process.receive(until_s - time.monotonic())
            match message:
                case None:
                    self._keeper.overdue(time.monotonic())
                    return False
                case (wire.TROUBLE, str(error), str(text)):
                    self._keeper.failed(problem_of(error), f"{error}: {text}", now_s)
                    return False
            if self._picture.fold(message, now_s):
                return self._settle(now_s)

    def _wanted(self, now_s: float) -> int:
        """Return the request's bits: everything at first, then each at its period."""
        limits = self._limits
        periods_s = ((wire.WEAR, limits.wear_s), (wire.PROCESSES, limits.processes_s), (wire.LINKS, limits.links_s))
        asked = wire.FAST
        for bit, period_s in periods_s:
            if now_s >= self._due_s[bit]:
                self._due_s[bit] = now_s + period_s
                asked |= bit
        return asked | wire.RETRY_LOST if asked & wire.WEAR else asked

    def _settle(self, now_s: float) -> bool:
        """Judge a whole answer; returns whether any GPU is in it, or the host has none."""
        lost = self._picture.lost
        if lost and not self._picture.gpus:
            trouble = lost[0].trouble
            self._keeper.failed(trouble.problem, f"none of {len(lost)} GPUs answers: {trouble.detail}", now_s)
            return False
        self._keeper.answered(now_s)
        if any(now_s - gpu.trouble.since_s > self._limits.renew_s for gpu in lost):
            self._keeper.drop()
        return True

    def _result(self, now_s: float, *, answered: bool) -> NvmlSample:
        picture = self._picture
        spared = [picture.named(index, trouble) for index, trouble in self._keeper.spared.items()]
        return NvmlSample(
            at_s=now_s,
            gpus=picture.gpus if answered else (),
            lost=tuple(sorted((*picture.lost, *spared), key=_index)) if spared else picture.lost,
            trouble=None if answered else self._keeper.trouble,
            driver=picture.driver,
            facts=picture.facts,
            xids=picture.xids.events,
            xid_counts=picture.xids.counts,
            health=self._keeper.health,
        )


def _index(gpu: LostGpu) -> int:
    return gpu.index
