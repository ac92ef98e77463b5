"""How the plugin comes into the engine, and what is said where it does not; nothing is served."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.sglang import environment
from tests.sglang.ddtree_engine import arguments, environ

pytestmark = pytest.mark.sglang

WITHIN_S = 300.0
ASK = """
import logging
logging.basicConfig(level=logging.INFO)
import sglang.version
sglang.version.__version__ = {version!r}
from sglang.srt.plugins import load_plugins
load_plugins()
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
print("knows", SpeculativeAlgorithm.from_string("DDTREE").name)
"""


def asked(folder: Path, version: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Ask the engine's interpreter whether it knows DDTREE, as if it were of that version."""
    code = ASK.format(version=version)
    return run([str(environment.python()), "-c", code], folder, env)


def run(argv: list[str], folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program of the engine's to its end."""
    return subprocess.run(argv, env=environ(folder, env), capture_output=True, text=True, timeout=WITHIN_S, check=False)


def test_engine_knows_the_algorithm(tmp_path: Path) -> None:
    """With the folder on PYTHONPATH and the plugin chosen, the engine knows DDTREE, and every hook found its place."""
    done = asked(tmp_path, environment.VERSION, SGLANG_PLUGINS="ddtree")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "knows DDTREE" in done.stdout
    assert "Executed general plugin: ddtree" in done.stderr
    assert done.stderr.count("Applied 1 hook(s)") == 7
    assert "Failed" not in done.stderr


def test_other_version_is_refused_in_words(tmp_path: Path) -> None:
    """Another release is refused with the reason, before the engine says that it does not know the name; a word helps."""
    refused = asked(tmp_path, "0.5.24", SGLANG_PLUGINS="ddtree")
    assert refused.returncode != 0
    reason = refused.stderr.index("DDTREE plugin not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24")
    assert reason < refused.stderr.index("Unknown speculative algorithm name: DDTREE")
    assert asked(tmp_path, "0.5.24", SGLANG_PLUGINS="ddtree", DDTREE_ANY_VERSION="1").returncode == 0


def test_server_that_a_tree_does_not_go_with_is_refused(tmp_path: Path) -> None:
    """A server with adapters and a draft's window ends before any weight is read, with both reasons."""
    argv = [*arguments(1, "DDTREE", "float32"), "--enable-lora", "--speculative-draft-window-size", "64"]
    done = run(argv, tmp_path, {})
    assert done.returncode != 0
    assert "DDTREE does not run so: --speculative-draft-window-size: a draft with a window" in done.stderr
    assert "--enable-lora: adapters were not tried with a tree" in done.stderr
    assert "Load weight begin" not in done.stderr


def test_bad_knobs_end_the_start(tmp_path: Path) -> None:
    """A budget that is no number ends the start with the variable's name."""
    done = run(arguments(1, "DDTREE", "float32"), tmp_path, {"DDTREE_BUDGET": "many"})
    assert done.returncode != 0
    assert "DDTREE_BUDGET=many is no whole number" in done.stderr
    assert "Load weight begin" not in done.stderr
