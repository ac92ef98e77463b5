"""The target in torch: trained here, and the reference that the numpy forward is held to."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from specctl.lab.config import UNIT_EPS, DraftConfig, TargetConfig

INIT_STD = 0.02
FIRST_GAIN = 1.5


def rotary(positions: Tensor, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of each position for the two halves of a head."""
    frequencies = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angles = positions.to(torch.float32)[..., None] * frequencies
    return angles.cos(), angles.sin()


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each head's two halves by the position's angles; `heads` is [..., positions, head_dim]."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Attention(nn.Module):  # type: ignore[misc,unused-ignore]  # Any where torch is not installed
    """Rotary multi-query attention; queries and keys are unit vectors, so scores are bounded by each head's gain."""

    def __init__(self, config: TargetConfig | DraftConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, config.hidden_size, bias=False)
        self.q_gain = nn.Parameter(torch.full((self.heads,), FIRST_GAIN))

    def queries(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return rotated queries [batch, heads, tokens, head_dim]."""
        unit = functional.rms_norm(self._split(self.q_proj(x)), (self.head_dim,), eps=UNIT_EPS)
        return rotate(unit * self.q_gain[:, None, None], cos, sin)

    def keys_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return rotated keys and plain values [batch, 1, tokens, head_dim]."""
        unit = functional.rms_norm(self._split(self.k_proj(x)), (self.head_dim,), eps=UNIT_EPS)
        return rotate(unit, cos, sin), self._split(self.v_proj(x))

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Mix values by attention; no mask means causal over equal lengths."""
        keys, values = (part.expand(-1, self.heads, -1, -1) for part in (keys, values))
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class Mlp(nn.Module):  # type: ignore[misc,unused-ignore]  # Any where torch is not installed
    """Two matrices with a squared ReLU between them."""

    def __init__(self, config: TargetConfig | DraftConfig) -> None:
        super().__init__()
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the MLP to each token."""
        return self.down_proj(functional.relu(self.up_proj(x)).square())


class Layer(nn.Module):  # type: ignore[misc,unused-ignore]  # Any where torch is not installed
    """One pre-norm block."""

    def __init__(self, config: TargetConfig | DraftConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = Mlp(config)


class Target(nn.Module):  # type: ignore[misc,unused-ignore]  # Any where torch is not installed
    """A causal language model with untied embedding and head; names follow Hugging Face's layout."""

    def __init__(self, config: TargetConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        initialise(self, config.num_hidden_layers)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the final hidden states, normed, of a batch of whole sequences."""
        return self.norm(self.trace(tokens)[-1])

    def trace(self, tokens: Tensor) -> list[Tensor]:
        """Return each layer's output over a batch of whole sequences."""
        cos, sin = rotary(torch.arange(tokens.shape[1]), self.config.head_dim, self.config.rope_theta)
        x = self.embed_tokens(tokens)
        outputs = []
        for layer in self.layers:
            normed = layer.input_layernorm(x)
            keys, values = layer.self_attn.keys_values(normed, cos, sin)
            x = x + layer.self_attn.attend(layer.self_attn.queries(normed, cos, sin), keys, values, None)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
            outputs.append(x)
        return outputs


def initialise(model: nn.Module, layers: int) -> None:
    """Draw small weights; projections back into the stream are scaled down by depth."""
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        scale = (2 * layers) ** -0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
        nn.init.normal_(parameter, std=INIT_STD * scale)
