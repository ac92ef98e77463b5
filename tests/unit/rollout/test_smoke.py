"""The smoke test's plan, the sum of its answers, and where two outputs part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.rollout import smoke
from specctl.rollout.smoke import MAX_REQUESTS, NEEDED_STEPS, Comparison, Divergence, SmokeRequest, SmokeResult

REQUEST = SmokeRequest(prompt="x", max_new_tokens=1200)
# meta_info of a real answer with DFLASH (spec-dflash/during-1), as far as it is numbers or not.
RECORDED = {
    "text": "noise",
    "output_ids": [303, 303],
    "meta_info": {
        "id": "load-100",
        "finish_reason": {"type": "length", "length": 1200},
        "prompt_tokens": 16,
        "completion_tokens": 1200,
        "dp_rank": None,
        "spec_accept_rate": 0.014864509339647461,
        "spec_accept_length": 1.1049723756906078,
        "spec_verify_ct": 1086,
        "spec_correct_drafts_histogram": [1019, 59, 0, 0, 0, 1, 0, 7],
    },
}


def test_a_request_is_greedy_and_of_fixed_length() -> None:
    """The body asks /generate for so many tokens whatever the model wants to say."""
    assert SmokeRequest(prompt="p", max_new_tokens=8).body() == {
        "text": "p",
        "sampling_params": {"temperature": 0.0, "max_new_tokens": 8, "ignore_eos": True},
    }


@given(st.one_of(st.none(), st.integers(0, 63)))
def test_the_plan_surely_makes_the_steps_and_is_bounded(max_drafts: int | None) -> None:
    """Even if every draft is accepted there are 64 verify steps, where 40 requests can give them."""
    requests = smoke.plan(max_drafts)
    each_step = 1 + (smoke.ASSUMED_DRAFTS if max_drafts is None else max_drafts)
    steps = sum((request.max_new_tokens - 1) // each_step for request in requests)
    assert 1 <= len(requests) <= MAX_REQUESTS
    assert steps >= NEEDED_STEPS or len(requests) == MAX_REQUESTS


def test_a_recorded_answer_is_folded() -> None:
    """Verify steps come from spec_verify_ct, and the accept length has the prefill's token taken off."""
    result = smoke.fold(SmokeResult(), REQUEST, status=200, body=RECORDED, took_s=14.0)
    assert (result.requests, result.completion_tokens, result.verify_steps, result.took_s) == (1, 1200, 1086, 14.0)
    assert result.accept_length == pytest.approx(1199 / 1086)
    assert result.meta["spec_verify_ct"] == 1086.0
    assert (result.text_ok, result.failures, result.enough) == (True, (), True)


def test_answers_add_up() -> None:
    """Two answers give the sum of steps and tokens, one prefill token off for each."""
    result = SmokeResult()
    for _ in range(2):
        result = smoke.fold(result, REQUEST, status=200, body=RECORDED, took_s=1.0)
    assert (result.verify_steps, result.completion_tokens) == (2172, 2400)
    assert result.accept_length == pytest.approx(2398 / 2172)


def test_an_engine_that_counts_no_steps_leaves_them_unknown() -> None:
    """Without spec_verify_ct there are no verify steps to know of: None, not zero."""
    body = {"text": "x", "meta_info": {"completion_tokens": 1200}}
    result = smoke.fold(SmokeResult(), REQUEST, status=200, body=body, took_s=1.0)
    assert (result.verify_steps, result.accept_length, result.enough) == (None, None, False)


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (None, None, "no answer"),
        (503, {"object": "error"}, "status 503"),
        (200, [1, 2], "an answer that is no object"),
        (200, {"text": "x", "meta_info": {"completion_tokens": 3}}, "3 of 1200 tokens came"),
        (200, {"text": "x"}, "0 of 1200 tokens came"),
    ],
)
def test_an_answer_that_is_no_generation_is_a_failure(status: int | None, body: object, failure: str) -> None:
    """No answer, an error, a strange body and a generation cut short each say so."""
    result = smoke.fold(SmokeResult(), REQUEST, status=status, body=body, took_s=0.1)
    assert (result.failures, result.text_ok) == ((failure,), False)


def test_an_answer_without_text_is_not_ok() -> None:
    """Tokens that were counted but not given prove no generation."""
    body = {"text": "", "output_ids": [], "meta_info": {"completion_tokens": 1200}}
    assert not smoke.fold(SmokeResult(), REQUEST, status=200, body=body, took_s=0.1).text_ok


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
METAS = st.dictionaries(st.sampled_from(["completion_tokens", "spec_verify_ct", "x"]), JSON, max_size=3)


@given(st.one_of(JSON, st.fixed_dictionaries({"text": JSON, "meta_info": st.one_of(JSON, METAS)})))
def test_no_body_crashes_the_fold(body: object) -> None:
    """Whatever JSON comes as an answer, a result comes out."""
    result = smoke.fold(SmokeResult(), REQUEST, status=200, body=body, took_s=0.1)
    assert result.accept_length is None or result.accept_length >= 0.0 or (result.verify_steps or 0) < 0


def test_equal_outputs_do_not_diverge() -> None:
    """The same tokens, or the same text, part nowhere."""
    assert smoke.first_divergence([1, 2, 3], (1, 2, 3)) is None
    assert smoke.first_divergence("abc", "abc") is None


def test_the_first_divergence_is_found() -> None:
    """The first position that differs is given with both sides, None where one has ended."""
    assert smoke.first_divergence([1, 2, 3], [1, 9, 3]) == Divergence(at=1, left=2, right=9)
    assert smoke.first_divergence([1, 2], [1, 2, 3]) == Divergence(at=2, left=None, right=3)
    assert smoke.first_divergence("ab", "") == Divergence(at=0, left="a", right=None)


def test_a_comparison_is_lossless_only_when_something_was_compared() -> None:
    """Nothing compared proves nothing; a missing output is a difference."""
    assert not Comparison(compared=0).lossless
    assert smoke.compare([[1, 2]], [[1, 2]]).lossless
    parted = smoke.compare([[1, 2], [3]], [[1, 2]])
    assert dict(parted.divergences) == {1: Divergence(at=0, left=3, right=None)}
    assert not parted.lossless
