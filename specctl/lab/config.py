"""The shapes of the lab's two models, as their `config.json` spells them; built once from outside data and checked then.

Read by the loader, the numpy forwards and the torch models; it must not import numpy or torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from specctl.lab.errors import ModelError

MAX_BLOCK_SIZE = 16
# Added to the mean square of queries and keys before they are made unit vectors.
UNIT_EPS = 1e-6


class _Shape:
    """What both configurations share: reading and writing the JSON object of a model folder."""

    __slots__ = ()
    model_type: ClassVar[str]

    @classmethod
    def parse(cls, document: object, where: str) -> Self:
        """Build the configuration from a parsed `config.json`; raise ModelError naming the key that is wrong."""
        if not isinstance(document, Mapping):
            raise ModelError(f"{where}: expected a JSON object")
        if document.get("model_type") != cls.model_type:
            raise ModelError(f"{where}: model_type is {document.get('model_type')!r}, expected {cls.model_type!r}")
        values: dict[str, object] = {}
        for spec in dataclasses.fields(cls):  # type: ignore[arg-type]  # every subclass is a dataclass
            if spec.name not in document:
                raise ModelError(f"{where}: key {spec.name!r} is missing")
            values[spec.name] = _checked(spec.name, str(spec.type), document[spec.name], where)
        return cls(**values)

    def document(self) -> dict[str, object]:
        """Return the JSON object that `parse` reads back."""
        values = dataclasses.asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        return {"model_type": self.model_type, **values}


def _checked(name: str, kind: str, value: object, where: str) -> object:
    """Return a value of the kind that the field is annotated with, or raise."""
    if kind == "int" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if kind.startswith("tuple") and isinstance(value, list | tuple) and all(isinstance(item, int) for item in value):
        return tuple(value)
    raise ModelError(f"{where}: key {name!r} has the value {value!r}, expected {kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig(_Shape):
    """A decoder of pre-RMSNorm blocks with rotary multi-query attention and a squared-ReLU MLP."""

    model_type: ClassVar[str] = "specctl_lab_target"

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    max_position_embeddings: int
    rope_theta: float
    rms_norm_eps: float
    eos_token_id: int

    def __post_init__(self) -> None:
        """Refuse shapes that the forward cannot run."""
        _refuse_heads(self.num_attention_heads, self.num_key_value_heads, self.head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftConfig(_Shape):
    """A block-diffusion drafter: layers that see a block of masks and the target's features of what came before."""

    model_type: ClassVar[str] = "specctl_lab_dflash"

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    max_position_embeddings: int
    rope_theta: float
    rms_norm_eps: float
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse shapes that the forward cannot run."""
        _refuse_heads(self.num_attention_heads, self.num_key_value_heads, self.head_dim)
        if not 2 <= self.block_size <= MAX_BLOCK_SIZE:
            raise ModelError(f"block_size is {self.block_size}, expected 2 to {MAX_BLOCK_SIZE}")
        if not self.target_layer_ids:
            raise ModelError("target_layer_ids is empty, the drafter needs features of at least one layer")


def _refuse_heads(heads: int, kv_heads: int, head_dim: int) -> None:
    """Raise ModelError unless one key-value head serves all and its width splits into rotary pairs."""
    if heads < 1 or kv_heads != 1:
        raise ModelError(f"num_key_value_heads is {kv_heads} of {heads}, the lab runs multi-query attention (1) only")
    if head_dim < 2 or head_dim % 2:
        raise ModelError(f"head_dim is {head_dim}, expected an even number")
