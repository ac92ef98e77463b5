"""Text to tokens and back: a thin face on the `tokenizers` package for the lab's byte-level BPE.

Decoding goes through bytes, so a character split between two tokens, or two steps, comes out whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import Path

import tokenizers
import tokenizers.models
import tokenizers.pre_tokenizers

from specctl.lab.errors import ModelError


class Tokenizer:
    """A byte-level BPE loaded from `tokenizer.json`."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        """Wrap a byte-level BPE; use `load` for a file."""
        inner.encode_special_tokens = True
        self._inner = inner
        special = {int(token) for token in inner.get_added_tokens_decoder()}
        alphabet = _byte_of_character()
        self.vocab_size: int = inner.get_vocab_size()
        self._bytes = [b""] * self.vocab_size
        for text, token in inner.get_vocab().items():
            if token not in special:
                self._bytes[token] = bytes(alphabet[character] for character in text)

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read `tokenizer.json`; raise ModelError when it is missing or no byte-level tokenizer."""
        if not path.is_file():
            raise ModelError(f"{path}: no such file")
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # The package raises bare Exception for a file it cannot read.
            raise ModelError(f"{path}: not a byte-level tokenizer file: {error}") from error

    @classmethod
    def of_bytes(cls, special_tokens: tuple[str, ...]) -> Tokenizer:
        """Return a tokenizer without merges: the special tokens, then one token a byte."""
        alphabet = sorted(_byte_of_character().items(), key=lambda pair: pair[1])
        first = len(special_tokens)
        vocab = {text: first + byte for text, byte in alphabet} | {text: at for at, text in enumerate(special_tokens)}
        inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=[]))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.add_special_tokens(list(special_tokens))
        return cls(inner)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; special tokens are never produced from text."""
        ids: list[int] = self._inner.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of whole tokens; special tokens are silent, broken UTF-8 becomes U+FFFD."""
        return self.raw(ids).decode("utf-8", errors="replace")

    def raw(self, ids: Iterable[int]) -> bytes:
        """Return the bytes that the tokens stand for."""
        return b"".join(self._bytes[token] for token in ids)


class Detokenizer:
    """Turns tokens into text as they come, holding back the bytes of an unfinished character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, ids: Iterable[int]) -> str:
        """Return the text that these tokens complete."""
        return self._decoder.decode(self._tokenizer.raw(ids))

    def finish(self) -> str:
        """Return what is still held back, as U+FFFD; all pushed text then equals `decode` of all tokens."""
        return self._decoder.decode(b"", final=True)


def _byte_of_character() -> dict[str, int]:
    """Return the byte that each character of the byte-level alphabet stands for.

    Printable Latin-1 bytes stand for themselves; the others follow from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    mapped = {chr(byte): byte for byte in printable}
    mapped.update({chr(0x100 + index): byte for index, byte in enumerate(others)})
    return mapped
