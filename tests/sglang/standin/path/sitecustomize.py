"""Lets the unedited SGLang 0.5.23 decode with DFLASH on a CPU; Python imports this file by its name when a process starts.

DFLASH is refused on a CPU and calls a few functions that exist for GPUs alone. What is changed here, in the running process, is the
refusal and those functions; the speculation itself, its counters, logs and checks are the engine's own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

BACKEND = "torch_native"
# A test's wish: the engine says of itself that it is of this version.
CLAIMED_VERSION = os.environ.get("STANDIN_SGLANG_VERSION")
if CLAIMED_VERSION:
    sys.modules["sglang.version"] = ModuleType("sglang.version")
    vars(sys.modules["sglang.version"])["__version__"] = CLAIMED_VERSION


def allow_backend(choices: ModuleType) -> None:
    """Let a draft use torch's own attention."""
    if BACKEND not in choices.DRAFT_ATTENTION_BACKEND_CHOICES:
        choices.DRAFT_ATTENTION_BACKEND_CHOICES.append(BACKEND)


class Willing:
    """The engine's platform, as one that says of itself that it can decode with DFLASH."""

    def __init__(self, platform: object) -> None:
        self._platform = platform

    def __getattr__(self, name: str) -> object:
        return getattr(self._platform, name)

    def is_out_of_tree(self) -> bool:
        """Claim to be a plug-in, which is asked instead of being looked up."""
        return True

    def supports_speculative_algorithm(self, _algorithm: str) -> bool:
        """Claim to know every algorithm."""
        return True

    def supports_speculative_draft_attention_backend(self, _algorithm: str, backend: str) -> bool:
        """Claim torch's own attention alone."""
        return backend == BACKEND

    def get_default_speculative_draft_attention_backend(self, _algorithm: str) -> str:
        """Name it."""
        return BACKEND


def allow_device(hook: ModuleType) -> None:
    """Let the argument check of DFLASH, and nothing else, see a willing platform."""
    check = hook._handle_dflash

    def willingly(arguments: object) -> object:
        platform = hook.current_platform
        vars(hook).update(current_platform=Willing(platform))
        try:
            return check(arguments)
        finally:
            vars(hook).update(current_platform=platform)

    vars(hook).update(_handle_dflash=willingly)


def unfuse_rotation(models: ModuleType) -> None:
    """Let the drafter rotate by plain operations, not by its kernel."""
    prepare = models.DFlashAttention.__init__

    def plainly(self: object, *values: object, **named: object) -> None:
        prepare(self, *values, **named)
        self.use_table_qk_norm_rope = False  # type: ignore[attr-defined]  # the engine's class

    models.DFlashAttention.__init__ = plainly


def ignore_streams(_worker: ModuleType) -> None:
    """Let tensors of a CPU be told of a stream, which they have none of."""
    import torch

    torch.Tensor.record_stream = lambda _tensor, _stream: None


def store_in_torch(pools: ModuleType) -> None:
    """Store the keys and values of accepted tokens by plain indexing; leave out the warm-up of a copy that only trees need."""
    import torch

    def store(self, layer, places, accepted, keys, values, *scales, **_unused):  # type: ignore[no-untyped-def]  # the engine's method
        rows = torch.arange(places.shape[1]).unsqueeze(0) < accepted.unsqueeze(1)
        kept = rows.flatten()
        where = pools.KVWriteLoc(places.flatten()[kept], physical=True)
        self.set_kv_buffer(layer, where, keys[kept], values[kept], *scales)

    pools.MHATokenToKVPool.set_kv_buffer_prefix_valid = store
    pools.MHATokenToKVPool._init_kv_copy_and_warmup = lambda _pool: None


def note_places_in_torch(allocation: ModuleType) -> None:
    """Note by plain indexing at which places of the cache a request's coming tokens will lie."""

    def note(requests, table, begins, ends, places, _width, *_rest):  # type: ignore[no-untyped-def]  # the engine's tensors
        done = 0
        for request, begin, end in zip(requests.tolist(), begins.tolist(), ends.tolist(), strict=True):
            table[request, begin:end] = places[done : done + end - begin].to(table.dtype)
            done += end - begin

    vars(allocation).update(assign_req_to_token_pool_cpu=note)


