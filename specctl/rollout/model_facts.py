"""What a host says of a model's folder: its weights' files and the fields of config.json that decide whether it fits; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.rollout import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The essentials of a config.json; None: it does not say. The last four speak of a draft."""

    hidden_size: int | None = None
    vocab_size: int | None = None
    layers: int | None = None
    max_positions: int | None = None
    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    quantisation: str | None = None
    block_size: int | None = None
    target_layer_ids: tuple[int, ...] | None = None
    target_layers: int | None = None
    mask_token: int | None = None

    @classmethod
    def from_wire(cls, fields: Mapping[str, object]) -> ModelConfig:
        """Build it from the host's answer."""
        ids = fields.get("target_layer_ids")
        return cls(
            hidden_size=reading.whole(fields.get("hidden_size")),
            vocab_size=reading.whole(fields.get("vocab_size")),
            layers=reading.whole(fields.get("layers")),
            max_positions=reading.whole(fields.get("max_positions")),
            architectures=reading.texts(fields.get("architectures")),
            model_type=reading.text(fields.get("model_type")),
            quantisation=reading.text(fields.get("quantisation")),
            block_size=reading.whole(fields.get("block_size")),
            target_layer_ids=reading.wholes(ids) if isinstance(ids, list) else None,
            target_layers=reading.whole(fields.get("target_layers")),
            mask_token=reading.whole(fields.get("mask_token")),
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        ids = self.target_layer_ids
        return {
            "hidden_size": self.hidden_size,
            "vocab_size": self.vocab_size,
            "layers": self.layers,
            "max_positions": self.max_positions,
            "architectures": list(self.architectures),
            "model_type": self.model_type,
            "quantisation": self.quantisation,
            "block_size": self.block_size,
            "target_layer_ids": None if ids is None else list(ids),
            "target_layers": self.target_layers,
            "mask_token": self.mask_token,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model's folder on a host. `missing` names some of the `missing_count` files that its index names and that are not there."""

    path: str
    there: bool | None = None
    size_bytes: int | None = None
    files: int | None = None
    missing: tuple[str, ...] = ()
    missing_count: int = 0
    config: ModelConfig | None = None

    @classmethod
    def from_wire(cls, value: object) -> ModelFacts | None:
        """Build it from the host's answer; None where the host said nothing."""
        fields = reading.mapping(value)
        path = reading.text(fields.get("path"))
        if path is None:
            return None
        config = fields.get("config")
        return cls(
            path=path,
            there=reading.claim(fields.get("there")),
            size_bytes=reading.whole(fields.get("size_bytes")),
            files=reading.whole(fields.get("files")),
            missing=reading.texts(fields.get("missing")),
            missing_count=reading.whole(fields.get("missing_count")) or 0,
            config=ModelConfig.from_wire(config) if isinstance(config, Mapping) else None,
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "path": self.path,
            "there": self.there,
            "size_bytes": self.size_bytes,
            "files": self.files,
            "missing": list(self.missing),
            "missing_count": self.missing_count,
            "config": self.config.as_wire() if self.config else None,
        }
