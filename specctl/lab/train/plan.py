"""The recipe: every number that shapes the shipped models, so that a run is its seed and this file."""

from __future__ import annotations

from dataclasses import dataclass, field

from specctl.lab.config import DraftConfig, TargetConfig

VOCAB_SIZE = 1024
END_OF_TEXT = "<|endoftext|>"
MASK = "<|mask|>"
SPECIAL_TOKENS = (END_OF_TEXT, MASK)
END_OF_TEXT_ID = 0
MASK_ID = 1

TARGET = TargetConfig(
    vocab_size=VOCAB_SIZE,
    hidden_size=64,
    num_hidden_layers=16,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    intermediate_size=256,
    max_position_embeddings=2048,
    rope_theta=10000.0,
    rms_norm_eps=1e-5,
    eos_token_id=END_OF_TEXT_ID,
)

DRAFT = DraftConfig(
    vocab_size=VOCAB_SIZE,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=64,
    intermediate_size=768,
    max_position_embeddings=2048,
    rope_theta=10000.0,
    rms_norm_eps=1e-5,
    block_size=8,
    mask_token_id=MASK_ID,
    target_layer_ids=(1, 5, 9, 13, 15),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How one model is optimised: steps, batch and learning rates (Muon for matrices, AdamW for the rest)."""

    steps: int
    batch: int
    muon_lr: float
    adam_lr: float
    warmup_steps: int
    decay_from: float

    def factor(self, step: int) -> float:
        """Return what the learning rates are multiplied by: warm-up, plateau, then linear decay to a twentieth."""
        warm = min(1.0, (step + 1) / self.warmup_steps)
        done = step / self.steps
        left = 1.0 if done < self.decay_from else (1.0 - done) / (1.0 - self.decay_from)
        return warm * max(left, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The whole run; `tiny` shrinks it for a test of the plumbing."""

    seed: int = 7
    target: TargetConfig = TARGET
    draft: DraftConfig = DRAFT
    sequence: int = 256
    target_schedule: Schedule = field(
        default_factory=lambda: Schedule(
            steps=2000, batch=8, muon_lr=0.02, adam_lr=0.004, warmup_steps=40, decay_from=0.4
        )
    )
    generated_sequences: int = 5120
    generated_length: int = 192
    prompt_lengths: tuple[int, ...] = (32, 64, 96, 128)
    generation_batch: int = 128
    draft_schedule: Schedule = field(
        default_factory=lambda: Schedule(
            steps=10000, batch=16, muon_lr=0.02, adam_lr=0.004, warmup_steps=100, decay_from=0.4
        )
    )
    anchors: int = 8
    validation_sequences: int = 64
