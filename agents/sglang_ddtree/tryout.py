"""Ten minutes on a GPU: ask a running DDTREE server whether its text is plain decoding's, then how fast it is.

Run with any Python against a server that the plugin runs in: `python -m sglang_ddtree.tryout http://127.0.0.1:30000`. Equality
is asked of the same server with budget 0, which drafts nothing. The knobs are put back at the end. Standard library alone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

KEY = "DDTREE_TRYOUT_KEY"
ADMIN_KEY = "DDTREE_TRYOUT_ADMIN_KEY"
SET = "/set_internal_state"
WITHIN_S = 600.0
PROMPTS = (
    "Write a function that merges two sorted lists.",
    "Tell the story of a lighthouse keeper in five sentences.",
    "List the planets with one fact each.",
    "Explain why the sky is blue to a child.",
    "Translate to French: the train leaves at nine.",
    "A farmer has 17 sheep; all but 9 run away. How many are left, and why?",
)


class TryoutError(RuntimeError):
    """A server that cannot be tried; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured with one setting: tokens a second over all requests, and tokens a verify pass."""

    budget: int
    topk: int
    at_once: int
    tokens_a_second: float
    accept_length: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    url: str
    tokens: int

    def post(self, path: str, body: object) -> object:
        """Send JSON, return JSON."""
        return self._read(path, json.dumps(body).encode())

    def get(self, path: str) -> object:
        """Return a page's JSON."""
        return self._read(path, None)

    def _read(self, path: str, content: bytes | None) -> object:
        # A server with both keys takes the admin key for this route alone, and no other key for it.
        variable = ADMIN_KEY if path == SET and os.environ.get(ADMIN_KEY) else KEY
        key = os.environ.get(variable)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            request = urllib.request.Request(self.url + path, content, headers)  # noqa: S310  # the user's own URL
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:  # noqa: S310  # the user's own URL
                return json.load(answer)
        except (OSError, ValueError, http.client.HTTPException) as error:
            hint = "" if getattr(error, "code", None) not in (401, 403) else f" ({KEY} holds the server's key)"
            if hint and path == SET:
                hint = f" ({ADMIN_KEY} holds the server's admin key, where it has one)"
            raise TryoutError(f"{self.url}{path}: {error}{hint}") from error

    def turn(self, knobs: Mapping[str, int]) -> None:
        """Set knobs."""
        answer = self.post(SET, {"server_args": dict(knobs)})
        if not isinstance(answer, list) or not all(answer):
            raise TryoutError(f"{dict(knobs)} was refused: the server's log says why")

    def state(self) -> dict[str, object]:
        """Return what the plugin tells of itself."""
        told = self.get("/server_info")
        states = told.get("internal_states") if isinstance(told, dict) else None
        state = states[0] if states else {}
        if "ddtree_budget" not in state:
            raise TryoutError(f"{self.url} runs no DDTREE")
        return {name: value for name, value in state.items() if name.startswith("ddtree_")}

    def ask(self, prompt: str, tokens: int | None = None) -> tuple[list[int], int, int]:
        """Return a greedy text's tokens, how many there are, and in how many verify passes."""
        parameters = {"temperature": 0, "max_new_tokens": tokens or self.tokens, "ignore_eos": True}
        said = self.post("/generate", {"text": prompt, "sampling_params": parameters})
        if not isinstance(said, dict) or "output_ids" not in said:
            raise TryoutError(f"{self.url}/generate gave no tokens")
        meta = said["meta_info"]
        return said["output_ids"], meta["completion_tokens"], meta.get("spec_verify_ct") or 0

    def texts(self, at_once: int) -> list[list[int]]:
        """Return the texts of all prompts."""
        with ThreadPoolExecutor(at_once) as pool:
            return [tokens for tokens, _, _ in pool.map(self.ask, PROMPTS)]

    def measure(self, budget: int, topk: int, at_once: int) -> Row:
        """Measure a setting with so many requests at once; prompts were read before, lest the first setting pay for all."""
        self.turn(setting(budget, topk))
        prompts = [f"{PROMPTS[number % len(PROMPTS)]} ({number})" for number in range(2 * at_once)]
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda prompt: self.ask(prompt, 1), prompts))
            began = time.monotonic()
            said = list(pool.map(self.ask, prompts))
            lasted = time.monotonic() - began
        tokens, passes = sum(count for _, count, _ in said), sum(count for _, _, count in said)
        return Row(
            budget=budget,
            topk=topk,
            at_once=at_once,
            tokens_a_second=tokens / lasted,
            accept_length=tokens / passes if passes else None,
        )


