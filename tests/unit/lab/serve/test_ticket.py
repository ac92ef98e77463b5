"""One request's growing answer: text, stop strings, meta_info."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.serve.scheduler import Delta, Refusal
from specctl.lab.serve.ticket import QueueFullError, Ticket, held_back
from specctl.lab.tokenizer import Tokenizer
from specctl.lab.types import FinishReason, Generation, Sampling, Verify

TOKENIZER = Tokenizer.of_bytes(("<|endoftext|>", "<|mask|>"))


def ticket(*stop: str) -> Ticket:
    """Return a ticket of three prompt tokens."""
    return Ticket(Generation(rid="r", prompt=(5, 6, 7), sampling=Sampling(stop=stop)), TOKENIZER, streaming=False)


def delta(
    text: str, *, finish: FinishReason | None = None, matched: str | int | None = None, drafts: int | None = None
) -> Delta:
    """Return a delta that commits a text."""
    tokens = tuple(TOKENIZER.encode(text))
    verify = (
        None
        if drafts is None
        else Verify(rid="r", nodes=8, accepted_drafts=drafts, accepted_depth=drafts, committed=len(tokens))
    )
    return Delta(at=1.0, tokens=tokens, finish=finish, matched=matched, verify=verify)


def test_characters_split_over_deltas() -> None:
    """A character whose bytes come in two deltas appears once it is whole."""
    made = ticket()
    tokens = TOKENIZER.encode("é")
    made.feed(Delta(at=1.0, tokens=tuple(tokens[:1])))
    assert made.text == ""
    made.feed(Delta(at=1.0, tokens=tuple(tokens[1:]), finish=FinishReason.LENGTH))
    assert made.text == "é"


def test_a_stop_string_is_cut_off_and_never_shown() -> None:
    """What could become a stop string is held back, and the text ends before the one that came."""
    made = ticket("END", "\n\n")
    shown = []
    for text in ("abc", "dE", "Nx", "yE"):
        made.feed(delta(text))
        shown.append(made.text)
    made.feed(delta("NDz", finish=FinishReason.STOP, matched="END"))
    assert [*shown, made.text] == ["abc", "abcd", "abcdENx", "abcdENxy", "abcdENxy"]
    assert made.finish_reason() == {"type": "stop", "matched": "END"}


def test_a_stop_token_has_no_text() -> None:
    """A matched stop token is in the tokens and not in the text."""
    made = ticket()
    made.feed(
        Delta(
            at=1.0,
            tokens=(*TOKENIZER.encode("ab"), *TOKENIZER.encode("!")),
            finish=FinishReason.STOP,
            matched=TOKENIZER.encode("!")[0],
        )
    )
    assert (made.text, len(made.tokens)) == ("ab", 3)


def test_meta_info_of_acceptance() -> None:
    """Acceptance counts drafts over proposed ones, and the prefill token in the length, as SGLang does."""
    made = ticket()
    made.feed(delta("a"))
    made.feed(delta("bcd", drafts=2))
    made.feed(delta("e", drafts=0, finish=FinishReason.LENGTH))
    info = made.meta_info(with_times=False)
    assert {key: value for key, value in info.items() if key.startswith("spec_")} == {
        "spec_accept_rate": 2 / 14,
        "spec_accept_length": 5 / 2,
        "spec_num_correct_drafts": 2,
        "spec_num_proposed_drafts": 14,
        "spec_verify_ct": 2,
        "spec_correct_drafts_histogram": [1, 0, 1],
    }
    assert info["finish_reason"] == {"type": "length", "length": 5}


def test_no_acceptance_without_verifies() -> None:
    """A request that was never verified says nothing of acceptance."""
    made = ticket()
    made.feed(delta("a", finish=FinishReason.LENGTH))
    assert not [key for key in made.meta_info(with_times=True) if key.startswith("spec_")]


def test_a_refused_ticket_raises() -> None:
    """Waiting for a refused request raises."""

    async def wait() -> None:
        made = ticket()
        made.feed(Delta(at=1.0, refused=Refusal.QUEUE_FULL))
        await made.ended()

    with pytest.raises(QueueFullError, match="The request queue is full"):
        asyncio.run(wait())


def test_gaps_begin_with_the_second_delta() -> None:
    """The first delta has no gap; later ones have the time since the last that bore tokens."""
    made = ticket()
    gaps = [made.feed(Delta(at=at, tokens=tokens)) for at, tokens in ((1.0, (5,)), (1.5, ()), (3.0, (6, 7)))]
    assert gaps == [None, None, 2.0]


@given(
    st.lists(st.text(alphabet="ab", max_size=4), max_size=6),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=3), min_size=1, max_size=2),
)
def test_shown_text_only_grows(parts: list[str], stops: list[str]) -> None:
    """Text once shown is never taken back, whatever is held back for the stop strings."""
    made, before = ticket(*stops), ""
    for part in parts:
        made.feed(delta(part))
        assert made.text.startswith(before)
        before = made.text


@pytest.mark.parametrize(
    ("text", "stops", "held"), [("abc", ("cd",), 1), ("abc", ("abcd", "bx"), 3), ("abc", ("x",), 0), ("", ("x",), 0)]
)
def test_held_back(text: str, stops: tuple[str, ...], held: int) -> None:
    """The longest end of the text that begins a stop string is held back."""
    assert held_back(text, stops) == held
