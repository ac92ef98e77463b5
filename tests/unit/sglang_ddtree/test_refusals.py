"""What the plugin does not do is refused by name, before it could be done wrongly."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sglang_ddtree import refusals
from sglang_ddtree.refusals import RefusedError


def arguments(**given: object) -> SimpleNamespace:
    """Return a server's arguments as they are where nobody says anything."""
    quiet = {
        "attention_backend": "triton",
        "dp_size": 1,
        "pp_size": 1,
        "disaggregation_mode": "null",
        "enable_lora": None,
    }
    return SimpleNamespace(**(quiet | given))


def models(target: dict[str, object] | None = None, draft: dict[str, object] | None = None) -> tuple[object, object]:
    """Return runners of a target and a draft."""
    runner = SimpleNamespace(**({"model_config": SimpleNamespace(is_hybrid_swa=False)} | (target or {})))
    return runner, SimpleNamespace(model=SimpleNamespace(**(draft or {})))


def request(**given: object) -> SimpleNamespace:
    """Return a request; what begins with an underscore is its own, the rest its sampling parameters."""
    own = {name[1:]: value for name, value in given.items() if name.startswith("_")}
    parameters = {name: value for name, value in given.items() if not name.startswith("_")}
    return SimpleNamespace(sampling_params=SimpleNamespace(**parameters), **own)


def test_usual_server_is_served() -> None:
    """A server with triton, without anything special, is served; so is one that leaves the backend open."""
    refusals.check_arguments(arguments())
    refusals.check_arguments(arguments(attention_backend=None, prefill_attention_backend="triton"))
    refusals.check_models(*models())
    refusals.check_models(*models(draft={"candidate_selector": None, "is_nemotron_35_draft": False}))


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
    ("target", "draft", "reason"),
    [
        ({"is_hybrid_swa": True}, {}, "sliding window"),
        ({"mambaish_config": object()}, {}, "recurrent layers"),
        ({}, {"candidate_selector": object()}, "DFlash2"),
        ({}, {"lilicorr": object()}, "LiLiCorr"),
        ({}, {"prefix_gru": object()}, "Domino"),
        ({}, {"is_nemotron_35_draft": True}, "embeddings of its own"),
    ],
)
def test_models_are_refused_by_kind(target: dict[str, object], draft: dict[str, object], reason: str) -> None:
    """A target whose layers a tree would confuse, a draft without one distribution a depth, or with own embeddings: refused."""
    with pytest.raises(RefusedError, match=reason):
        refusals.check_models(*models(target, draft))


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
