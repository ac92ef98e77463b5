"""What the plugin does not do is refused by name, before it could be done wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from sglang_ddtree import refusals
from sglang_ddtree.refusals import RefusedError


def arguments(**given: object) -> SimpleNamespace:
    """Return a server's arguments as they are where nobody says anything."""
    quiet: dict[str, object] = dict.fromkeys(refusals._UNSUPPORTED, False)
    quiet |= dict.fromkeys(("prefill_attention_backend", "decode_attention_backend", "enable_lora"))
    quiet |= dict.fromkeys(("speculative_accept_threshold_single", "speculative_accept_threshold_acc"), 1.0)
    quiet |= dict.fromkeys(("attn_dp_size", "dp_size", "dcp_size", "attn_cp_size", "pp_size"), 1)
    quiet |= {"attention_backend": "triton", "disaggregation_mode": "null"}
    return SimpleNamespace(**(quiet | given))


@dataclass(kw_only=True)
class Runner:
    """A runner of a model, as far as it is asked."""

    is_hybrid_swa: bool = False
    sliding_window_size: int | None = None
    model: object = None


def drafting(**given: object) -> Runner:
    """Return a draft's runner."""
    return Runner(model=SimpleNamespace(**given))


def request(**given: object) -> SimpleNamespace:
    """Return a request; what begins with an underscore is its own, the rest its sampling parameters."""
    own: dict[str, object] = {
        "custom_logit_processor": None,
        "return_hidden_states": False,
        "return_sampling_mask": False,
    }
    own |= {name[1:]: value for name, value in given.items() if name.startswith("_")}
    parameters: dict[str, object] = dict(refusals._NEUTRAL)
    parameters |= {name: value for name, value in given.items() if not name.startswith("_")}
    return SimpleNamespace(sampling_params=SimpleNamespace(**parameters), **own)


def test_usual_server_is_served() -> None:
    """A server with triton, without anything special, is served; so is one that leaves the backend open."""
    refusals.check_arguments(arguments())
    refusals.check_arguments(arguments(attention_backend=None, prefill_attention_backend="triton"))
    refusals.check_models(Runner(), drafting(candidate_selector=None, is_nemotron_35_draft=False), None)
    refusals.check_models(Runner(sliding_window_size=-1), drafting(), None)
    refusals.check_attention(SimpleNamespace(use_verify_splitkv=False, use_verify_shared_kv=False))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"attention_backend": "fa3"},
            "--attention-backend fa3 is not one of triton, torch_native, which read a tree's mask",
        ),
        ({"decode_attention_backend": "flashinfer"}, "--decode-attention-backend flashinfer is not one of"),
        ({"speculative_draft_window_size": 512}, "--speculative-draft-window-size: a draft with a window"),
        (
            {"speculative_accept_threshold_acc": 0.9},
            "--speculative-accept-threshold-acc 0.9: a draft is the target's token",
        ),
        ({"enable_lora": True}, "--enable-lora: adapters were not tried"),
        ({"dp_size": 2}, "--dp-size 2: tensor parallelism is the only kind"),
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode decode: "),
        ({"enable_pdmux": True}, "--enable-pdmux: each of its streams"),
    ],
)
def test_arguments_are_refused_by_name(given: dict[str, object], reason: str) -> None:
    """An argument that a tree does not go with is named with the reason."""
    with pytest.raises(RefusedError) as refused:
        refusals.check_arguments(arguments(**given))
    assert reason in str(refused.value)


def test_backend_that_the_engine_chose_is_refused() -> None:
    """Where nobody named a backend the engine's own choice is checked, and the message says what to write."""
    refusals.check_backends(("triton", "torch_native"))
    with pytest.raises(RefusedError) as refused:
        refusals.check_backends(("triton", "fa3"))
    assert str(refused.value) == (
        "DDTREE: the engine chose the attention backend fa3, which does not read a tree's mask; say --attention-backend triton"
    )


def test_all_reasons_come_at_once() -> None:
    """Two arguments that do not go give one message with both."""
    with pytest.raises(RefusedError) as refused:
        refusals.check_arguments(arguments(attention_backend="fa3", enable_lora=True))
    assert str(refused.value).count("; ") == 1


