"""Where a request ends: the token limit, an ending token or a stop string, found token by token inside a committed block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.lab.tokenizer import Detokenizer, Tokenizer
from specctl.lab.types import FinishReason, Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The tokens of a block that count, and why the request ends with them, if it does."""

    tokens: tuple[int, ...]
    finish: FinishReason | None = None
    matched: str | int | None = None


class StopWatch:
    """Follows one request's tokens; the order of the checks is SGLang's: limit, ending tokens, stop strings."""

    def __init__(self, sampling: Sampling, *, limit: int, eos_token_id: int, tokenizer: Tokenizer) -> None:
        """Watch a request that may generate `limit` tokens."""
        self._limit = limit
        self._ending = ending_tokens(sampling, eos_token_id)
        self._stops = tuple(stop for stop in sampling.stop if stop)
        self._detokenizer = Detokenizer(tokenizer)
        self._keep = max((len(stop) for stop in self._stops), default=1) - 1
        self._tail = ""
        self._generated = 0

    def cut(self, block: Sequence[int]) -> Cut:
        """Take up a block and cut it after the token that ends the request."""
        if self._limit == 0:
            return Cut(tokens=(), finish=FinishReason.LENGTH)
        for index, token in enumerate(block):
            self._generated += 1
            matched = self._matched(token)
            if self._generated >= self._limit:
                return Cut(tokens=tuple(block[: index + 1]), finish=FinishReason.LENGTH)
            if matched is not None:
                return Cut(tokens=tuple(block[: index + 1]), finish=FinishReason.STOP, matched=matched)
        return Cut(tokens=tuple(block))

    def _matched(self, token: int) -> str | int | None:
        """Return the ending token or stop string that this token completes."""
        text = self._tail + self._detokenizer.push((token,)) if self._stops else ""
        self._tail = text[max(0, len(text) - self._keep) :]
        if token in self._ending:
            return token
        return next((stop for stop in self._stops if stop in text), None)


def ending_tokens(sampling: Sampling, eos_token_id: int) -> tuple[int, ...]:
    """Return the tokens that end the request; SGLang's `ignore_eos` switches all of them off."""
    return () if sampling.ignore_eos else (eos_token_id, *sampling.stop_token_ids)
