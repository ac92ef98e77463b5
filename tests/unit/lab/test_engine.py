"""Continuous batching: requests join and leave between steps, the algo changes, and nobody's tokens change or go missing."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.lab.engine import Engine
from specctl.lab.models import Models
from specctl.lab.types import FinishReason, Mode, Sampling, StepReport
from specctl.lab.untrained import random_models
from tests.examples import examples
from tests.unit.lab.runs import CONTEXT, NONE, Outcome, linear, request, requests, run, tree

MODES = (NONE, linear(8), tree(16, 8))
SPECULATIVE = (linear(8), tree(1, 1), tree(16, 8), tree(64, 32))


def engine_for(models: Models, mode: Mode = NONE, max_running: int = 4) -> Engine:
    """Return an engine of the tests' usual size."""
    return Engine(models, mode=mode, max_running=max_running, context_length=CONTEXT)


def finish(engine: Engine, outcome: Outcome) -> Outcome:
    """Step until nothing is left."""
    while engine.running or engine.waiting:
        outcome.take(engine.step())
    return outcome


def test_an_idle_step_is_empty(untrained: Models) -> None:
    """With nothing to do a step reports nothing."""
    assert engine_for(untrained).step() == StepReport(emissions=())


def test_requests_are_admitted_in_order_while_there_is_room(untrained: Models) -> None:
    """Prefill takes waiting requests first in, first out, and no more than fit."""
    engine = engine_for(untrained, max_running=2)
    for index in range(3):
        engine.add(request(str(index), [5, 6, 7]))
    report = engine.step()
    assert [emission.rid for emission in report.emissions] == ["0", "1"]
    assert (report.prefilled_requests, report.prefilled_tokens, report.forward_tokens) == (2, 6, 6)
    assert (engine.running, engine.waiting, engine.used_tokens) == (2, 1, 6)
    assert engine.capacity_tokens == 2 * CONTEXT


@pytest.mark.parametrize("mode", MODES)
def test_joining_and_leaving_change_nobodys_tokens(shipped: Models, prompts: list[list[int]], mode: Mode) -> None:
    """Requests of different lengths that arrive over time through two rows get the tokens they get alone."""
    generations = [
        request(str(index), prompt, Sampling(max_new_tokens=5 + 7 * (index % 4), ignore_eos=True))
        for index, prompt in enumerate(prompts[:10])
    ]
    engine, outcome = engine_for(shipped, mode, max_running=3), Outcome()
    for generation in generations:
        engine.add(generation)
        outcome.take(engine.step())
        outcome.take(engine.step())
    assert finish(engine, outcome).tokens == run(shipped, NONE, generations, max_running=1).tokens
    assert set(outcome.finish.values()) == {FinishReason.LENGTH}


@settings(max_examples=examples(25), deadline=None)
@given(
    changes=st.lists(st.sampled_from((NONE, *SPECULATIVE, linear(2), tree(5, 3, 4))), max_size=12),
    every=st.integers(1, 4),
)
def test_configure_between_steps_loses_nothing(untrained: Models, changes: list[Mode], every: int) -> None:
    """However often the algo changes while requests run and queue, each gets exactly its tokens."""
    sampling = Sampling(max_new_tokens=20, ignore_eos=True)
    generations = requests([[7, 8, 9], [20] * 30, [4, 5], [200, 100, 3, 3]], sampling)
    engine, outcome = engine_for(untrained, max_running=2), Outcome()
    for generation in generations:
        engine.add(generation)
    for mode in changes:
        for _ in range(every):
            outcome.take(engine.step())
        engine.configure(mode)
        assert engine.mode == mode
    assert finish(engine, outcome).tokens == run(untrained, NONE, generations).tokens


@pytest.mark.parametrize("mode", SPECULATIVE)
def test_switching_into_speculation_keeps_its_accept_lengths(
    shipped: Models, prompts: list[list[int]], mode: Mode
) -> None:
    """After steps without a drafter, drafts are as good as if it had followed all along."""
    generation = request("a", prompts[3], Sampling(max_new_tokens=40, ignore_eos=True))
    engine, outcome = engine_for(shipped), Outcome()
    engine.add(generation)
    for _ in range(9):
        outcome.take(engine.step())
    engine.configure(mode)
    finish(engine, outcome)
    continued = request("a", [*prompts[3], *outcome.tokens["a"][:8]], Sampling(max_new_tokens=32, ignore_eos=True))
    assert run(shipped, mode, [continued]).accepted() == outcome.accepted()