@pytest.mark.parametrize(
    ("target", "draft", "recurrent", "reason"),
    [
        (Runner(is_hybrid_swa=True), drafting(), None, "sliding window"),
        (Runner(sliding_window_size=4096), drafting(), None, "sliding window"),
        (Runner(), drafting(), SimpleNamespace(), "recurrent layers"),
        (Runner(), drafting(candidate_selector=object()), None, "DFlash2"),
        (Runner(), drafting(lilicorr=object()), None, "LiLiCorr"),
        (Runner(), drafting(prefix_gru=object()), None, "Domino"),
        (Runner(), drafting(is_nemotron_35_draft=True), None, "embeddings of its own"),
    ],
)
def test_models_are_refused_by_kind(target: Runner, draft: Runner, recurrent: object, reason: str) -> None:
    """A target whose layers a tree would confuse, a draft without one distribution a depth, or with own embeddings: refused."""
    with pytest.raises(RefusedError, match=reason):
        refusals.check_models(target, draft, recurrent)


@pytest.mark.parametrize("flag", ["use_verify_splitkv", "use_verify_shared_kv"])
def test_kernels_that_read_no_mask_are_refused(flag: str) -> None:
    """A kernel that takes every verify pass for a chain's is refused, be it that of one of two backends."""
    for backend in (
        SimpleNamespace(**{flag: True}),
        SimpleNamespace(prefill_backend=SimpleNamespace(**{flag: True}), decode_backend=SimpleNamespace()),
    ):
        with pytest.raises(RefusedError, match=rf"\({flag}\) reads no mask; SGLANG_ENABLE_SPLITKV_VERIFY=0"):
            refusals.check_attention(backend)


def test_target_whose_own_defaults_are_refused_is_refused() -> None:
    """A repetition penalty in the model's own defaults would have every chat refused: the server is, and is told what to do."""
    refusals.check_defaults({"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.0})
    with pytest.raises(RefusedError) as refused:
        refusals.check_defaults({"temperature": 0.7, "repetition_penalty": 1.05})
    assert str(refused.value) == (
        "DDTREE: the target's generation_config.json gives every chat repetition_penalty=1.05, which would not be exact on a tree; "
        "say --sampling-defaults openai, or take it out of that file"
    )


@pytest.mark.parametrize("gone", ["enable_mixed_chunk", "attention_backend", "pp_size"])
def test_engine_that_lacks_a_name_is_not_taken_for_one_that_says_no(gone: str) -> None:
    """What the engine no longer tells ends the server: it would not be refused any more."""
    lacking = arguments()
    delattr(lacking, gone)
    with pytest.raises(AttributeError, match=gone):
        refusals.check_arguments(lacking)
    with pytest.raises(AttributeError):
        refusals.why_not(SimpleNamespace(sampling_params=SimpleNamespace()))


def test_engine_without_a_place_to_hook_is_refused() -> None:
    """A hook of the plugin that found no place is named; those that did, and other plugins', are not."""
    ours = ("around", refusals.why_not, None)
    theirs = ("around", len, None)
    hooked: dict[str, list[tuple[object, object, object]]] = {}
    hooked |= {"engine.there": [ours], "engine.gone": [theirs, ours], "engine.unknown": [theirs]}
    refusals.check_hooks(hooked, {"engine.there", "engine.gone"})
    with pytest.raises(RefusedError) as refused:
        refusals.check_hooks(hooked, {"engine.there"})
    assert str(refused.value) == "DDTREE: this engine has no engine.gone"


def test_usual_requests_are_served() -> None:
    """Sampling, bias, stops and grammars are served; a penalty that does nothing is none."""
    neutral = {"frequency_penalty": 0.0, "presence_penalty": 0, "repetition_penalty": 1.0, "min_new_tokens": 0}
    assert refusals.why_not(request(temperature=0.7, regex="a+", logit_bias={"3": 1.0}, **neutral)) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"frequency_penalty": 0.1}, "DDTREE does not support frequency_penalty=0.1: it would not be exact on a tree"),
        (
            {"repetition_penalty": 1.1},
            "DDTREE does not support repetition_penalty=1.1: it would not be exact on a tree",
        ),
        ({"min_new_tokens": 1}, "DDTREE does not support min_new_tokens=1: it would not be exact on a tree"),
        (
            {"_custom_logit_processor": "code"},
            "DDTREE does not support custom logit processors: they would see one path of a tree",
        ),
        ({"_return_hidden_states": True}, "DDTREE does not support return_hidden_states"),
        ({"_return_sampling_mask": True}, "DDTREE does not support sampling masks"),
    ],
)
def test_requests_are_refused_by_reason(given: dict[str, object], reason: str) -> None:
    """What changes with each token of a path is refused for the request alone, with its reason."""
    assert refusals.why_not(request(**given)) == reason
