"""Text survives the trip through tokens, also when it comes back in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.lab.errors import ModelError
from specctl.lab.models import Models
from specctl.lab.tokenizer import Detokenizer, Tokenizer
from specctl.lab.untrained import SPECIAL_TOKENS

BYTES = Tokenizer.of_bytes(SPECIAL_TOKENS)


@given(text=st.text())
def test_bytes_round_trip(text: str) -> None:
    """Any text decodes to itself."""
    assert BYTES.decode(BYTES.encode(text)) == text


@pytest.mark.parametrize("text", ["def f(x):\n\treturn x  # ünïcode → 日本\n", "", "<|endoftext|>", "a\r\n\0b"])
def test_the_shipped_vocabulary_round_trips(shipped: Models, text: str) -> None:
    """The trained BPE loses nothing, and a special token's spelling in a text is text."""
    tokens = shipped.tokenizer.encode(text)
    assert shipped.tokenizer.decode(tokens) == text
    assert shipped.target.config.eos_token_id not in tokens


@given(text=st.text(), sizes=st.lists(st.integers(1, 5)))
def test_pieces_add_up_to_the_whole(text: str, sizes: list[int]) -> None:
    """However tokens are split over steps, the pieces join to the text and none holds half a character."""
    tokens, detokenizer, pieces, at = BYTES.encode(text), Detokenizer(BYTES), [], 0
    for size in [*sizes, *[1] * len(tokens)]:
        pieces.append(detokenizer.push(tokens[at : at + size]))
        at += size
    assert "".join(pieces) == text
    assert detokenizer.finish() == ""


def test_an_unfinished_character_is_held_back_then_replaced() -> None:
    """Half a character is silent while more may come and U+FFFD when nothing does, as in the whole text's decoding."""
    half = BYTES.encode("é")[:1]
    detokenizer = Detokenizer(BYTES)
    assert detokenizer.push(half) == ""
    assert detokenizer.finish() == "\ufffd" == BYTES.decode(half)


def test_special_tokens_are_silent() -> None:
    """Special tokens decode to nothing."""
    assert BYTES.decode([0, *BYTES.encode("a"), 1]) == "a"


@pytest.mark.parametrize("content", [None, b"", b"{}", b"not json", b'{"model": 3}'])
def test_a_broken_file_is_told(tmp_path: Path, content: bytes | None) -> None:
    """A missing or broken tokenizer file is a ModelError that names it."""
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json: "):
        Tokenizer.load(path)
