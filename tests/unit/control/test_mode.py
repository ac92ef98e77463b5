"""Modes: what is written is read again, and what is no mode is refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.algos import ALGOS
from specctl.control import mode as modes


@given(
    st.sampled_from(sorted(ALGOS)).flatmap(
        lambda name: st.builds(
            modes.mode,
            st.just(name),
            st.fixed_dictionaries({}, optional={k.name: st.integers(k.low, k.high) for k in ALGOS[name].knobs}),
        )
    )
)
def test_what_is_written_is_read(mode: modes.Mode) -> None:
    """Every mode is read back from its text."""
    assert modes.parse(str(mode)) == mode


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eagle", "no algo 'eagle'"),
        ("dflash:tree_budget=4", "has no knob tree_budget"),
        ("ddtree:tree_budget", "is not knob=number"),
        ("ddtree:tree_budget=-1", "is not knob=number"),
        ("ddtree:tree_budget=4,tree_budget=5", "given twice"),
        ("ddtree:tree_budget=5000", "outside 1 to 1024"),
    ],
)
def test_what_is_no_mode_is_refused(text: str, said: str) -> None:
    """A text that is no mode is refused with the reason."""
    with pytest.raises(ValueError, match=said):
        modes.parse(text)


def test_packed_tokens_count_root_and_anchor() -> None:
    """A step checks one token a request without drafts, a block with a chain, budget and root with a tree."""
    packed = [
        modes.parse(text).packed_tokens(4)
        for text in ("none", "dflash:block_size=8", "ddtree:tree_budget=16", "dflash")
    ]
    assert packed == [4, 32, 68, None]
