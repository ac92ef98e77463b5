"""The package as a host gets it: found by its folder alone, importing nothing of ours, each file of one job."""

from __future__ import annotations

import ast
from importlib import metadata
from pathlib import Path

import sglang_ddtree

FOLDER = Path(sglang_ddtree.__file__).parent
# Python's own names are left out below; of others there are the engine, torch, and what the engine itself needs.
ALLOWED = {"sglang", "sglang_ddtree", "torch", "prometheus_client"}


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def test_nothing_but_the_engine_is_imported() -> None:
    """Standard library, torch and the engine are all that the plugin needs; specctl is not among them."""
    import sys

    outside = {name for path in FOLDER.glob("*.py") for name in imported(path)} - set(sys.stdlib_module_names)
    assert outside == ALLOWED


def test_folder_on_the_path_is_enough() -> None:
    """The metadata beside the package names the entry point by which SGLang finds it, and that module is there."""
    found = metadata.PathDistribution(FOLDER / "dist-info")
    points = [(point.group, point.name, point.value) for point in found.entry_points]
    assert points == [("sglang.srt.plugins", "ddtree", "sglang_ddtree.plugin:load")]
    assert found.metadata["Name"] == "sglang-ddtree"
    assert "def load()" in (FOLDER / "plugin.py").read_text()
