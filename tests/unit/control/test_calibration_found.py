"""What a calibration file says beside its figures: read as it was written, and every problem told."""

from __future__ import annotations

from dataclasses import fields

import pytest

from specctl.control import calibration_facts, calibration_found
from specctl.control.calibration import CalibrationError, parse
from specctl.control.calibration_facts import Facts, differences
from specctl.control.calibration_found import Said
from specctl.control.crossovers import Answer, Crossover, Stretch, Verdict
from specctl.control.mode import mode

CHAIN, TREE = mode("dflash"), mode("ddtree", {"tree_budget": 16})
MODES: dict[str, object] = {"dflash": {"1": 100, "4": 350}, "ddtree:tree_budget=16": {"1": 150, "4": 300}}
FACTS = Facts(
    gpu="NVIDIA H200",
    gpu_count=8,
    driver="590.48",
    profile="fork-0.5",
    engine_version="0.5.23",
    packages="0123",
    target="k26",
    draft="k26-dflash",
    tensor_parallel=8,
    context_tokens=(100, 900),
    prompts="mixed 4567",
)
SAID = Said(
    stretches=(
        Stretch(low=1, high=1, modes=(TREE,), decided=True),
        Stretch(low=4, high=4, modes=(CHAIN,), decided=True),
    ),
    crossovers=(Crossover(before=(TREE,), after=(CHAIN,), low=1, high=4, at=2.5),),
    trees=Verdict(answer=Answer.PAYS, at=(1,), open=(2,)),
    drafts=None,
)


def test_what_was_written_is_read() -> None:
    """Facts and conclusions come back from a file as they went in."""
    found = parse(
        {"modes": MODES, "holds_for": calibration_found.facts_wire(FACTS), **calibration_found.said_wire(SAID)}
    )
    assert (found.holds_for, found.said) == (FACTS, SAID)


def test_a_file_without_them_is_a_calibration_as_before() -> None:
    """Nothing is known of what it holds for, and nothing was concluded."""
    found = parse({"modes": MODES})
    assert (found.holds_for, found.said) == (Facts(), Said())


def test_errors_widen_the_bounds() -> None:
    """Twice the standard error is added to the spread, between two points the larger one's."""
    errors = {"dflash": {"1": 2.0, "4": 3.5}}
    table = parse({"modes": MODES, "spread": 0.02, "errors": errors}).table
    one, between, none = table.tokens_s(CHAIN, 1), table.tokens_s(CHAIN, 2), table.tokens_s(TREE, 1)
    assert one is not None
    assert between is not None
    assert none is not None
    assert (round(one.low, 6), round(one.high, 6)) == (94.0, 106.0)
    assert round(1 - between.low / between.value, 6) == 0.06
    assert (none.low, none.high) == (147.0, 153.0)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"errors": {"dflash": {"2": 1.0}}}, "errors.dflash.2: there is no point at 2"),
        ({"errors": {"dflash": 1.0}}, "errors.dflash: a mapping is wanted"),
        ({"holds_for": {"colour": "red"}}, "holds_for.colour: there is no such fact"),
        ({"holds_for": {"gpu": 8}}, "holds_for.gpu: a text of at most 500"),
        ({"holds_for": {"gpu_count": 0}}, "holds_for.gpu_count: a whole number from 1"),
        ({"holds_for": {"context_tokens": [9, 3]}}, "holds_for.context_tokens: the shortest and the longest"),
        ({"holds_for": []}, "holds_for: a mapping is wanted"),
        (
            {"crossovers": [{"before": ["dflash"], "after": ["none"], "low": 8, "high": 4}]},
            "crossovers.0: low and high",
        ),
        ({"crossovers": {"a": 1}}, "crossovers: a list"),
        ({"stretches": [{"low": 1, "high": 2, "modes": ["warp"]}]}, "stretches.0.modes.0: no algo 'warp'"),
        ({"trees": {"answer": "perhaps"}}, "trees.answer: one of pays"),
        ({"drafts": {"answer": "pays", "at": [-1]}}, "drafts.at.0"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_key(wrong: dict[str, object], problem: str) -> None:
    """Each problem names the key that it is about."""
    with pytest.raises(CalibrationError) as caught:
        parse({"modes": MODES, **wrong})
    assert any(each.startswith(problem) for each in caught.value.problems), caught.value.problems


def test_each_fact_that_differs_is_told() -> None:
    """All that both sides know and that is not the same; contexts differ where their bands do not meet."""
    other = Facts(gpu="NVIDIA B200", gpu_count=8, driver=None, context_tokens=(800, 4000), prompts="code 1")
    assert differences(FACTS, other) == (
        "the GPU is NVIDIA B200, and it was measured with NVIDIA H200",
        "the prompt set is code 1, and it was measured with mixed 4567",
    )
    assert differences(Facts(context_tokens=(1, 9)), Facts(context_tokens=(10, 20))) == (
        "the context is 10 to 20 tokens, and it was measured with 1 to 9 tokens",
    )


def test_every_fact_has_a_word() -> None:
    """No difference is told by the name of a field."""
    assert set(calibration_facts.WORDS) == {each.name for each in fields(Facts)}
