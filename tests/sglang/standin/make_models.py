"""Make the two tiny models with which a real SGLang speculates on a CPU: python make_models.py FOLDER, by the engine's interpreter.

FOLDER/target is a random Llama of three layers (vocabulary 512) whose last layer adds nothing, so that a drafter can see the last
hidden state before it is used. FOLDER/draft is a DFlash drafter (block 8) with weights set by hand: it hands that state on, and is
right once in a while. Texts are noise; the wire behaviour is real.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (  # type: ignore[import-not-found,unused-ignore]  # in the engine's environment alone
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

VOCABULARY = 512
HIDDEN = 128
INNER = 256
HEADS = 4
LAYERS = 3
CONTEXT = 2048
BLOCK = 8
BEGIN, END = "<s>", "</s>"
SAMPLE = "hello world the quick brown fox jumps over the lazy dog"
# With so large a factor the drafter's one layer drowns what was there before it.
LOUD = 50.0


def make_target(folder: Path) -> None:
    """Write the target and its tokenizer."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = LlamaForCausalLM(config)
    last = model.model.layers[-1]
    torch.nn.init.zeros_(last.self_attn.o_proj.weight)
    torch.nn.init.zeros_(last.mlp.down_proj.weight)
    model.to(torch.bfloat16).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def _tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[BEGIN, END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([SAMPLE] * 10, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END)


def make_draft(folder: Path) -> None:
    """Write the drafter: attention over equal scores, values and output by unit matrices, no inner layer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_draft_config(), indent=1))
    layer = "layers.0."
    unit = torch.eye(HIDDEN)
    weights = {
        "fc.weight": unit.clone(),
        "hidden_norm.weight": torch.ones(HIDDEN),
        "norm.weight": torch.ones(HIDDEN),
        f"{layer}input_layernorm.weight": torch.ones(HIDDEN),
        f"{layer}post_attention_layernorm.weight": torch.ones(HIDDEN),
        f"{layer}self_attn.q_proj.weight": torch.zeros(HIDDEN, HIDDEN),
        f"{layer}self_attn.k_proj.weight": torch.zeros(HIDDEN, HIDDEN),
        f"{layer}self_attn.v_proj.weight": unit.clone(),
        f"{layer}self_attn.o_proj.weight": unit * LOUD,
        f"{layer}self_attn.q_norm.weight": torch.ones(HIDDEN // HEADS),
        f"{layer}self_attn.k_norm.weight": torch.ones(HIDDEN // HEADS),
        f"{layer}mlp.gate_proj.weight": torch.zeros(INNER, HIDDEN),
        f"{layer}mlp.up_proj.weight": torch.zeros(INNER, HIDDEN),
        f"{layer}mlp.down_proj.weight": torch.zeros(HIDDEN, INNER),
    }
    halves = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in weights.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})


def _draft_config() -> dict[str, object]:
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "dtype": "bfloat16",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HIDDEN // HEADS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": CONTEXT,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "block_size": BLOCK,
        "num_target_layers": LAYERS,
        # The layer before the inert one: its output is what the head reads.
        "dflash_config": {"target_layer_ids": [LAYERS - 2], "mask_token_id": VOCABULARY - 1, "block_size": BLOCK},
    }


def main() -> None:
    """Make both below the folder that the command line names."""
    base = Path(sys.argv[1])
    make_target(base / "target")
    make_draft(base / "draft")


if __name__ == "__main__":
    main()
