"""With one alternative a depth the plugin is stock DFLASH, in the models' own bfloat16: same texts, same accept lengths."""

from __future__ import annotations

import pytest

from tests.sglang import ddtree_cases as cases
from tests.sglang.ddtree_engine import BLOCK, Answer, started

pytestmark = pytest.mark.sglang

CHAIN = {"DDTREE_BUDGET": str(BLOCK - 1), "DDTREE_TOPK": "1"}


def told(answers: list[Answer]) -> list[tuple[list[int], float]]:
    """Return texts and accept lengths."""
    return [(answer.tokens, round(answer.accept_length, 6)) for answer in answers]


def test_chain_is_stock_dflash(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Text and accept length of each request are those of DFLASH; one at a time, since bfloat16 is not the same in every batch."""
    found = {}
    for algo, env in (("DFLASH", {}), ("DDTREE", CHAIN)):
        with started(tmp_path_factory.mktemp(algo), algo, dtype="bfloat16", env=env) as engine:
            found[algo] = told(engine.ask_all(cases.plain_bodies()))
    print("accept " + " ".join(f"{accept:.3f}" for _, accept in found["DFLASH"]))
    assert found["DDTREE"] == found["DFLASH"]
    assert max(accept for _, accept in found["DDTREE"]) > 1.02
