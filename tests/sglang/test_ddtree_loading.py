"""How the plugin comes into the engine, and what is said where it does not; nothing is served."""

from __future__ import annotations

import json
import shutil
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

RECURRENT = """
import inspect
from types import SimpleNamespace
from sglang.srt.configs.hybrid_arch import mambaish_config
from sglang.srt.configs.qwen3_next import Qwen3NextConfig
from sglang.srt.model_executor.model_runner import ModelRunner
from sglang_ddtree import refusals
config = Qwen3NextConfig(num_hidden_layers=4)
found = mambaish_config(SimpleNamespace(hf_config=config, hf_text_config=config, is_draft_model=False))
target, source = SimpleNamespace(is_hybrid_swa=False, sliding_window_size=None), inspect.getsource(ModelRunner)
for name in vars(target):
    assert f"self.{name} = " in source, name
try:
    refusals.check_models(target, SimpleNamespace(model=SimpleNamespace()), found)
except refusals.RefusedError as refused:
    print(refused)
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


def test_recurrent_target_is_refused_by_the_engines_own_word(tmp_path: Path) -> None:
    """What the engine itself knows of recurrent layers, of a Qwen3-Next here, makes the plugin refuse; it tells of windows too."""
    done = run([str(environment.python()), "-c", RECURRENT], tmp_path, {})
    assert done.returncode == 0, done.stderr[-2000:]
    assert "DDTREE: the target has recurrent layers, whose state a tree would mix up" in done.stdout


def test_model_whose_defaults_would_refuse_every_chat_is_refused(tmp_path: Path) -> None:
    """A penalty in the target's generation_config.json ends the start with what to do about it."""
    target = tmp_path / "target"
    shutil.copytree(environment.models() / "target", target)
    (target / "generation_config.json").write_text(json.dumps({"repetition_penalty": 1.05, "temperature": 0.7}))
    done = run([*arguments(1, "DDTREE", "float32"), "--model-path", str(target)], tmp_path, {})
    assert done.returncode != 0
    assert "generation_config.json gives every chat repetition_penalty=1.05" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("DDTREE_BUDGET", "many", "DDTREE_BUDGET=many is no whole number"),
        (
            "DDTREE_METRICS_EVERY",
            "41",
            "DDTREE_METRICS_EVERY=41 is outside 1 to 40 (the engine's --decode-log-interval",
        ),
        ("DDTREE_TRACE", "/nowhere/trace", "DDTREE_TRACE=/nowhere/trace: no file can be made in /nowhere"),
    ],
)
def test_bad_words_end_the_start(tmp_path: Path, variable: str, value: str, said: str) -> None:
    """A variable that cannot be so ends the start with its name, before any weight is read."""
    done = run(arguments(1, "DDTREE", "float32"), tmp_path, {variable: value})
    assert done.returncode != 0
    assert said in done.stderr
    assert "Load weight begin" not in done.stderr
