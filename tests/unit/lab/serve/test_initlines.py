"""The lines that name what decodes."""

from __future__ import annotations

from specctl.lab.serve import initlines
from tests.labmodels import Folders
from tests.unit.lab.serve.test_resolve import launch

RUNNER = (
    "Initialized DFLASH draft runner. attention_backend=torch_native, model=DFlashDraftModel, block_size=8, "
    "draft_window_size=None, compact_cache=False"
)


def lines(folders: Folders, *arguments: str, faults: bool = False) -> tuple[str, ...]:
    """Return the lines of a start."""
    found = launch(folders, *arguments, faults=faults)
    return initlines.algorithm_lines(found, found.speculation)


def test_nothing_without_speculation(folders: Folders) -> None:
    """A start without speculation names nothing."""
    assert lines(folders) == ()


def test_a_chain(folders: Folders) -> None:
    """A chain prints SGLang's two DFLASH lines."""
    runner, ready = lines(folders, "--speculative-algorithm", "DFLASH")
    assert runner == RUNNER
    assert ready.startswith("DFLASH draft runner ready. mask_token=<|mask|>, mask_token_id=1, ")


def test_a_tree_says_so(folders: Folders) -> None:
    """A tree prints one line more, with its knobs; under the claiming fault it does not."""
    tree = (
        "--speculative-algorithm",
        "DDTREE",
        "--speculative-ddtree-budget",
        "7",
        "--speculative-ddtree-topk-cap",
        "1",
    )
    assert lines(folders, *tree)[-1] == "Initialized DDTREE verifier. tree_budget=7, topk_cap=1, block_size=8"
    bent = lines(folders, *tree, "--inject", "claims-ddtree-runs-linear", faults=True)
    assert not any("DDTREE" in line for line in bent)


def test_another_block_than_the_drafters_is_a_warning(folders: Folders) -> None:
    """A block size that the drafter was not trained for is told in SGLang's words."""
    warning = lines(folders, "--speculative-algorithm", "DFLASH", "--speculative-dflash-block-size", "4")[0]
    assert warning == "DFLASH block size mismatch: using speculative_num_draft_tokens=4 but draft config block_size=8."
