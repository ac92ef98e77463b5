"""The stand-in for NVML says what its page says, and refuses what it does not understand."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nvml.standin import SOURCE, Scenario, uuid

PAGE = Path(__file__).parents[4] / "docs" / "nvml-standin.md"
ASK = """
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    try:
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        print(pynvml.nvmlDeviceGetUUID(gpu), pynvml.nvmlDeviceGetTemperature(gpu, 0))
    except pynvml.NVMLError as error:
        print(index, error)
"""


def ask() -> subprocess.CompletedProcess[str]:
    """Ask each GPU's temperature, through the binding and nothing of specctl."""
    return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False, env=os.environ)


def test_each_line_of_the_page_is_understood(nvml: Scenario) -> None:
    """One line of each kind that the page lists is taken, and does what the page says."""
    kinds = re.findall(r"^\| `(\w+) [A-Z]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    lines = [
        "# a comment",
        "gpus 3",
        "driver 570.1",
        "gpu 0 temperature 61",
        "process 0 42 1024",
        "fault 1 nvmlDeviceGetTemperature GPU_IS_LOST",
        "hang 7 *",
        "delay 0 nvmlDeviceGetTemperature 1",
        "xid 0 79",
    ]
    assert sorted(kinds) == sorted(line.split()[0] for line in lines[1:])
    nvml.write(*lines)
    assert ask().stdout.splitlines() == [f"{uuid(0)} 61", "1 GPU is lost", f"{uuid(2)} 58"]


def test_the_page_lists_each_field() -> None:
    """The page names all fields that a scenario can set, and no other."""
    known = re.findall(r"X\((\w+), \d+\)", SOURCE.read_text(encoding="utf-8"))
    (told,) = re.findall(r"^Fields: (.+?)\.$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", told)) == sorted([*known, "uuid"])


@pytest.mark.parametrize("line", ["gpu 0 temprature 61", "fault 0 * GPU_LOST", "hang 0", "sleep 3", "process 99 1 1"])
def test_a_misspelt_scenario_ends_the_program(nvml: Scenario, line: str) -> None:
    """A line that cannot be read is no healthy GPU."""
    nvml.write(line)
    ended = ask()
    assert ended.returncode == -signal.SIGABRT
    assert line in ended.stderr


def test_a_fault_can_exempt_a_call(nvml: Scenario) -> None:
    """The first line that fits a call counts."""
    nvml.write("gpus 2", "fault 1 nvmlDeviceGetTemperature OK", "fault * nvmlDeviceGetTemperature UNKNOWN")
    assert ask().stdout.splitlines() == ["0 Unknown Error", f"{uuid(1)} 58"]