@pytest.mark.parametrize("mode", SPECULATIVE)
def test_reports_follow_the_conventions(shipped: Models, prompts: list[list[int]], mode: Mode) -> None:
    """Nodes count the root, accepted depth is accepted drafts, committed is one more unless the request ended in the block."""
    outcome = run(shipped, mode, requests(prompts[:5], Sampling(max_new_tokens=30, ignore_eos=True)))
    budget = mode.knobs.get("tree_budget", mode.knobs["block_size"] - 1)
    longest = 1 + min(budget, mode.knobs["block_size"] - 1)
    for rid, verifies in outcome.verifies.items():
        for verify in verifies:
            assert 2 <= verify.nodes <= budget + 1
            assert verify.accepted_depth == verify.accepted_drafts <= longest - 1
        *inner, last = verifies
        assert all(verify.committed == verify.accepted_drafts + 1 for verify in inner)
        assert 1 <= last.committed <= last.accepted_drafts + 1
        assert 1 + sum(verify.committed for verify in verifies) == len(outcome.tokens[rid]) == 30


@pytest.mark.parametrize("mode", SPECULATIVE)
def test_packed_tokens_are_counted(untrained: Models, mode: Mode) -> None:
    """A verify step reports as many tokens through the target as its rows have nodes."""
    outcome = run(untrained, mode, requests([[5, 6], [7, 8, 9]], Sampling(max_new_tokens=6, ignore_eos=True)))
    for report in outcome.reports:
        if report.verifies:
            assert report.forward_tokens == sum(verify.nodes for verify in report.verifies)


@pytest.mark.parametrize("mode", MODES)
def test_a_request_ends_where_its_context_ends(untrained: Models, mode: Mode) -> None:
    """A request never outgrows the context, also when max_tokens would allow it."""
    sampling = Sampling(max_new_tokens=500, ignore_eos=True)
    outcome = run(untrained, mode, [request("a", [9] * (CONTEXT - 5), sampling)])
    assert (len(outcome.tokens["a"]), outcome.finish["a"]) == (5, FinishReason.LENGTH)


@pytest.mark.parametrize("mode", MODES)
def test_the_last_position_is_reachable(mode: Mode) -> None:
    """With the longest context a model allows, a request runs up to its last position with room for a whole tree."""
    models = random_models(3, layers=2)
    length = models.target.config.max_position_embeddings
    engine = Engine(models, mode=mode, max_running=1, context_length=length)
    engine.add(request("a", [9] * (length - 12), Sampling(max_new_tokens=50, ignore_eos=True)))
    assert len(finish(engine, Outcome()).tokens["a"]) == 12


@pytest.mark.parametrize("mode", MODES)
def test_min_new_tokens_holds_the_end_off(untrained: Models, mode: Mode) -> None:
    """An ending token that greedy decoding would pick is passed over until min_new_tokens, alike with every algo."""
    free = run(untrained, NONE, [request("a", [5, 6, 7])]).tokens["a"]
    ending = Sampling(max_new_tokens=24, stop_token_ids=tuple(free[:3]))
    assert len(run(untrained, mode, [request("a", [5, 6, 7], ending)]).tokens["a"]) == 1
    held = dataclasses.replace(ending, min_new_tokens=10)
    outcome = run(untrained, mode, [request("a", [5, 6, 7], held)])
    assert not set(outcome.tokens["a"][:10]) & {*free[:3], 0}
    assert outcome.tokens == run(untrained, NONE, [request("a", [5, 6, 7], held)]).tokens


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", range(1, 20, 3))
def test_an_ending_token_inside_a_block_ends_there(
    shipped: Models, prompts: list[list[int]], mode: Mode, at: int
) -> None:
    """Wherever in a committed block the ending token falls, it is the last token emitted."""
    free = run(shipped, NONE, [request("a", prompts[2], Sampling(max_new_tokens=24, ignore_eos=True))]).tokens["a"]
    outcome = run(shipped, mode, [request("a", prompts[2], Sampling(max_new_tokens=24, stop_token_ids=(free[at],)))])
    assert outcome.tokens["a"] == free[: free.index(free[at]) + 1]
    assert (outcome.finish["a"], outcome.matched["a"]) == (FinishReason.STOP, free[at])


