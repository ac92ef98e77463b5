"""The ten minutes on a GPU: which settings are tried, where texts part, and what is said of a server that cannot be tried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sglang_ddtree
from sglang_ddtree import tryout


def test_settings_stay_within_the_server() -> None:
    """Nothing drafted and the chain come first, then trees up to what the server allows, none twice."""
    assert tryout.settings(8, 31, 8) == [(0, 1), (7, 1), (7, 4), (15, 4), (31, 4)]
    assert tryout.settings(8, 7, 1) == [(0, 1), (7, 1)]


def test_texts_part_at_their_first_difference() -> None:
    """The first differing token counts; a text that is cut short parts nowhere."""
    assert tryout.divergence([1, 2, 3], [1, 5, 3]) == 1
    assert tryout.divergence([1, 2], [1, 2, 3]) is None


def test_absent_server_is_named() -> None:
    """Where nobody listens, the address is named in one line, exit 2."""
    argv = [sys.executable, "-m", "sglang_ddtree.tryout", "http://127.0.0.1:9"]
    done = subprocess.run(
        argv, cwd=Path(sglang_ddtree.__file__).parents[1], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: http://127.0.0.1:9/server_info: ")
    assert len(done.stderr.splitlines()) == 1
