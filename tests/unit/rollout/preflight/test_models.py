"""Checks of the models: whole files, a draft that fits, a block size that it knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.fleet.types import Model
from specctl.rollout.preflight.types import Level
from tests.unit.rollout.preflight.subjects import (
    ARGV,
    DRAFT,
    DRAFT_CONFIG,
    FACTS,
    SERVER,
    TARGET,
    finding,
    said,
    subject,
)

assert FACTS.target is not None
assert FACTS.draft is not None
TARGET_FACTS, DRAFT_FACTS = FACTS.target, FACTS.draft


@pytest.mark.parametrize(
    ("which", "number", "whole"), [("target", "P014", TARGET_FACTS), ("draft", "P015", DRAFT_FACTS)]
)
def test_files_that_are_not_whole(which: str, number: str, whole: object) -> None:
    """No folder, missing shards and an empty folder fail, each in its own words."""
    assert whole is not None
    facts = TARGET_FACTS if which == "target" else DRAFT_FACTS
    gone = subject(facts={which: replace(facts, there=False)})
    assert said(gone, number) == (Level.FAIL, f"there is no folder {facts.path}, or it may not be read")
    half = subject(facts={which: replace(facts, missing=("model-2.safetensors",), missing_count=3)})
    assert said(half, number)[1].endswith("lacks 3 of the files that its index names: model-2.safetensors")
    assert said(subject(facts={which: replace(facts, files=0)}), number)[0] is Level.FAIL


def test_whole_files_are_told_with_size_and_file_system() -> None:
    """Weights on a network share are seen in the same line."""
    assert said(subject(), "P014") == (Level.PASS, "550.0 GiB on xfs")


def test_a_name_on_a_hub_is_unknown() -> None:
    """What the engine would fetch itself cannot be looked at."""
    argv = tuple("org/model" if word == TARGET else word for word in ARGV)
    assert said(subject(argv=argv), "P014")[0] is Level.UNKNOWN


def test_facts_of_another_folder_do_not_count() -> None:
    """A stored release that names other weights is not judged by the inventory's."""
    argv = tuple("/models/other" if word == TARGET else word for word in ARGV)
    assert said(subject(argv=argv), "P014") == (Level.UNKNOWN, "/models/other was not looked at")


def test_an_algo_without_a_draft_has_no_draft_to_check() -> None:
    """Algo none needs none, whatever the inventory names."""
    one = subject(algo="none")
    assert [finding(one, number) for number in ("P015", "P016", "P017")] == [None, None, None]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 4096}, "hidden size 4096, the target has 7168"),
        ({"vocab_size": 1024}, "vocabulary 1024, the target has 163840"),
        ({"target_layers": 36}, "target layers 36, the target has 61"),
        ({"mask_token": 163840}, "mask token 163840, outside the target's vocabulary of 163840"),
        ({"target_layer_ids": (1, 62)}, "reads layer 62 of a target that has 61"),
    ],
)
def test_a_draft_of_another_target_fails(changes: dict[str, object], words: str) -> None:
    """Each way in which a draft cannot fit is told with both figures."""
    config = replace(DRAFT_CONFIG, **changes)  # type: ignore[arg-type]  # fields of a configuration
    level, reason = said(subject(facts={"draft": replace(DRAFT_FACTS, config=config)}), "P016")
    assert (level, reason) == (Level.FAIL, f"the draft does not fit: {words}")


def test_a_draft_that_the_inventory_gives_to_another_target_warns() -> None:
    """The figures agree, the names do not: perhaps two sizes of one family."""
    draft = Model(name="small", path=DRAFT, target="another")
    one = subject(server=replace(SERVER, draft=draft))
    assert said(one, "P016") == (Level.WARN, "the inventory calls the draft one of another, and the target is big")


def test_a_draft_without_a_configuration_is_unknown() -> None:
    """Nothing is claimed of what could not be read."""
    assert said(subject(facts={"draft": replace(DRAFT_FACTS, config=None)}), "P016")[0] is Level.UNKNOWN


@pytest.mark.parametrize(("block", "level"), [(8, Level.PASS), (16, Level.PASS), (32, Level.WARN)])
def test_a_block_longer_than_trained_warns(block: int, level: Level) -> None:
    """Shorter than trained is well, longer is guesswork; the engine starts with both."""
    assert said(subject(knobs={"block_size": block}), "P017")[0] is level