def test_abort_forgets_queued_and_running_requests(untrained: Models) -> None:
    """An aborted request emits nothing more, the others go on unharmed, an unknown id is no one's."""
    generations = requests([[5, 6], [7, 8, 9], [10]], Sampling(max_new_tokens=12, ignore_eos=True))
    engine, outcome = engine_for(untrained, tree(16, 8), max_running=2), Outcome()
    for generation in generations:
        engine.add(generation)
    outcome.take(engine.step())
    outcome.take(engine.step())
    emitted = list(outcome.tokens["0"])
    assert (engine.abort("0"), engine.abort("0"), engine.abort("nobody")) == (True, False, False)
    finish(engine, outcome)
    wanted = run(untrained, NONE, generations).tokens
    assert outcome.tokens == {"0": emitted, "1": wanted["1"], "2": wanted["2"]}


def test_abort_all_empties_the_engine(untrained: Models) -> None:
    """Running requests are named before queued ones, and nothing is left."""
    engine = engine_for(untrained, max_running=1)
    for generation in requests([[5], [6], [7]]):
        engine.add(generation)
    engine.step()
    assert engine.abort_all() == ("0", "1", "2")
    assert (engine.running, engine.waiting, engine.used_tokens) == (0, 0, 0)


def test_unseeded_requests_follow_the_engines_seed(untrained: Models) -> None:
    """Without a seed of their own, sampled requests differ from each other and repeat with the engine's seed."""
    generations = requests([[5, 6], [5, 6]], Sampling(max_new_tokens=16, temperature=1.5, ignore_eos=True))
    first, second = run(untrained, NONE, generations), run(untrained, linear(4), generations)
    assert first.tokens == second.tokens
    assert first.tokens["0"] != first.tokens["1"]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (Mode(algo="eagle"), "unknown algo 'eagle'"),
        (Mode(algo="none", knobs={"block_size": 8}), "algo none has no knob 'block_size'"),
        (Mode(algo="dflash", knobs={"tree_budget": 8}), "algo dflash has no knob 'tree_budget'"),
        (Mode(algo="dflash", knobs={"block_size": 1}), "block_size is 1, expected 2 to 16"),
        (Mode(algo="dflash", knobs={"block_size": 17}), "block_size is 17, expected 2 to 16"),
        (Mode(algo="dflash", knobs={"block_size": 9}), "trained for up to 8"),
        (Mode(algo="ddtree", knobs={"tree_budget": 65}), "tree_budget is 65, expected 1 to 64"),
        (Mode(algo="ddtree", knobs={"topk_cap": 0}), "topk_cap is 0, expected 1 to 32"),
    ],
)
def test_a_mode_that_cannot_run_is_refused(untrained: Models, mode: Mode, said: str) -> None:
    """The refusal says why, at the start and later, and the algo in force stays."""
    with pytest.raises(ValueError, match=said):
        engine_for(untrained, mode)
    engine = engine_for(untrained, linear(8))
    with pytest.raises(ValueError, match=said):
        engine.configure(mode)
    assert engine.mode == linear(8)


def test_speculation_without_a_drafter_is_refused(untrained: Models) -> None:
    """Without a draft model algo none runs and the others say what they need."""
    alone = dataclasses.replace(untrained, draft=None)
    assert run(alone, NONE, requests([[5, 6]])).tokens == run(untrained, NONE, requests([[5, 6]])).tokens
    with pytest.raises(ValueError, match="algo ddtree needs a draft model"):
        engine_for(alone, tree(8, 4))


def test_knobs_not_given_take_their_defaults(untrained: Models) -> None:
    """The mode in force names every knob."""
    assert engine_for(untrained, Mode(algo="ddtree", knobs={"topk_cap": 4})).mode == tree(16, 4, 8)


@pytest.mark.parametrize(
    ("prompt", "said"), [([], "empty"), ([5] * CONTEXT, "the context holds 256"), ([5, 258], "outside the vocabulary")]
)
def test_a_prompt_that_cannot_run_is_refused(untrained: Models, prompt: list[int], said: str) -> None:
    """A prompt is checked when it is added."""
    with pytest.raises(ValueError, match=said):
        engine_for(untrained).add(request("a", prompt))


@pytest.mark.parametrize(
    ("rows", "context", "said"), [(0, 64, "max_running is 0"), (1, 4096, "context_length is 4096")]
)
def test_an_engine_that_cannot_be_is_refused(untrained: Models, rows: int, context: int, said: str) -> None:
    """Room for no request or more context than the model has is refused."""
    with pytest.raises(ValueError, match=said):
        Engine(untrained, mode=NONE, max_running=rows, context_length=context)
