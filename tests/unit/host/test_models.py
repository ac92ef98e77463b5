"""What a model's folder says: the fields that decide whether it fits, wherever a family keeps them."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from specctl.host import models

LAB = Path(__file__).parents[3] / "specctl" / "lab" / "models"


def test_a_nested_target_and_its_quantisation() -> None:
    """A model of several halves keeps its text model's sizes one level down."""
    found = models.essentials(
        {
            "architectures": ["KimiForConditionalGeneration"],
            "model_type": "kimi",
            "text_config": {"hidden_size": 7168, "vocab_size": 163840, "num_hidden_layers": 61},
            "quantization_config": {"quant_method": "compressed-tensors"},
        }
    )
    assert (found["hidden_size"], found["vocab_size"], found["layers"]) == (7168, 163840, 61)
    assert (found["model_type"], found["quantisation"]) == ("kimi", "compressed-tensors")


def test_a_dflash_drafts_own_part() -> None:
    """Block size, mask token and the target's layers are found in dflash_config too."""
    found = models.essentials(
        {
            "hidden_size": 4096,
            "block_size": 16,
            "num_target_layers": 36,
            "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, "x"]},
        }
    )
    assert (found["block_size"], found["mask_token"], found["target_layers"]) == (16, 151669, 36)
    assert found["target_layer_ids"] == [1, 9, 17]


def test_the_labs_own_models() -> None:
    """The shipped draft is described whole."""
    found = models.describe(str(LAB / "dflash"))
    config = found["config"]
    assert isinstance(config, dict)
    assert (found["there"], found["files"], found["missing_count"]) == (True, 1, 0)
    assert (config["hidden_size"], config["vocab_size"], config["block_size"]) == (64, 1024, 8)


def test_what_is_not_there_or_broken(tmp_path: Path) -> None:
    """No folder is said to be none; a broken or missing config.json is None, and the rest is told."""
    assert models.describe(str(tmp_path / "absent")) == {"path": str(tmp_path / "absent"), "there": False}
    assert models.describe(str(tmp_path))["config"] is None
    (tmp_path / "config.json").write_text("{")
    assert models.describe(str(tmp_path))["config"] is None
    (tmp_path / "config.json").write_text("[]")
    assert models.describe(str(tmp_path))["config"] is None


def test_missing_files_are_named_and_counted(tmp_path: Path) -> None:
    """The first few are named, all are counted."""
    names = {f"layer{number}": f"model-{number}.safetensors" for number in range(9)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    found = models.describe(str(tmp_path))
    assert (found["missing_count"], found["missing"]) == (9, [f"model-{number}.safetensors" for number in range(5)])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*models.NUMBERS, *models.PARTS]), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*models.NUMBERS, *models.PARTS, "architectures", "quantization_config"]), VALUES)
)
def test_any_configuration_is_read(config: dict[str, object]) -> None:
    """Whatever a config.json holds, the fields have their types or are None."""
    found = models.essentials(config)
    assert all(found[name] is None or type(found[name]) is int for name in models.NUMBERS.values())
