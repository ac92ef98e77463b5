"""The entry point: where the plugin cannot be loaded, one line says why, and the error goes on to the engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sglang_ddtree

AGENTS = Path(sglang_ddtree.__file__).parents[1]
LOAD = "from sglang_ddtree import plugin; plugin.load()"


def loaded(path: Path) -> list[str]:
    """Load the plugin in a process that finds other packages below `path` alone; return what it prints."""
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(path), str(AGENTS)]!r}; {LOAD}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()


def engine(path: Path, version: str) -> None:
    """Put a package of the engine's name there that tells its version and has nothing else."""
    (path / "sglang").mkdir()
    (path / "sglang" / "__init__.py").touch()
    (path / "sglang" / "version.py").write_text(f"__version__ = {version!r}\n")


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (None, "ModuleNotFoundError: No module named 'sglang'"),
        (
            "0.5.24",
            (
                "DDTREE was tested with SGLang 0.5.23, not with 0.5.24; "
                "DDTREE_ANY_VERSION=1 tries it all the same: then check greedy equality before you serve"
            ),
        ),
        ("0.5.23", "ModuleNotFoundError: No module named 'torch'"),
    ],
)
def test_reason_is_one_line(tmp_path: Path, version: str | None, reason: str) -> None:
    """Without an engine, with another one, and without torch the reason is said once, before the traceback."""
    if version is not None:
        engine(tmp_path, version)
    said = loaded(tmp_path)
    assert said[0] == f"DDTREE plugin not loaded: {reason}"
    assert said[1].startswith("Traceback")
    assert sum("plugin not loaded" in line for line in said) == 1


def test_module_that_is_missing_is_named(tmp_path: Path) -> None:
    """A plugin that came without one of its own modules says which."""
    engine(tmp_path, "0.5.23")
    (tmp_path / "sglang_ddtree").mkdir()
    for name in ("__init__.py", "plugin.py"):
        (tmp_path / "sglang_ddtree" / name).write_bytes((AGENTS / "sglang_ddtree" / name).read_bytes())
    assert loaded(tmp_path)[0].startswith("DDTREE plugin not loaded: ImportError: cannot import name 'version'")