def setting(budget: int, topk: int) -> dict[str, int]:
    """Return the knobs of a setting."""
    return {"ddtree_budget": budget, "ddtree_topk": topk}


def back(state: Mapping[str, object]) -> list[dict[str, int]]:
    """Return the changes that bring a server to a state that it told: its plain knobs, then its policy's rows."""
    changes = [{name: int(str(state[name])) for name in ("ddtree_budget", "ddtree_topk")}]
    rows = state["ddtree_policy"]
    if isinstance(rows, list) and rows:
        changes.append({f"{name}_from_{row['from']}": row[name] for row in rows for name in changes[0]})
    return changes


def settings(block: int, most: int, widest: int) -> list[tuple[int, int]]:
    """Return what is tried: nothing drafted, the chain, and trees up to what the server allows."""
    trees = [(budget, min(4, widest)) for budget in (7, 15, 31, 63) if budget <= most]
    return list(dict.fromkeys([(0, 1), (block - 1, 1), *trees]))


def divergence(ours: Sequence[int], plain: Sequence[int]) -> int | None:
    """Return the first place where two texts differ, or None."""
    return next((place for place, pair in enumerate(zip(ours, plain, strict=False)) if pair[0] != pair[1]), None)


def check(server: Server, tried: Sequence[tuple[int, int]]) -> int:
    """Print for each setting how many texts are plain decoding's; return how many are not. Bfloat16 alone may move near-ties."""
    server.turn(setting(0, 1))
    plain, again = server.texts(1), server.texts(len(PROMPTS))
    itself = sum(divergence(*pair) is not None for pair in zip(again, plain, strict=True))
    print(
        f"plain, in a batch against alone: {len(plain) - itself} of {len(plain)} texts equal (the measure for the rest)"
    )
    wrong = 0
    for budget, topk in tried[1:]:
        server.turn(setting(budget, topk))
        for at_once in (1, len(PROMPTS)):
            found = [divergence(*pair) for pair in zip(server.texts(at_once), plain, strict=True)]
            differ = [place for place in found if place is not None]
            wrong += len(differ)
            where = f", first at token {min(differ)}" if differ else ""
            print(
                f"budget {budget:2} topk {topk} x{at_once}: {len(found) - len(differ)} of {len(found)} texts equal{where}"
            )
    return wrong


def measure(server: Server, tried: Sequence[tuple[int, int]], at_once: Sequence[int]) -> None:
    """Print a row for each setting and number of requests at once."""
    print(f"\n{'budget':>6} {'topk':>4} {'at once':>7} {'tokens/s':>9} {'accept':>6}")
    for requests in at_once:
        for budget, topk in tried:
            row = server.measure(budget, topk, requests)
            accept = "—" if row.accept_length is None else f"{row.accept_length:.2f}"
            print(f"{row.budget:6} {row.topk:4} {row.at_once:7} {row.tokens_a_second:9.1f} {accept:>6}", flush=True)


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number of at least 1")
    return int(text)


def counts(text: str) -> list[int]:
    """Read such numbers with commas between them."""
    return [count(part) for part in text.split(",")]


def main() -> int:
    """Try a server; 0 when all texts were equal, 1 when some were not, 2 when it could not be tried, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m sglang_ddtree.tryout", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--tokens", type=count, default=128, help="tokens a text (128)")
    parser.add_argument(
        "--at-once", type=counts, default=[1, 2, 4, 8, 16], help="requests at once, measured in turn (1,2,4,8,16)"
    )
    words = parser.parse_args()
    server = Server(url=words.url.rstrip("/"), tokens=words.tokens)
    try:
        state = server.state()
        tried = settings(*(int(str(state[f"ddtree_{name}"])) for name in ("block_size", "max_budget", "max_topk")))
        try:
            wrong = check(server, tried)
            measure(server, tried, words.at_once)
        finally:
            for change in back(state):
                server.turn(change)
    except TryoutError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
