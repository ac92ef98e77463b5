"""The agent's memory: what the interpreter keeps for later is given back."""

from __future__ import annotations

import subprocess
import sys

PROGRAMME = """
import sys
from specctl_agent import memory
memory.settle()
before = sys.getallocatedblocks()
rows = [tuple(float(each) for each in range(size)) for size in range(2, 20) for _ in range(1000)]
del rows
kept = sys.getallocatedblocks() - before
memory.tidy()
print(kept, sys.getallocatedblocks() - before)
"""


def test_what_is_kept_of_freed_tuples_is_given_back() -> None:
    """Thousands of freed tuples stay allocated until the agent tidies up, and hardly any afterwards."""
    done = subprocess.run([sys.executable, "-c", PROGRAMME], capture_output=True, text=True, check=True)
    kept, left = (int(word) for word in done.stdout.split())
    assert kept > 10_000
    assert left < kept / 20


def test_settling_leaves_what_exists_out_of_collections() -> None:
    """All that is there when the agent begins is looked at no more, so that tidying takes milliseconds."""
    script = "import gc; from specctl_agent import memory; memory.settle(); print(gc.get_freeze_count(), len(gc.get_objects()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    frozen, looked_at = (int(word) for word in done.stdout.split())
    assert frozen > looked_at
