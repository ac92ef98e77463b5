"""What the keeper does with its NVML processes over hours, told by a clock of numbers; the processes are fakes behind its port."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from specctl.control.sample.gpu import NvmlHealth, Problem, Trouble
from specctl_agent.samplers import nvml_wire
from specctl_agent.samplers.nvml_keeper import Keeper, Limits
from specctl_agent.samplers.nvml_process import NvmlProcess

LIMITS = Limits(
    hang_s=5.0, start_s=60.0, retry_first_s=1.0, retry_last_s=8.0, spare_first_s=60.0, spare_last_s=200.0, max_stuck=2
)


@dataclass
class Fake:
    """An NVML process that is at `at`, and that the kernel lets go of when told."""

    skipped: tuple[int, ...]
    at: tuple[int | None, str] = (3, "nvmlDeviceGetPowerUsage")
    killed: bool = False
    held: bool = False

    def ask(self, asked: int) -> None:
        pass

    def receive(self, limit_s: float) -> nvml_wire.Message | None:
        return None

    def mark(self) -> tuple[int | None, str]:
        return self.at

    def kill(self) -> None:
        self.killed = True

    def ended(self) -> int | None:
        return None if self.held or not self.killed else -9


@dataclass
class Bench:
    """A keeper and all processes that it started."""

    started: list[Fake] = field(default_factory=list)
    held: bool = False

    def __post_init__(self) -> None:
        self.keeper = Keeper(self.start, LIMITS)

    def start(self, skipped: tuple[int, ...]) -> NvmlProcess:
        self.started.append(Fake(skipped, held=self.held))
        return self.started[-1]

    def hang(self, now_s: float) -> None:
        """Let a call hang that began then."""
        self.keeper.process(now_s)
        self.keeper.asked(now_s)
        self.keeper.overdue(now_s)
        self.keeper.overdue(now_s + 6.0)


def trouble(keeper: Keeper) -> Trouble:
    """The trouble that there must be."""
    found = keeper.trouble
    assert found is not None
    return found


def alone_s(keeper: Keeper) -> float:
    """How long GPU 3 is left alone."""
    found = keeper.spared[3]
    assert found.retry_at_s is not None
    return found.retry_at_s - found.since_s


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_failed_starts_back_off(bench: Bench) -> None:
    """From one failed start to the next it takes twice as long, up to a limit, and one answer begins anew."""
    waits = []
    now_s = 100.0
    for _ in range(6):
        bench.keeper.process(now_s)
        bench.keeper.failed(Problem.DRIVER_NOT_LOADED, "no driver", now_s)
        again_s = trouble(bench.keeper).retry_at_s
        assert again_s is not None
        assert bench.keeper.process(again_s - 0.01) == (None, False)
        waits.append(again_s - now_s)
        now_s = again_s
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert trouble(bench.keeper).since_s == 100.0
    bench.keeper.process(now_s)
    bench.keeper.answered(now_s)
    assert bench.keeper.trouble is None
    bench.keeper.failed(Problem.DRIVER_NOT_LOADED, "no driver", now_s)
    assert trouble(bench.keeper).retry_at_s == now_s + 1.0


def test_a_process_that_cannot_be_started_is_a_failure(bench: Bench) -> None:
    """No memory or no more processes: said, and tried again later."""

    def refuse(skipped: tuple[int, ...]) -> NvmlProcess:
        raise OSError("out of memory")

    keeper = Keeper(refuse, LIMITS)
    assert keeper.process(0.0) == (None, False)
    assert (trouble(keeper).problem, trouble(keeper).retry_at_s) == (Problem.FAILED, 1.0)
    assert "out of memory" in trouble(keeper).detail
    assert keeper.health == NvmlHealth()


def test_a_slow_call_is_no_hang(bench: Bench) -> None:
    """A long answer whose calls move on is not killed, however long it takes; one call that stays is."""
    bench.keeper.process(0.0)
    bench.keeper.asked(0.0)
    for second in range(1, 20):
        bench.started[0].at = (second % 8, "nvmlDeviceGetPowerUsage")
        bench.keeper.overdue(float(second * 4))
    assert [fake.killed for fake in bench.started] == [False]
    assert trouble(bench.keeper).problem is Problem.NO_ANSWER
    bench.keeper.overdue(82.0)
    assert [fake.killed for fake in bench.started] == [True]
    assert bench.keeper.health == NvmlHealth(starts=1, hangs=1, hung_s=10.0, stuck=1)


def test_the_start_has_a_longer_limit(bench: Bench) -> None:
    """Until the driver was spoken to, the long limit holds; a start that outlives it counts as a hang and is tried again later."""
    bench.keeper.process(0.0)
    bench.started[0].at = (None, "nvmlInit")
    bench.keeper.asked(0.0)
    bench.keeper.overdue(1.0)
    bench.keeper.overdue(59.0)
    assert [fake.killed for fake in bench.started] == [False]
    assert trouble(bench.keeper).problem is Problem.STARTING
    bench.keeper.overdue(62.0)
    assert [fake.killed for fake in bench.started] == [True]
    assert bench.keeper.spared == {}
    assert bench.keeper.process(62.5) == (None, False)
    assert bench.keeper.process(63.1)[1]


def test_a_gpu_that_hangs_again_is_left_alone_for_longer(bench: Bench) -> None:
    """Each hang doubles the time that its GPU is left alone; the others are asked at once by a new process."""
    alone = []
    now_s = 0.0
    for _ in range(4):
        bench.hang(now_s)
        alone.append(alone_s(bench.keeper))
        bench.keeper.process(now_s + 6.0)
        assert bench.started[-1].skipped == (3,)
        bench.keeper.answered(now_s + 7.0)
        now_s += 6.0 + alone[-1]
    assert alone == [60.0, 120.0, 200.0, 200.0]
    assert bench.keeper.health.hangs == 4


def test_a_gpu_is_not_asked_again_while_its_call_still_hangs(bench: Bench) -> None:
    """While the driver holds the process that a GPU hung, the others are sampled without it, for as long as it takes."""
    bench.held = True
    bench.hang(0.0)
    bench.held = False
    for now_s in (10.0, 100.0, 10_000.0):
        process, _ = bench.keeper.process(now_s)
        assert process is bench.started[1]
        bench.keeper.answered(now_s)
    assert bench.started[1].skipped == (3,)
    bench.started[0].held = False
    bench.keeper.process(10_001.0)
    assert bench.started[2].skipped == ()


def test_a_gpu_that_behaves_is_forgiven(bench: Bench) -> None:
    """A GPU that answers for as long as it was left alone begins anew with its next hang."""
    bench.hang(0.0)
    for now_s in (10.0, 66.5, 130.0):
        bench.keeper.process(now_s)
        bench.keeper.answered(now_s)
    assert bench.started[-1].skipped == ()
    bench.hang(200.0)
    assert alone_s(bench.keeper) == 60.0


def test_too_many_stuck_processes_start_no_other(bench: Bench) -> None:
    """Killed processes that the kernel holds are counted; at the bound none is started until one is let go."""
    bench.held = True
    bench.hang(0.0)
    bench.hang(10.0)
    assert bench.keeper.process(20.0) == (None, False)
    assert bench.keeper.health.stuck == 2
    assert trouble(bench.keeper).problem is Problem.TOO_MANY_STUCK
    assert len(bench.started) == 2
    bench.started[0].held = False
    process, fresh = bench.keeper.process(30.0)
    assert fresh
    assert process is bench.started[2]
    assert bench.keeper.health.stuck == 1
