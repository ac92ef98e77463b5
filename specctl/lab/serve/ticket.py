"""One request as the HTTP side sees it: its growing text and tokens, how it ended, and the meta_info that SGLang would answer.

Lives in the event loop's thread; the scheduler's deltas are handed over one by one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

from specctl.lab.serve.ledger import Finished
from specctl.lab.serve.scheduler import Delta, Refusal
from specctl.lab.tokenizer import Detokenizer, Tokenizer
from specctl.lab.types import FinishReason, Generation


class QueueFullError(Exception):
    """The scheduler refused the request; HTTP answers 503, which does not mean that the server is down."""


class Ticket:
    """Collects what the scheduler delivers for one request."""

    def __init__(self, generation: Generation, tokenizer: Tokenizer, *, streaming: bool) -> None:
        self.generation = generation
        self.streaming = streaming
        self.tokens: list[int] = []
        self.refused: Refusal | None = None
        self.finish: FinishReason | None = None
        self._matched: str | int | None = None
        self._detokenizer = Detokenizer(tokenizer)
        self._text = ""
        self._changed = asyncio.Event()
        self._drafts: Counter[int] = Counter()
        self._proposed = 0
        self._received_at = time.time()
        self._received = time.monotonic()
        self._entered: float | None = None
        self._first: float | None = None
        self._last: float | None = None

    @property
    def text(self) -> str:
        """Return the text that may be shown now; what could still become a stop string is held back."""
        if self.finish is not None or not self.generation.sampling.stop:
            return self._text
        return self._text[: len(self._text) - held_back(self._text, self.generation.sampling.stop)]

    @property
    def verify_calls(self) -> int:
        """Count the verify steps that this request took part in."""
        return sum(self._drafts.values())

    def feed(self, delta: Delta) -> float | None:
        """Take a delta in; return the wait since the last token-bearing one, None for the first."""
        gap = None if self._last is None else delta.at - self._last
        self._entered = delta.entered if self._entered is None else self._entered
        if delta.tokens:
            self._first = delta.at if self._first is None else self._first
            self._last = delta.at
        self.tokens += delta.tokens
        if delta.verify is not None:
            self._drafts[delta.verify.accepted_drafts] += 1
            self._proposed += delta.verify.nodes - 1
        self.refused = delta.refused
        self._text += self._detokenizer.push(self._shown(delta))
        if delta.finish is not None:
            self._end(delta)
        self._changed.set()
        return gap if delta.tokens else None

    async def ended(self) -> None:
        """Wait until the request has ended; raise QueueFullError when it was refused."""
        async for _ in self.changes():
            continue

    async def changes(self) -> AsyncIterator[None]:
        """Yield after each change, the last time when the request has ended; raise QueueFullError when it was refused."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self.refused is not None:
                raise QueueFullError(self.refused.value)
            ended = self.finish is not None
            yield
            if ended:
                return

    def finish_reason(self) -> dict[str, object] | None:
        """Return the reason in SGLang's shape; None while the request runs."""
        match self.finish:
            case None:
                return None
            case FinishReason.LENGTH:
                return {"type": "length", "length": len(self.tokens)}
            case FinishReason.STOP:
                return {"type": "stop", "matched": self._matched}
            case FinishReason.ABORT:
                return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}

    @property
    def matched(self) -> str | int | None:
        """Return the stop string or token that ended the request."""
        return self._matched

    def finished(self) -> Finished:
        """Return what the ended request adds to the counters."""
        spread = None if self._first is None or self._last is None else self._last - self._first
        return Finished(
            streaming=self.streaming,
            prompt_tokens=len(self.generation.prompt),
            completion_tokens=len(self.tokens),
            verify_calls=self.verify_calls,
            aborted=self.finish is FinishReason.ABORT,
            latency_s=time.monotonic() - self._received,
            first_token_s=None if self._first is None else self._first - self._received,
            per_token_s=spread / (len(self.tokens) - 1) if spread is not None and len(self.tokens) > 1 else None,
        )

    def meta_info(self, *, with_times: bool) -> dict[str, object]:
        """Return SGLang's meta_info; times are in it only where metrics are enabled, as in the real one."""
        count = len(self.tokens)
        info: dict[str, object] = {
            "id": self.generation.rid,
            "finish_reason": self.finish_reason(),
            "prompt_tokens": len(self.generation.prompt),
            "weight_version": "default",
            "num_retractions": 0,
            "reasoning_tokens": 0,
            "completion_tokens": count,
            "cached_tokens": 0,
            "weight_versions": [{"version": "default", "start": 0, "end": count}],
            "cached_tokens_details": None,
            "dp_rank": None,
            "e2e_latency": time.monotonic() - self._received,
            **self._acceptance(),
        }
        if with_times:
            info.update(self._times())
        info["response_sent_to_client_ts"] = time.time()
        return info

    def _acceptance(self) -> dict[str, object]:
        """Return the request's own acceptance; SGLang counts the prefill token in its length."""
        calls = self.verify_calls
        if calls == 0:
            return {}
        correct = sum(drafts * times for drafts, times in self._drafts.items())
        return {
            "spec_accept_rate": correct / self._proposed if self._proposed else 0.0,
            "spec_accept_length": len(self.tokens) / calls,
            "spec_num_correct_drafts": correct,
            "spec_num_proposed_drafts": self._proposed,
            "spec_verify_ct": calls,
            "spec_correct_drafts_histogram": [self._drafts[drafts] for drafts in range(max(self._drafts) + 1)],
        }

    def _times(self) -> dict[str, object]:
        """Return the request's time stamps and durations."""
        since = self._received_at - self._received
        entered = self._received if self._entered is None else self._entered
        first = entered if self._first is None else self._first
        last = first if self._last is None else self._last
        spent = last - first
        return {
            "storage_prefetch_wait": 0.0,
            "storage_staging_wait": 0.0,
            "forward_entry_time": since + entered,
            "prefill_finished_time": since + first,
            "queue_time": entered - self._received,
            "request_received_ts": self._received_at,
            "first_token_latency": first - self._received,
            "api_server_dispatch_finish_ts": self._received_at,
            "request_finished_ts": since + last,
            "decode_throughput": (len(self.tokens) - 1) / spent if spent > 0 else 0.0,
        }

    def _shown(self, delta: Delta) -> tuple[int, ...]:
        """Return the delta's tokens that become text: all but a matched stop token."""
        stopped_by_token = delta.finish is FinishReason.STOP and isinstance(delta.matched, int)
        return delta.tokens[:-1] if stopped_by_token and delta.tokens[-1:] == (delta.matched,) else delta.tokens

    def _end(self, delta: Delta) -> None:
        """Close the text, cut at the stop string that ended it."""
        self._text += self._detokenizer.finish()
        self.finish, self._matched = delta.finish, delta.matched
        if isinstance(delta.matched, str):
            at = self._text.find(delta.matched)
            self._text = self._text if at < 0 else self._text[:at]


def held_back(text: str, stops: tuple[str, ...]) -> int:
    """Count the characters at the end of a text that could be the beginning of a stop string."""
    return max((size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])), default=0)
