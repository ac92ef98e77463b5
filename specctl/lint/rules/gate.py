"""What the gate needs of an engine: a log that it can read, plain HTTP, generation, and a start that goes on (facts §1.4, §5)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.lint.subject import Subject, whole
from specctl.lint.types import Hit, Rule, RuleSet

# Levels at which the lines that tell phases and proofs are written.
_TOLD_AT = ("info", "debug", "trace")
# A smoke runs this many verify steps at least (design: proof); a line that comes less often may not be seen in it.
SMOKE_STEPS = 64
_TREE_LINES = "DDTREE_METRICS_EVERY"
_NOT_GENERATING = ("--is-embedding", "--encoder-only", "--skip-tokenizer-init")


def _quiet_log(subject: Subject) -> Iterator[Hit]:
    """Find a log without info lines: phases, progress and the proof of an algo are read there (facts §5)."""
    level = subject.text("--log-level")
    if level is not None and level.lower() not in _TOLD_AT:
        words = f"--log-level {level} leaves out the lines that tell phases and prove the algo"
        yield Hit(message=words, key=subject.key(subject.find("--log-level")), remedy="say info, or leave it out")
    name = "SGLANG_LOGGING_CONFIG_PATH"
    if subject.env(name):
        yield Hit(message=f"{name} may change what the log says and where", key=subject.env_key(name))


def _rare_lines(subject: Subject) -> Iterator[Hit]:
    """Find decode lines that come less often than a smoke is long: gauges and lines move with them (facts §3.2, surprise 22).

    A tree of the plugin is proven by lines of its own, which may be asked to come less often.
    """
    interval = subject.whole("--decode-log-interval")
    if interval is not None and interval > SMOKE_STEPS:
        words = f"--decode-log-interval is {interval}, and a smoke may see {SMOKE_STEPS} steps"
        yield Hit(message=words, key=subject.key(subject.find("--decode-log-interval")), remedy="say 40 or less")
    every = whole(subject.env(_TREE_LINES)) if subject.plugged else None
    if every is not None and every > SMOKE_STEPS:
        words = f"{_TREE_LINES} is {every}, and a smoke may see {SMOKE_STEPS} steps: no tree would be proven"
        yield Hit(message=words, key=subject.env_key(_TREE_LINES), remedy="say 40 or less, or leave it out")


def _tls(subject: Subject) -> Iterator[Hit]:
    """Find TLS on the engine's own port: gate, probes and agent speak plain HTTP to it."""
    for name in ("--ssl-certfile", "--ssl-keyfile"):
        if subject.has(name):
            yield Hit(message=f"{name}: the engine answers HTTPS alone", key=subject.key(subject.find(name)))
            return


def _no_generation(subject: Subject) -> Iterator[Hit]:
    """Find engines that answer no prompt: the smoke is a generation (facts §3.2, design: proof)."""
    for name in _NOT_GENERATING:
        if subject.has(name):
            yield Hit(message=f"{name}: the engine answers no prompt", key=subject.key(subject.find(name)))
    mode = subject.text("--disaggregation-mode")
    if mode in ("prefill", "decode"):
        words = f"--disaggregation-mode {mode}: half of a pair answers no prompt alone"
        yield Hit(message=words, key=subject.key(subject.find("--disaggregation-mode")))


def _gated(subject: Subject) -> Iterator[Hit]:
    """Find the gated launch: it loads nothing until somebody posts to its gate, which specctl does not (facts §1.4)."""
    if subject.has("--gated-launch-port"):
        words = "--gated-launch-port: the engine waits for an activation that nobody sends"
        yield Hit(message=words, key=subject.key(subject.find("--gated-launch-port")))


def _nodes(subject: Subject) -> Iterator[Hit]:
    """Find an engine over several machines: all but the first answer 200 to everything (facts §3.1)."""
    for name, usual in (("--nnodes", 1), ("--node-rank", 0)):
        value = subject.whole(name)
        if value is not None and value != usual:
            words = f"{name} is {value}: a health answer of such a node proves nothing"
            yield Hit(message=words, key=subject.key(subject.find(name)))


def _dummy(subject: Subject) -> Iterator[Hit]:
    """Find random weights: every probe passes and every answer is noise (facts §1.4, load formats)."""
    for name in ("--load-format", "--speculative-draft-load-format"):
        if subject.text(name) == "dummy":
            yield Hit(message=f"{name} dummy: the weights are random", key=subject.key(subject.find(name)))


RULES = RuleSet(
    name="gate",
    title="What the gate needs",
    rules=(
        Rule(
            id="W072",
            title="log that the gate cannot read",
            reason="Phases, progress and most proofs are lines of level info: without them a load looks hung, and an algo is "
            "claimed and never proven.",
            remedy="Leave the log at info.",
            check=_quiet_log,
        ),
        Rule(
            id="N072",
            title="decode lines too rare for a smoke",
            reason="The engine writes its decode line, and moves its gauges, once in so many steps; a smoke may end before.",
            remedy="Leave decode-log-interval at 40.",
            check=_rare_lines,
        ),
        Rule(
            id="E067",
            title="TLS on the engine's port",
            reason="specctl reaches the engine through SSH and speaks plain HTTP to it: the gate would wait to its end.",
            remedy="End TLS in a gateway before the engine.",
            check=_tls,
        ),
        Rule(
            id="E068",
            title="engine that answers no prompt",
            reason="The smoke of the gate is a generation, without which no server is called healthy.",
            remedy="Run such an engine outside specctl.",
            check=_no_generation,
        ),
        Rule(
            id="E064",
            title="gated launch",
            reason="The engine loads nothing until POST /gate/activate, which specctl never sends: the gate would "
            "wait to its end.",
            remedy="Take gated-launch-port out.",
            check=_gated,
        ),
        Rule(
            id="E065",
            title="engine over several machines",
            reason="specctl proves one machine at a time, and every node but the first answers 200 to any health "
            "check.",
            remedy="Run one engine a host.",
            check=_nodes,
        ),
        Rule(
            id="W017",
            title="random weights",
            reason="The server passes every health check and answers noise.",
            remedy="Take the load format out.",
            check=_dummy,
        ),
    ),
)
