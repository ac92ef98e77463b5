"""A request's row in the engine's table of places, long enough for what a step reserves near the end of the context.

DFLASH reserves two passes ahead, but with pages of one token rows have room for one: what does not fit is lost, and the engine
ends itself of the leak. A tree's pass is wide, so that it would happen often. Guarded by `version`.
"""

from __future__ import annotations

from collections.abc import Callable

from sglang_ddtree.algorithm import NAME

TARGET = "sglang.srt.mem_cache.allocation_sizing.get_req_to_token_extra_context_len"


def register() -> None:
    """Have rows of DDTREE hold what is reserved, and those of others be as they were."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    def long_enough(original: Callable[[], int]) -> int:
        from sglang.srt.mem_cache import allocation_sizing  # type: ignore[import-not-found]  # the engine's own
        from sglang.srt.runtime_context import get_spec  # type: ignore[import-not-found]  # the engine's own

        if get_spec().speculative_algorithm != NAME:
            return original()
        reserved = allocation_sizing.get_alloc_reserve_per_decode() + allocation_sizing.get_alloc_page_size() - 1
        return max(original(), int(reserved))

    HookRegistry.register(TARGET, long_enough, HookType.AROUND)
