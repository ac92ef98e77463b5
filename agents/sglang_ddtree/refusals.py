"""What the plugin does not do, said before anything is served or, of a request, before it runs.

A tree that would be wrong without a word is worse than none: what was not tested, or what cannot be exact, is refused here. What is
asked of the engine is read without a default: a name that another release gave up shall end the server, not the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

# A mask of a tree is read by these as the plugin writes it; others were not tried or need another one.
BACKENDS = ("triton", "torch_native")


class RefusedError(ValueError):
    """A server or a model that the plugin does not serve."""


def check_arguments(arguments: object) -> None:
    """Refuse a server's arguments, with all reasons at once."""
    reasons = list(_reasons(arguments))
    if reasons:
        raise RefusedError("DDTREE does not run so: " + "; ".join(reasons))


def _reasons(arguments: object) -> Iterator[str]:
    def given(name: str) -> object:
        return getattr(arguments, name)

    for flag in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        backend = given(flag)
        if backend is not None and backend not in BACKENDS:
            yield f"--{flag.replace('_', '-')} {backend} is not one of {', '.join(BACKENDS)}, which read a tree's mask"
    for flag in ("speculative_accept_threshold_single", "speculative_accept_threshold_acc"):
        if given(flag) not in (None, 1.0):
            yield f"--{flag.replace('_', '-')} {given(flag)}: a draft is the target's token or it is not"
    for flag, why in _UNSUPPORTED.items():
        if given(flag):
            yield f"--{flag.replace('_', '-')}: {why}"
    for flag in ("attn_dp_size", "dp_size", "dcp_size", "attn_cp_size", "pp_size"):
        if _above_one(given(flag)):
            yield f"--{flag.replace('_', '-')} {given(flag)}: tensor parallelism is the only kind that was tried"
    if given("disaggregation_mode") not in (None, "null"):
        yield f"--disaggregation-mode {given('disaggregation_mode')}: prefill and decode on two servers were not tried"


_UNSUPPORTED = {
    "speculative_draft_window_size": "a draft with a window keeps a cache of its own, which a tree does not fill",
    "speculative_use_block_verification": "a tree is verified node by node",
    "speculative_adaptive": "the width is the plugin's own to choose",
    "enable_lora": "adapters were not tried with a tree",
    "enable_unified_memory": "the pool moves pages under the tree",
    "enable_hierarchical_cache": "it was not tried with a tree",
    "enable_lmcache": "it was not tried with a tree",
    "enable_flexkv": "it was not tried with a tree",
    "enable_pdmux": "each of its streams has attention of its own, which knows one width",
    "enable_two_batch_overlap": "it splits the batch that a tree's mask spans",
    "enable_mixed_chunk": "a prefill and a tree in one pass were not tried",
}


def _above_one(value: object) -> bool:
    return isinstance(value, int) and value > 1


def check_backends(chosen: Iterable[object]) -> None:
    """Refuse attention backends that were chosen where nobody said which: by then the engine has decided."""
    for backend in chosen:
        if backend not in BACKENDS:
            raise RefusedError(
                f"DDTREE: the engine chose the attention backend {backend}, which does not read a tree's mask; "
                f"say --attention-backend {BACKENDS[0]}"
            )


class Runner(Protocol):
    """A model runner of the engine's, as far as it is asked here; without a window its size is None."""

    is_hybrid_swa: bool
    sliding_window_size: int | None
    model: object


def check_models(target: Runner, draft: Runner, recurrent: object) -> None:
    """Refuse models for whose layers a tree would be wrong; `recurrent`: what the engine knows of such layers of the target."""
    if target.is_hybrid_swa or (target.sliding_window_size or 0) > 0:
        raise RefusedError("DDTREE: the target has layers with a sliding window, whose edge a tree would move")
    if recurrent is not None:
        raise RefusedError("DDTREE: the target has recurrent layers, whose state a tree would mix up")
    model = draft.model
    if getattr(model, "is_nemotron_35_draft", False):
        raise RefusedError(
            "DDTREE: the draft has embeddings of its own (Nemotron 3.5), and would be shown the target's"
        )
    for part, name in (("candidate_selector", "DFlash2"), ("lilicorr", "LiLiCorr"), ("prefix_gru", "Domino")):
        if getattr(model, part, None) is not None:
            raise RefusedError(
                f"DDTREE: the draft has a head of {name}, which does not give each depth one distribution"
            )


def check_defaults(defaults: Mapping[str, object]) -> None:
    """Refuse a target that gives requests which say nothing a parameter that is refused: by `defaults`, its generation_config.json.

    Probes ask without it, so that such a server looks well, and refuses every chat.
    """
    for name, neutral in _NEUTRAL.items():
        value = defaults.get(name)
        if value not in (neutral, None):
            raise RefusedError(
                f"DDTREE: the target's generation_config.json gives every chat {name}={value}, which would not be exact on a tree; "
                "say --sampling-defaults openai, or take it out of that file"
            )


def check_attention(backend: object) -> None:
    """Refuse an attention backend whose kernels for a verify pass take every pass for a chain's and read no mask (AMD's gfx95)."""
    parts = (backend, getattr(backend, "prefill_backend", None), getattr(backend, "decode_backend", None))
    for flag in ("use_verify_splitkv", "use_verify_shared_kv"):
        if any(getattr(part, flag, False) for part in parts):
            raise RefusedError(
                f"DDTREE: the attention's kernel for verify passes ({flag}) reads no mask; "
                "SGLANG_ENABLE_SPLITKV_VERIFY=0 turns it off"
            )


def check_hooks(hooked: Mapping[str, Sequence[tuple[object, object, object]]], found: Collection[str]) -> None:
    """Refuse an engine in which a place that the plugin hooks was not found: the engine itself only logs that.

    `hooked` are the engine's hooks by place, each with its function second; `found` are the places that there are.
    """
    own = __name__.rpartition(".")[0]
    lost = [
        place
        for place, hooks in hooked.items()
        if place not in found and any(getattr(hook, "__module__", "").startswith(own) for _, hook, _ in hooks)
    ]
    if lost:
        raise RefusedError(f"DDTREE: this engine has no {', '.join(sorted(lost))}")


def why_not(request: object) -> str | None:
    """Return why a request is not served with a tree, or None. A penalty changes with each token of a path."""
    parameters = request.sampling_params  # type: ignore[attr-defined]  # the engine's request
    for name, neutral in _NEUTRAL.items():
        value = getattr(parameters, name)
        if value not in (neutral, None):
            return f"DDTREE does not support {name}={value}: it would not be exact on a tree"
    if request.custom_logit_processor:  # type: ignore[attr-defined]  # the engine's request
        return "DDTREE does not support custom logit processors: they would see one path of a tree"
    if request.return_hidden_states:  # type: ignore[attr-defined]  # the engine's request
        return "DDTREE does not support return_hidden_states"
    if request.return_sampling_mask:  # type: ignore[attr-defined]  # the engine's request
        return "DDTREE does not support sampling masks"
    return None


_NEUTRAL: dict[str, float] = {
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
    "min_new_tokens": 0,
}


def register() -> None:
    """Have the scheduler ask `why_not` where it asks what DFLASH refuses."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    def ask(original: Callable[..., str | None], request: object, *rest: object, **named: object) -> str | None:
        return original(request, *rest, **named) or why_not(request)

    HookRegistry.register("sglang.srt.speculative.dflash_utils.validate_dflash_request", ask, HookType.AROUND)