def find_places_in_torch(locations: ModuleType) -> None:
    """Find them again in the same way."""

    def find(requests, table, begins, ends, places, _width):  # type: ignore[no-untyped-def]  # the engine's tensors
        done = 0
        for request, begin, end in zip(requests.tolist(), begins.tolist(), ends.tolist(), strict=True):
            places[done : done + end - begin] = table[request, begin:end].to(places.dtype)
            done += end - begin

    vars(locations).update(assign_extend_cache_locs_cpu=find)


def verify_in_torch(attention: ModuleType) -> None:
    """Give torch's own attention the step that checks a block of drafts against what is in the cache."""
    extend = attention.TorchNativeAttnBackend.forward_extend

    def forward_extend(self, q, k, v, layer, batch, save_kv_cache=True):  # type: ignore[no-untyped-def]  # the engine's method
        if not batch.forward_mode.is_target_verify():
            return extend(self, q, k, v, layer, batch, save_kv_cache)
        if save_kv_cache and k is not None:
            where = attention.KVWriteLoc(batch.out_cache_loc, self.swa_out_cache_loc)
            self.token_to_kv_pool.set_kv_buffer(layer, where, k, v)
        return attend_to_blocks(self, q, layer, batch)  # type: ignore[no-untyped-call]  # the engine's objects

    attention.TorchNativeAttnBackend.forward_extend = forward_extend


def attend_to_blocks(backend, q, layer, batch):  # type: ignore[no-untyped-def]  # the engine's objects
    """Attend from every request's block to its past and to the block itself: as the batch's mask says, else causally.

    A layer that sees the whole block has neither. The mask is flat: for each request a row a token, its past and the block.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    requests = batch.req_pool_indices.tolist()
    size = q.shape[0] // len(requests)
    blocks = q.view(len(requests), size, layer.tp_q_head_num, layer.qk_head_dim)
    result = torch.empty_like(blocks)
    keys = backend.token_to_kv_pool.get_key_buffer(layer.layer_id)
    values = backend.token_to_kv_pool.get_value_buffer(layer.layer_id)
    causal = not str(getattr(layer.attn_type, "value", layer.attn_type)).lower().startswith("encoder")
    mask = batch.spec_info.custom_mask if causal else None
    read = 0
    for row, (request, length) in enumerate(zip(requests, batch.seq_lens.tolist(), strict=True)):
        past = backend.req_to_token_pool.req_to_token[request, :length].long()
        places = torch.cat([past, batch.out_cache_loc[row * size : (row + 1) * size].long()])
        seen = torch.ones(size, length + size, dtype=torch.bool)
        if mask is not None:
            seen = mask[read : read + seen.numel()].view(seen.shape)
            read += seen.numel()
        elif causal:
            seen[:, length:] = torch.tril(seen[:, length:])
        attended = scaled_dot_product_attention(
            blocks[row].transpose(0, 1).unsqueeze(0),
            keys[places].transpose(0, 1).unsqueeze(0).to(q.dtype),
            values[places].transpose(0, 1).unsqueeze(0).to(q.dtype),
            attn_mask=seen,
            scale=layer.scaling,
            enable_gqa=layer.tp_q_head_num != layer.tp_k_head_num,
        )
        result[row] = attended.squeeze(0).transpose(0, 1)
    return result.view(q.shape[0], -1)


CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "sglang.srt.arg_groups.choices": allow_backend,
    "sglang.srt.arg_groups.speculative_hook": allow_device,
    "sglang.srt.models.dflash": unfuse_rotation,
    "sglang.srt.speculative.dflash_worker_v2": ignore_streams,
    "sglang.srt.mem_cache.memory_pool": store_in_torch,
    "sglang.srt.mem_cache.allocation": note_places_in_torch,
    "sglang.kernels.ops.speculative.cache_locs": find_places_in_torch,
    "sglang.srt.layers.attention.torch_native_backend": verify_in_torch,
}


class Changed(Loader):
    """Loads a module as it is and then makes its change."""

    def __init__(self, loader: Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the real loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then change it."""
        self._loader.exec_module(module)
        self._change(module)


class Changes(MetaPathFinder):
    """Finds the modules to be changed; each is looked up by the real finders."""

    def __init__(self) -> None:
        self._looking: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for a module that is to be changed, once."""
        if fullname not in CHANGES or fullname in self._looking:
            return None
        self._looking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = Changed(spec.loader, CHANGES[fullname])
        return spec


sys.meta_path.insert(0, Changes())
