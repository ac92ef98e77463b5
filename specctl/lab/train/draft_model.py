"""The DFlash drafter in torch: trained here, and the reference that the numpy drafter is held to."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from specctl.lab.config import DraftConfig
from specctl.lab.train.target_model import Layer, initialise, rotary


class Draft(nn.Module):  # type: ignore[misc,unused-ignore]  # Any where torch is not installed
    """Fills blocks of masks from an anchor and the target's features; embedding and head stay the target's."""

    def __init__(self, config: DraftConfig) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(len(config.target_layer_ids) * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.block_embed = nn.Embedding(config.block_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        initialise(self, config.num_hidden_layers)

    def forward(self, features: Tensor, embedded: Tensor, anchors: Tensor) -> Tensor:
        """Return hidden states [rows, anchors, block, hidden] of blocks that begin at positions `anchors`.

        `features` is [rows, positions, layers, hidden], `embedded` the anchors' embeddings [rows, anchors, hidden].
        """
        config, (rows, count) = self.config, anchors.shape
        length, size = features.shape[1], config.block_size
        context = self.hidden_norm(self.fc(_unit(features, config.rms_norm_eps).flatten(2)))
        blocks = self.block_embed.weight.expand(rows, count, size, -1).clone()
        blocks[:, :, 0] += embedded
        x = blocks.flatten(1, 2)
        far = rotary(torch.arange(length), config.head_dim, config.rope_theta)
        near = rotary((anchors[:, :, None] + torch.arange(size)).flatten(1), config.head_dim, config.rope_theta)
        cos, sin = (part[:, None] for part in near)
        mask = _mask(anchors, length, size)
        for layer in self.layers:
            normed, attention = layer.input_layernorm(x), layer.self_attn
            old, new = attention.keys_values(context, *far), attention.keys_values(normed, cos, sin)
            keys, values = (torch.cat(pair, dim=2) for pair in zip(old, new, strict=True))
            x = x + attention.attend(attention.queries(normed, cos, sin), keys, values, mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x).unflatten(1, (count, size))


def _unit(features: Tensor, eps: float) -> Tensor:
    """Scale each layer's features to unit root mean square."""
    return features * torch.rsqrt(features.square().mean(-1, keepdim=True) + eps)


def _mask(anchors: Tensor, length: int, size: int) -> Tensor:
    """Let a block see the positions before its anchor and itself; additive, one for all heads."""
    rows, count = anchors.shape
    owner = torch.arange(count).repeat_interleave(size)
    context = torch.arange(length) < anchors.repeat_interleave(size, dim=1)[:, :, None]
    own = (owner[:, None] == owner).expand(rows, -1, -1)
    allowed = torch.cat((context, own), dim=2)[:, None]
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf"))
