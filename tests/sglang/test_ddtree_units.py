"""The plugin's quick tests with the engine's own torch: where CI has no torch, they are run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sglang import environment

pytestmark = pytest.mark.sglang

ROOT = Path(__file__).parents[2]
# The rest of the engine's packages stay out of our own environment.
TORCH = ("torch", "torchgen", "functorch", "nvidia", "triton")
IMPORTED = ("sympy", "mpmath", "networkx", "filelock", "fsspec", "typing_extensions.py")
WITHIN_S = 600.0


def test_nothing_is_skipped_for_want_of_torch(tmp_path: Path) -> None:
    """Build, walk, mask, gather over ranks, settling: all of the plugin's quick tests pass, and none is skipped."""
    (packages,) = environment.venv().glob("lib/python3*/site-packages")
    for name in TORCH + IMPORTED:
        if (packages / name).exists():
            (tmp_path / name).symlink_to(packages / name)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/sglang_ddtree"]
    environ = os.environ | {"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout
