"""What the DDTREE plugin refuses at the start (agents/sglang_ddtree/refusals.py), said before anything is stopped for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specctl.fleet.suggest import listed
from specctl.lint.subject import Subject, whole
from specctl.lint.types import Hit, Rule, RuleSet

_BACKENDS = ("triton", "torch_native")
_BACKEND_FLAGS = ("--attention-backend", "--prefill-attention-backend", "--decode-attention-backend")
_SWITCHES: Mapping[str, str] = {
    "--speculative-draft-window-size": "a draft with a window keeps a cache of its own",
    "--speculative-use-block-verification": "a tree is verified node by node",
    "--speculative-adaptive": "the width is the plugin's own to choose",
    "--enable-lora": "adapters were not tried with a tree",
    "--enable-unified-memory": "the pool moves pages under the tree",
    "--enable-hierarchical-cache": "it was not tried with a tree",
    "--enable-lmcache": "it was not tried with a tree",
    "--enable-flexkv": "it was not tried with a tree",
    "--enable-pdmux": "each of its streams has attention of its own, which knows one width",
    "--enable-two-batch-overlap": "it splits the batch that a tree's mask spans",
    "--enable-mixed-chunk": "a prefill and a tree in one pass were not tried",
}
_SIZES = ("--attn-dp-size", "--dp-size", "--dcp-size", "--attn-cp-size", "--pp-size")
_DISAGGREGATION = "--disaggregation-mode"
_METRICS = "DDTREE_METRICS_EVERY"
_DECODE_LINES = 40


def _refused(subject: Subject) -> Iterator[Hit]:
    """Find options that the plugin refuses: the server would die of them at the start (agents/sglang_ddtree/refusals.py)."""
    if not subject.plugged:
        return
    for flag, why in (*_backends(subject), *_options(subject)):
        yield Hit(message=f"{flag} does not go with the DDTREE plugin: {why}", key=subject.key(subject.find(flag)))

    every, lines = whole(subject.env(_METRICS)), subject.whole("--decode-log-interval") or _DECODE_LINES
    if every is not None and every > lines:
        words = f"{_METRICS} is {every}, and the engine prints a decode line each {lines} steps: a tree's must be among them"
        yield Hit(message=words, key=subject.env_key(_METRICS), remedy=f"say {lines} or less, or leave it out")


def _backends(subject: Subject) -> Iterator[tuple[str, str]]:
    for flag in _BACKEND_FLAGS:
        backend = subject.text(flag)
        if backend is not None and backend not in _BACKENDS:
            yield flag, f"{backend} does not read a tree's mask ({listed(_BACKENDS)} do)"


def _options(subject: Subject) -> Iterator[tuple[str, str]]:
    yield from ((flag, why) for flag, why in _SWITCHES.items() if subject.has(flag))
    for flag in _SIZES:
        size = subject.whole(flag)
        if size is not None and size > 1:
            yield flag, "tensor parallelism is the only kind that was tried"
    if subject.text(_DISAGGREGATION) not in (None, "null"):
        yield _DISAGGREGATION, "prefill and decode on two servers were not tried"


RULES = RuleSet(
    name="plugin",
    title="The DDTREE plugin",
    rules=(
        Rule(
            id="E017",
            title="option that the DDTREE plugin refuses",
            reason="What a tree was not tried with, or cannot be exact with, the plugin refuses at the start.",
            remedy="Take the option out, or use an engine profile without the plugin.",
            check=_refused,
        ),
    ),
)
