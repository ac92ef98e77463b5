"""What the gate, the agent and operators see of a running engine: metrics, health, warm-up, graphs (engine facts §1.4, §3, §8)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.lint.rules.speculation import running_of
from specctl.lint.subject import Subject, is_false, is_true, number, whole
from specctl.lint.types import Hit, Rule, RuleSet

HEALTH_TIMEOUT_S = 20
WATCHDOG_S = 300
# Variables that nothing reads, or that the engine overwrites, with what to know instead (facts §1.3, §1.4).
GONE_VARIABLES = {
    "SGLANG_ENABLE_SPEC_V2": "the second version of speculation is the only one",
    "CUDA_DEVICE_MAX_CONNECTIONS": "the engine sets it to 8 itself",
}


def _metrics(subject: Subject) -> Iterator[Hit]:
    """Find metrics that are off: rates in /v1/loads stay 0 and there is no /metrics (facts §3.2; sparkDash#33)."""
    if not subject.has("--enable-metrics"):
        yield Hit(
            message="engine metrics are off: rates read 0, and neither agent nor doctor can see verify steps",
            remedy="give options: {enable-metrics: true}",
        )


def _all_ranks(subject: Subject) -> Iterator[Hit]:
    """Find metrics of every scheduler: each rank repeats the same number (facts §4)."""
    name = "--enable-metrics-for-all-schedulers"
    if subject.has(name):
        yield Hit(message=f"{name}: every rank repeats the same numbers", key=subject.key(subject.find(name)))


def _multiprocess_folder(subject: Subject) -> Iterator[Hit]:
    """Find a fixed folder for metric files: those of an earlier run are merged into the output (facts §4)."""
    name = "PROMETHEUS_MULTIPROC_DIR"
    if subject.env(name):
        words = f"{name} is set: counters of earlier runs and of other servers are added up"
        yield Hit(message=words, key=subject.env_key(name))


def _other_front_end(subject: Subject) -> Iterator[Hit]:
    """Find the compiled front end: its routes are not verified (facts §3.4)."""
    name = "SGLANG_RUST_SERVER"
    if is_true(subject.env(name)):
        yield Hit(message=f"{name} swaps in another HTTP server", key=subject.env_key(name))


def _hollow_health(subject: Subject) -> Iterator[Hit]:
    """Find a /health that generates nothing: a hung scheduler then looks well (facts §3.2)."""
    name = "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"
    if is_false(subject.env(name)):
        yield Hit(message=f"{name} is off: /health says 200 whatever the scheduler does", key=subject.env_key(name))


def _health_number(subject: Subject) -> Iterator[Hit]:
    """Find a limit that int() does not read: the HTTP server dies on import (srt/entrypoints/http_server.py)."""
    name = "SGLANG_HEALTH_CHECK_TIMEOUT"
    text = subject.env(name)
    if text is not None and whole(text) is None:
        yield Hit(message=f"{name} is {text!r}, not a whole number", key=subject.env_key(name))


def _health_short(subject: Subject) -> Iterator[Hit]:
    """Find a health limit under the engine's own 20 s: long prefills fail it (sglang#22511)."""
    name = "SGLANG_HEALTH_CHECK_TIMEOUT"
    limit_s = whole(subject.env(name))
    if limit_s is not None and limit_s < HEALTH_TIMEOUT_S:
        yield Hit(
            message=f"{name} is {limit_s} s, less than the engine's own {HEALTH_TIMEOUT_S}", key=subject.env_key(name)
        )


def _forced_shutdown(subject: Subject) -> Iterator[Hit]:
    """Find the forced shutdown: no drain, and the main process waits for its clients for ever (surprise 21)."""
    name = "SGL_FORCE_SHUTDOWN"
    if is_true(subject.env(name)):
        yield Hit(message=f"{name} is on: a stop cuts every request off", key=subject.env_key(name))


def _gone_variables(subject: Subject) -> Iterator[Hit]:
    """Find variables that nothing reads any more (facts §1.3)."""
    for name, words in GONE_VARIABLES.items():
        if subject.env(name) is not None:
            yield Hit(message=f"{name} has no effect: {words}", key=subject.env_key(name))


def _imbalance(subject: Subject) -> Iterator[Hit]:
    """Find the memory check switched off: it is what names a leftover process on a GPU (facts §1.4, §5.3, §8 row 27)."""
    name = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"
    if is_false(subject.env(name)):
        yield Hit(message=f"{name} is off: a leftover process on a GPU is not noticed", key=subject.env_key(name))


def _watchdog(subject: Subject) -> Iterator[Hit]:
    """Find a watchdog under the engine's 300 s: kernels compiled on first use outlast it (facts §8 row 15)."""
    limit_s = number(subject.text("--watchdog-timeout"))
    if limit_s is not None and limit_s < WATCHDOG_S:
        yield Hit(
            message=f"--watchdog-timeout is {limit_s:g} s, less than the engine's own {WATCHDOG_S}",
            key=subject.key(subject.find("--watchdog-timeout")),
        )


def _no_warmup(subject: Subject) -> Iterator[Hit]:
    """Find a start without warm-up: the SIGTERM handler comes with the first request (facts §3.3)."""
    if subject.has("--skip-server-warmup"):
        words = (
            "--skip-server-warmup: until the first request a stop kills at once, and that request pays for compilation"
        )
        yield Hit(message=words, key=subject.key(subject.find("--skip-server-warmup")))


def _no_graphs(subject: Subject) -> Iterator[Hit]:
    """Find speculation without CUDA graphs: the field's chain was slower than no speculation (field notes)."""
    if subject.algorithm is None:
        return
    for name, value in (
        ("--disable-cuda-graph", None),
        ("--disable-decode-cuda-graph", None),
        ("--cuda-graph-backend-decode", "disabled"),
    ):
        if subject.has(name) and (value is None or subject.text(name) == value):
            yield Hit(message="decoding runs without CUDA graphs", key=subject.key(subject.find(name)))
            return


def _few_graphs(subject: Subject) -> Iterator[Hit]:
    """Find graphs for fewer requests than may run: greater batches fall back to eager mode (facts §5.1)."""
    name = "--cuda-graph-max-bs-decode"
    captured, running = subject.whole(name), running_of(subject)
    if captured is not None and running is not None and captured < running:
        words = f"graphs are captured for {captured} requests, and {running} may run"
        yield Hit(
            message=words, key=subject.key(subject.find(name)), remedy=f"set cuda-graph-max-bs-decode to {running}"
        )


def _served_name(subject: Subject) -> Iterator[Hit]:
    """Find a colon in the served name: refused (facts §1.4)."""
    name = subject.text("--served-model-name") or subject.server.served_name
    if name is not None and ":" in name and "://" not in name:
        yield Hit(message=f"the served name {name} holds a colon", key="served_name")


_HEALTH = (
    Rule(
        id="W061",
        title="another HTTP front end",
        reason="Its routes, and so the gate and every probe, are unverified.",
        remedy="Take SGLANG_RUST_SERVER out of env.",
        check=_other_front_end,
    ),
    Rule(
        id="W062",
        title="health that generates nothing",
        reason="With it off, /health is a constant and a hung scheduler passes every check.",
        remedy="Take SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION out of env.",
        check=_hollow_health,
    ),
    Rule(
        id="W063",
        title="health limit too short",
        reason="A long prefill keeps the scheduler from answering; a short limit calls that ill and takes the server "
        "out of service.",
        remedy="Leave SGLANG_HEALTH_CHECK_TIMEOUT at 20 or raise it.",
        check=_health_short,
    ),
    Rule(
        id="E063",
        title="health limit that is no number",
        reason="The engine reads it as a whole number when its HTTP server is imported, and dies of anything else.",
        remedy="Write seconds in digits.",
        check=_health_number,
    ),
    Rule(
        id="W067",
        title="watchdog too short",
        reason="The first use of a kernel compiles it, which can outlast a short watchdog; the server is then killed "
        "while healthy.",
        remedy="Leave watchdog-timeout at 300 or raise it.",
        check=_watchdog,
    ),
    Rule(
        id="W064",
        title="forced shutdown",
        reason="SIGTERM then kills the schedulers with their requests, and the main process waits for its clients "
        "without a limit.",
        remedy="Take SGL_FORCE_SHUTDOWN out of env; the drain limit of the inventory bounds a stop.",
        check=_forced_shutdown,
    ),
    Rule(
        id="W068",
        title="start without warm-up",
        reason="The engine's drain on SIGTERM comes alive with its first request, and that request waits for "
        "compilation.",
        remedy="Take skip-server-warmup out.",
        check=_no_warmup,
    ),
)

RULES = RuleSet(
    name="serving",
    title="Metrics, health and start",
    rules=(
        Rule(
            id="W032",
            title="engine metrics off",
            reason="Without --enable-metrics the engine reports rates of 0 and serves no /metrics; gate, agent and "
            "doctor are half blind.",
            remedy="Set enable-metrics: true.",
            check=_metrics,
        ),
        Rule(
            id="N032",
            title="metrics of every scheduler",
            reason="Each tensor-parallel rank repeats the same number: a sum over ranks is as many times too high.",
            remedy="Take the greatest over tp_rank, never the sum, or take the flag out.",
            check=_all_ranks,
        ),
        Rule(
            id="W060",
            title="fixed folder for metric files",
            reason="Files of an earlier run, or of a second server, are merged into this server's counters.",
            remedy="Take PROMETHEUS_MULTIPROC_DIR out of env: the unit has a private /tmp.",
            check=_multiprocess_folder,
        ),
        *_HEALTH,
        Rule(
            id="W066",
            title="variable without effect",
            reason="Nothing reads it, or the engine overwrites it: whoever set it believes in something that does not happen.",
            remedy="Take it out of env.",
            check=_gone_variables,
        ),
        Rule(
            id="W070",
            title="memory check off",
            reason="It compares the GPUs before the load and names the one that another process occupies.",
            remedy="Take SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK out of env.",
            check=_imbalance,
        ),
        Rule(
            id="W015",
            title="speculation without CUDA graphs",
            reason="Verification in eager mode costs more than the accepted drafts save: 86 against 98 tokens a "
            "second in the field.",
            remedy="Take the flag out, unless you are after a crash in graph capture.",
            check=_no_graphs,
        ),
        Rule(
            id="W016",
            title="CUDA graphs for fewer requests than may run",
            reason="A batch greater than the greatest captured one falls back to eager mode, when speed matters most.",
            remedy="Raise cuda-graph-max-bs-decode to max-running-requests, or lower that.",
            check=_few_graphs,
        ),
        Rule(
            id="E071",
            title="colon in the served name",
            reason="The engine refuses it: a colon separates a model from an adapter.",
            remedy="Choose a served_name without a colon.",
            check=_served_name,
        ),
    ),
)
