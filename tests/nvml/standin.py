"""Builds the stand-in for libnvidia-ml.so.1 and writes its scenarios; docs/nvml-standin.md says what they may hold."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).with_name("standin.c")
LIBRARY = "libnvidia-ml.so.1"
GPUS = 8


def compiler() -> str | None:
    """Return the C compiler of this machine, None without one."""
    return shutil.which("gcc") or shutil.which("cc")


def build() -> Path:
    """Return a folder that holds the library; it is compiled once for each change of its source."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"specctl-nvml-{os.getuid()}-{digest}"
    if not (folder / LIBRARY).exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            fresh = Path(made) / LIBRARY
            options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]
            subprocess.run([str(compiler()), *options, "-o", str(fresh), str(SOURCE)], check=True)
            fresh.rename(folder / LIBRARY)
    return folder


def uuid(index: int) -> str:
    """Return the UUID that the stand-in gives a GPU."""
    return f"GPU-{index:08x}-0000-4000-8000-0123456789ab"


class Scenario:
    """One scenario file in a folder of its own, and what was called under it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scenario"
        self._calls = folder / "calls"
        self.write()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make a program load the stand-in and obey this scenario."""
        return {
            "LD_LIBRARY_PATH": str(build()),
            "SPECCTL_NVML_SCENARIO": str(self._file),
            "SPECCTL_NVML_CALLS": str(self._calls),
        }

    def write(self, *lines: str) -> None:
        """Put these lines in the place of all before, at once, for every call from now on."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.rename(self._file)

    def calls(self) -> Counter[tuple[int, str]]:
        """Return how often each (GPU, call) was made; a call that is about no GPU has the GPU -2."""
        made: Counter[tuple[int, str]] = Counter()
        if self._calls.exists():
            for line in self._calls.read_text().splitlines():
                gpu, call = line.split()
                made[int(gpu), call] += 1
        return made
