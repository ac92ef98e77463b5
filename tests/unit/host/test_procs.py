"""Processes as /proc tells them: told apart by start time, named without their arguments, found with all their kin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl.host import procs
from tests.unit.host.conftest import running, until

FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """A process in a group of its own and its child."""
    argv = [sys.executable, "-S", "-c", FAMILY, "--api-key", "s3cret"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        yield parent.pid, child
        if running(child):
            os.kill(child, signal.SIGKILL)
        parent.communicate(b"\n")


def test_tree_and_family_find_the_child(pair: tuple[int, int]) -> None:
    """Both ways of looking find exactly parent and child."""
    assert sorted(procs.tree(pair[0])) == sorted(procs.family(pair[0])) == sorted(pair)


def test_family_finds_an_orphan_of_the_group(pair: tuple[int, int]) -> None:
    """A child whose parent died is still found by its process group."""
    os.kill(pair[0], signal.SIGKILL)
    until(lambda: not procs.started(pair[0]), "the parent ends")
    assert procs.family(pair[0]) == [pair[1]]


def test_a_pid_counts_only_with_its_start(pair: tuple[int, int]) -> None:
    """The same number with another start time is another process."""
    began = procs.started(pair[0])
    assert began is not None
    assert procs.alive((pair[0], began))
    assert not procs.alive((pair[0], began - 1))


def test_a_zombie_is_gone() -> None:
    """A process that has ended but was not collected is not alive."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as child:
        until(lambda: procs.stat(child.pid) is None, "it ends")
        assert Path(f"/proc/{child.pid}").exists()


def test_names_hold_no_arguments(pair: tuple[int, int]) -> None:
    """What a process is called never contains its arguments, which may hold keys."""
    assert procs.name(pair[0]).startswith("python")
    assert "s3cret" not in procs.name(pair[0])


def test_figures_sum_up(pair: tuple[int, int]) -> None:
    """Memory of both processes is counted; a pid that is gone counts nothing."""
    one, both = procs.figures([pair[0]]), procs.figures([*pair, 2**22 + 1])
    assert (one.processes, both.processes) == (1, 2)
    assert both.rss_bytes > one.rss_bytes > 1 << 20
