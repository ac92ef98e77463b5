"""A model folder loads whole or is refused with the file and the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from specctl.lab.errors import ModelError
from specctl.lab.models import Models, load_models
from specctl.lab.weights import Floats
from tests.unit.lab.runs import SHIPPED

MAX_SHIPPED_BYTES = 8_000_000

Breakage = Callable[[Path], object]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Return a copy of the shipped models."""
    shutil.copytree(SHIPPED, tmp_path / "models")
    return tmp_path / "models"


def edit_config(folder: str, **changes: object) -> Breakage:
    """Return a breakage that overwrites keys of a configuration."""

    def change(root: Path) -> None:
        path = root / folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def edit_tensors(change: Callable[[dict[str, Floats]], object]) -> Breakage:
    """Return a breakage that changes the target's tensors."""

    def rewrite(root: Path) -> None:
        path = root / "target" / "model.safetensors"
        tensors = safetensors.numpy.load_file(path)
        change(tensors)
        safetensors.numpy.save_file(tensors, path)

    return rewrite


def truncate(root: Path) -> None:
    """Cut the target's weights in half."""
    path = root / "target" / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_the_shipped_models_load_and_are_small(shipped: Models) -> None:
    """The package's models fit each other and 8 MB."""
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_SHIPPED_BYTES
    assert shipped.weight_bytes == sum(path.stat().st_size for path in files if path.suffix == ".safetensors")
    assert shipped.draft is not None
    assert shipped.tokenizer.vocab_size == shipped.target.config.vocab_size


def test_a_target_alone_loads() -> None:
    """Without a draft path there is no drafter and fewer bytes."""
    assert load_models(SHIPPED / "target", None).draft is None


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (lambda root: (root / "target" / "config.json").unlink(), r"target/config\.json: no such file"),
        (
            lambda root: (root / "target" / "config.json").write_text("{"),
            r"target/config\.json: cannot be read as JSON",
        ),
        (lambda root: (root / "target" / "config.json").write_text("[]"), "expected a JSON object"),
        (lambda root: (root / "target" / "model.safetensors").unlink(), r"model\.safetensors: no such file"),
        (lambda root: (root / "target" / "tokenizer.json").unlink(), r"tokenizer\.json: no such file"),
        (truncate, r"target/model\.safetensors: corrupt weights"),
        (lambda root: (root / "dflash" / "model.safetensors").write_bytes(b""), r"dflash/model\.safetensors: corrupt"),
        (edit_config("target", model_type="llama"), "model_type is 'llama'"),
        (edit_config("target", hidden_size="64"), "key 'hidden_size' has the value '64', expected int"),
        (edit_config("target", rope_theta=-1.0), "key 'rope_theta'"),
        (edit_config("target", num_key_value_heads=2), "multi-query attention"),
        (edit_config("target", head_dim=31), "head_dim is 31"),
        (edit_config("target", intermediate_size=128), "the configuration asks for"),
        (edit_config("target", vocab_size=900), "the configuration asks for|has 1024 tokens"),
        (edit_config("dflash", block_size=17), "block_size is 17, expected 2 to 16"),
        (edit_config("dflash", vocab_size=512), "the drafter has 512 tokens, the target 1024"),
        (edit_config("dflash", hidden_size=96), "the drafter's hidden_size is 96"),
        (edit_config("dflash", target_layer_ids=[1, 99]), "names layer 99 of"),
        (edit_config("dflash", target_layer_ids=[]), "target_layer_ids is empty"),
        (edit_tensors(lambda tensors: tensors.pop("norm.weight")), r"tensor norm\.weight is missing"),
        (
            edit_tensors(lambda tensors: tensors.update(extra=np.zeros(1, dtype=np.float32))),
            "tensor extra is not part of this model",
        ),
        (edit_tensors(lambda tensors: tensors["norm.weight"].fill(np.nan)), "values that are not finite"),
        (edit_tensors(lambda tensors: tensors["layers.0.self_attn.q_gain"].fill(40)), "q_gain allows scores of"),
    ],
)
def test_broken_files_are_refused(folders: Path, breakage: Breakage, said: str) -> None:
    """Each way to break a folder is one ModelError that says what is wrong and where."""
    breakage(folders)
    with pytest.raises(ModelError, match=said):
        load_models(folders / "target", folders / "dflash")


def test_a_missing_key_is_named(folders: Path) -> None:
    """A configuration without one of its keys names the key."""
    path = folders / "dflash" / "config.json"
    document = json.loads(path.read_text())
    del document["mask_token_id"]
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="key 'mask_token_id' is missing"):
        load_models(folders / "target", folders / "dflash")


def test_a_configuration_writes_what_it_reads(shipped: Models) -> None:
    """The document of a parsed configuration parses to the same configuration."""
    config = shipped.target.config
    assert type(config).parse(config.document(), "here") == config
