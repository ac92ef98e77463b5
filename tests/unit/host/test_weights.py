"""The size of a model's weights, from its files or its index."""

from __future__ import annotations

import json
from pathlib import Path

from specctl.host import weights
from specctl.host.weights import Weights


def _index(folder: Path, *names: str) -> None:
    content = {"metadata": {"total_size": 1000}, "weight_map": {f"layer.{name}": name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def test_files_are_summed_and_links_followed(tmp_path: Path) -> None:
    """Shards count with the size of what they link to, as a hub's cache lays them out."""
    (tmp_path / "blob").write_bytes(b"x" * 30)
    (tmp_path / "model-1.safetensors").symlink_to("blob")
    (tmp_path / "model-2.safetensors").write_bytes(b"x" * 12)
    _index(tmp_path, "model-1.safetensors", "model-2.safetensors")
    assert weights.measure(str(tmp_path)) == Weights(42, (), 2)


def test_missing_shards_are_counted(tmp_path: Path) -> None:
    """A half download is told: the index's size, and which of its files are missing (a dangling link is missing)."""
    (tmp_path / "model-1.safetensors").write_bytes(b"x")
    (tmp_path / "model-2.safetensors").symlink_to("nowhere")
    _index(tmp_path, "model-1.safetensors", "model-2.safetensors", "model-3.safetensors")
    assert weights.measure(str(tmp_path)) == Weights(1000, ("model-2.safetensors", "model-3.safetensors"), 1)


def test_what_cannot_be_measured_is_none(tmp_path: Path) -> None:
    """No folder: None; a folder without safetensors: its size is not known, never 0; a broken index is as none."""
    assert weights.measure(str(tmp_path / "absent")) is None
    assert weights.measure(str(tmp_path)) == Weights(None, (), 0)
    (tmp_path / "model.safetensors.index.json").write_text("{")
    assert weights.measure(str(tmp_path)) == Weights(None, (), 0)


def test_other_kinds_of_weights_count_as_files(tmp_path: Path) -> None:
    """A folder of another format has weights all the same; their size is not known."""
    (tmp_path / "model.gguf").write_bytes(b"x")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert weights.measure(str(tmp_path)) == Weights(None, (), 2)
