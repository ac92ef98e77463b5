"""A committed block is cut at the right token, whatever ends the request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.stopping import Cut, StopWatch
from specctl.lab.tokenizer import Tokenizer
from specctl.lab.types import FinishReason, Sampling
from specctl.lab.untrained import SPECIAL_TOKENS

EOS = 0
TOKENIZER = Tokenizer.of_bytes(SPECIAL_TOKENS)


def watch(sampling: Sampling, limit: int = 100) -> StopWatch:
    """Return a watch on a request that decodes bytes."""
    return StopWatch(sampling, limit=limit, eos_token_id=EOS, tokenizer=TOKENIZER)


def tokens(text: str) -> tuple[int, ...]:
    """Return a text's tokens, one a byte."""
    return tuple(TOKENIZER.encode(text))


def test_a_block_without_an_end_is_kept_whole() -> None:
    """Nothing is cut where nothing ends."""
    assert watch(Sampling(stop=("zzz",))).cut(tokens("abc")) == Cut(tokens=tokens("abc"))


def test_the_limit_cuts_inside_a_block() -> None:
    """Tokens past max_tokens are dropped, and the reason is length."""
    follower = watch(Sampling(), limit=5)
    follower.cut(tokens("abc"))
    assert follower.cut(tokens("defg")) == Cut(tokens=tokens("de"), finish=FinishReason.LENGTH)


def test_no_room_means_no_token() -> None:
    """A limit of zero ends before the first token."""
    assert watch(Sampling(), limit=0).cut(tokens("a")) == Cut(tokens=(), finish=FinishReason.LENGTH)


@pytest.mark.parametrize(("sampling", "ending"), [(Sampling(), EOS), (Sampling(stop_token_ids=(77,)), 77)])
def test_an_ending_token_cuts_after_itself(sampling: Sampling, ending: int) -> None:
    """The end-of-text token and the request's own ending tokens are kept as the last token and named as the match."""
    cut = watch(sampling).cut((5, ending, 6))
    assert cut == Cut(tokens=(5, ending), finish=FinishReason.STOP, matched=ending)


def test_ignore_eos_switches_ending_tokens_off() -> None:
    """With ignore_eos neither the end-of-text token nor stop tokens end the request, as in SGLang."""
    sampling = Sampling(ignore_eos=True, stop_token_ids=(77,))
    assert watch(sampling).cut((EOS, 77, 5)) == Cut(tokens=(EOS, 77, 5))


def test_a_stop_string_ends_at_the_token_that_completes_it() -> None:
    """A stop string that spans two blocks cuts the second at its last character."""
    follower = watch(Sampling(stop=("nope", "END")))
    assert follower.cut(tokens("the E")).finish is None
    assert follower.cut(tokens("ND and")) == Cut(tokens=tokens("ND"), finish=FinishReason.STOP, matched="END")


def test_a_stop_string_of_several_bytes_a_character_is_found() -> None:
    """A stop string outside ASCII, its bytes split over blocks, ends the request at its last byte."""
    block = tokens("a→b")
    follower = watch(Sampling(stop=("→",)))
    assert follower.cut(block[:2]).finish is None
    assert follower.cut(block[2:]) == Cut(tokens=block[2:4], finish=FinishReason.STOP, matched="→")


def test_the_limit_wins_over_an_end_at_the_same_token() -> None:
    """When the last token allowed also ends the request, the reason is length, as in SGLang."""
    assert watch(Sampling(), limit=2).cut((5, EOS)) == Cut(tokens=(5, EOS), finish=FinishReason.LENGTH)


@given(
    text=st.text("abé→", max_size=30), stop=st.text("abé→", min_size=1, max_size=3), sizes=st.lists(st.integers(1, 8))
)
def test_the_cut_does_not_depend_on_the_blocks(text: str, stop: str, sizes: list[int]) -> None:
    """Token by token or in blocks of any sizes, the same tokens are kept and the text ends with the first stop string."""
    row = tokens(text)
    kept: list[int] = []
    follower, at, finish = watch(Sampling(stop=(stop,))), 0, None
    for size in [*sizes, *[1] * len(row)]:
        if finish is None and at < len(row):
            cut = follower.cut(row[at : at + size])
            kept, at, finish = [*kept, *cut.tokens], at + size, cut.finish
    found = text.find(stop)
    wanted = text if found < 0 else text[: found + len(stop)]
    assert (TOKENIZER.decode(kept), finish is not None) == (wanted, found >= 0)
