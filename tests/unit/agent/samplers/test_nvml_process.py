"""The NVML process itself: it ends with its agent, whatever it is doing, and it stays small."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from specctl_agent.samplers import nvml_wire as wire
from specctl_agent.samplers.nvml_process import ChildProcess
from tests.nvml.standin import Scenario

pytestmark = pytest.mark.slow

PATIENCE_S = 20.0

# An agent that starts its NVML process, asks for one look, says its pid, and then neither reads nor ends.
AGENT = """
import sys, threading
from specctl_agent.samplers.nvml_process import ChildProcess
process = ChildProcess()
process.receive(20.0)
process.ask(1)
if sys.argv[1] == "idle":
    process.receive(20.0)
print(process.pid, flush=True)
threading.Event().wait()
"""


@contextmanager
def agent(what: str) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """Run an agent whose NVML process is that."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, what], stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        child = psutil.Process(int(running.stdout.readline()))
        try:
            yield running, child
        finally:
            running.kill()


@pytest.fixture
def child(nvml: Scenario) -> Iterator[ChildProcess]:
    made = ChildProcess()
    yield made
    made.kill()


@pytest.mark.parametrize("what", ["idle", "hung"])
def test_it_ends_with_its_agent(nvml: Scenario, what: str) -> None:
    """An agent that is killed leaves no NVML process, not even one in a call that never comes back."""
    if what == "hung":
        nvml.write("hang 0 nvmlDeviceGetTemperature")
    with agent(what) as (running, child):
        running.send_signal(signal.SIGKILL)
        child.wait(PATIENCE_S)
        assert not child.is_running()


def test_its_present_call_can_be_read(nvml: Scenario, child: ChildProcess) -> None:
    """While a call hangs, the shared memory names it and its GPU; between requests it names none."""
    assert child.receive(PATIENCE_S) is not None
    child.ask(wire.FAST)
    assert child.receive(PATIENCE_S) is not None
    assert child.mark() == (None, "")
    nvml.write("hang 6 nvmlDeviceGetClockInfo")
    child.ask(wire.FAST)
    assert child.receive(0.3) is None
    assert child.mark() == (6, "nvmlDeviceGetClockInfo")


def test_its_end_is_told(child: ChildProcess) -> None:
    """Hearing a process that is gone raises EOFError, asking it is no error, and its status is known."""
    assert child.receive(PATIENCE_S) is not None
    os.kill(child.pid, signal.SIGTERM)
    with pytest.raises(EOFError):
        child.receive(PATIENCE_S)
    child.ask(wire.FAST)
    child.kill()
    assert child.ended() == -signal.SIGTERM


def test_its_last_words_are_heard(nvml: Scenario, child: ChildProcess) -> None:
    """What a process said before it ended arrives, also when it was asked once more since."""
    assert child.receive(PATIENCE_S) is not None
    nvml.write("fault * * DRIVER_NOT_LOADED")
    child.ask(wire.FAST)
    child.ask(wire.FAST)  # stays unread
    psutil.Process(child.pid).wait(PATIENCE_S)
    child.ask(wire.FAST)
    said = child.receive(PATIENCE_S)
    assert said is not None
    assert said[:2] == (wire.TROUBLE, "DRIVER_NOT_LOADED")
    with pytest.raises(EOFError):
        child.receive(PATIENCE_S)


def test_it_imports_little(child: ChildProcess) -> None:
    """It loads nothing of the agent but its own four modules, and no other package than the binding."""
    names = ("specctl", "specctl_agent", "pynvml", "dataclasses", "typing", "json", "asyncio", "psutil", "yaml")
    programme = (
        "import sys; sys.path += sys.argv[1:]; import specctl_agent.samplers.nvml_child;"
        f"print(*sorted(name for name in sys.modules if name.split('.')[0] in {names}))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", programme, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [
        "pynvml",
        "specctl_agent",
        "specctl_agent.samplers",
        "specctl_agent.samplers.nvml_binding",
        "specctl_agent.samplers.nvml_child",
        "specctl_agent.samplers.nvml_wire",
    ]
