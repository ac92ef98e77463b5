"""A change to the engine's behaviour that a GPU needs: verify graphs are captured with a mask.

SGLang leaves the mask out of a chain's graphs, since causal attention does for a chain. Guarded by `version`.
"""

from __future__ import annotations

from collections.abc import Callable

from sglang_ddtree.algorithm import NAME

TARGET = "sglang.srt.speculative.dflash_utils.resolve_dflash_verify_mask_policy"


def register() -> None:
    """Have graphs of DDTREE captured with a mask, and those of others as they were."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    def with_mask(original: Callable[..., tuple[str, bool]], *values: object, **named: object) -> tuple[str, bool]:
        from sglang.srt.runtime_context import get_spec  # type: ignore[import-not-found]  # the engine's own

        backend, mask = original(*values, **named)
        return backend, mask or get_spec().speculative_algorithm == NAME

    HookRegistry.register(TARGET, with_mask, HookType.AROUND)
