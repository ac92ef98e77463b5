"""The parent's checks and what the knobs become."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from specctl.lab import algos
from specctl.lab.serve import dialect, options, resolve
from specctl.lab.types import Mode
from tests.labmodels import Folders


def launch(folders: Folders, *arguments: str, draft: bool = True, faults: bool = False) -> resolve.Launch:
    """Resolve a command line on these models."""
    drafts = ("--speculative-draft-model-path", str(folders.draft)) if draft else ()
    env = {"SPECCTL_LAB_ALLOW_FAULTS": "1"} if faults else {}
    return resolve.resolve(options.parse(["--model-path", str(folders.target), *drafts, *arguments], env))


def test_no_algorithm(folders: Folders) -> None:
    """Without an algorithm nothing speculates, and the arguments say so."""
    found = launch(folders)
    assert found.speculation.mode == Mode(algo="none")
    assert found.speculation.server_args()["speculative_num_draft_tokens"] is None


def test_chain_takes_the_drafters_block(folders: Folders) -> None:
    """A chain without a block size has the drafter's."""
    assert launch(folders, "--speculative-algorithm", "DFLASH").speculation.mode == Mode(
        algo="dflash", knobs={"block_size": 8}
    )


def test_block_size_under_either_name(folders: Folders) -> None:
    """Block size and draft tokens are one number under two names."""
    for name in ("--speculative-dflash-block-size", "--speculative-num-draft-tokens"):
        assert launch(folders, "--speculative-algorithm", "DFLASH", name, "4").speculation.draft_tokens == 4


def test_budget_7_and_block_8_report_the_same(folders: Folders) -> None:
    """A tree of budget 7 reports 8 draft tokens, like a chain of block 8: the number proves no algorithm."""
    tree = launch(
        folders,
        "--speculative-algorithm",
        "DDTREE",
        "--speculative-ddtree-budget",
        "7",
        "--speculative-ddtree-topk-cap",
        "1",
    )
    assert tree.speculation.mode == Mode(algo="ddtree", knobs={"block_size": 8, "tree_budget": 7, "topk_cap": 1})
    assert (
        tree.speculation.draft_tokens
        == launch(folders, "--speculative-algorithm", "DFLASH").speculation.draft_tokens
        == 8
    )


def test_differing_names_are_refused(folders: Folders) -> None:
    """Two different numbers for one thing are refused in SGLang's words."""
    with pytest.raises(ValueError, match=r"are set but they differ\. For DFLASH they must match"):
        launch(
            folders,
            "--speculative-algorithm",
            "DFLASH",
            "--speculative-dflash-block-size",
            "4",
            "--speculative-num-draft-tokens",
            "8",
        )


def test_algorithm_needs_a_drafter(folders: Folders) -> None:
    """An algorithm without a drafter is refused in SGLang's words."""
    with pytest.raises(ValueError, match="DFLASH speculative decoding requires setting --speculative-draft"):
        launch(folders, "--speculative-algorithm", "DFLASH", draft=False)


def test_block_size_must_be_positive(folders: Folders) -> None:
    """A block size below one is refused in SGLang's words."""
    with pytest.raises(ValueError, match="DFLASH requires --speculative-dflash-block-size to be positive, got 0"):
        launch(folders, "--speculative-algorithm", "DFLASH", "--speculative-dflash-block-size", "0")


def test_context_length(folders: Folders) -> None:
    """The context is the model's unless a shorter one is asked for; six tokens of it are kept back from inputs."""
    assert (launch(folders).context_length, launch(folders).max_input_tokens) == (512, 506)
    assert launch(folders, "--context-length", "100").context_length == 100


@pytest.mark.parametrize(
    ("fault", "name", "decodes"),
    [("claims-ddtree-runs-linear", "DDTREE", "dflash"), ("claims-dflash-runs-none", "DFLASH", "none")],
)
def test_claims_and_deeds(fault: str, name: str, decodes: str, folders: Folders) -> None:
    """Under a claiming fault the claim stays and another algorithm decodes; other algorithms are left alone."""
    found = launch(folders, "--speculative-algorithm", name, "--inject", fault, faults=True)
    assert (found.speculation.algorithm.name, found.decodes(found.speculation).algo) == (name, decodes)
    assert found.decodes(found.speculation.changed(None, {})).algo == "none"


def test_the_dialect_names_the_cores_algos_and_knobs() -> None:
    """Every algorithm of the dialect is one of the core's, with exactly its knobs."""
    assert {entry.algo: set(entry.knobs) for entry in dialect.ALGORITHMS.values()} == {
        name: set(algo.knobs) for name, algo in algos.ALGOS.items()
    }


def test_launch_is_a_value(folders: Folders) -> None:
    """Two equal command lines resolve to equal launches but for the random seed."""
    first, second = launch(folders, "--random-seed", "1"), launch(folders, "--random-seed", "1")
    assert first == second
    assert dataclasses.replace(first, context_length=1) != second


def test_paths_are_kept(folders: Folders) -> None:
    """The launch keeps the paths that were given."""
    assert launch(folders).options.model_path == Path(folders.target)
