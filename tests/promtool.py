"""Prometheus' own checker, where the machine has it; Debian's package `prometheus` brings it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest


def run(arguments: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool, or skip the test with the reason; a machine that must have everything fails instead."""
    program = shutil.which("promtool")
    if program is None:
        reason = "promtool is missing: apt-get install --no-install-recommends prometheus"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=60)
