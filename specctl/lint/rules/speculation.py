"""Speculation: what the engine refuses, forces or quietly changes when it decodes speculatively (engine facts §1.4, §2, §7)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.fleet.suggest import listed, nearest
from specctl.lint.subject import Subject, number, whole
from specctl.lint.types import Hit, Rule, RuleSet

BLOCK = "--speculative-dflash-block-size"
DRAFT_TOKENS = "--speculative-num-draft-tokens"
DRAFT = "--speculative-draft-model-path"
RUNNING = "--max-running-requests"
# What DFLASH makes of an unset --max-running-requests (facts §1.1).
DEFAULT_RUNNING = 48
# Algorithms that need a second model, by the engine's names; the first one is refused without, the others load the target twice.
_DRAFTING = ("DFLASH", "DSPARK", "STANDALONE", "EAGLE", "EAGLE3")
# Attention backends that a draft can have; others fall back to flashinfer (facts §1.2, §2).
_DRAFT_BACKENDS = ("flashinfer", "fa3", "fa4", "triton", "ascend", "trtllm_mha", "intel_xpu")


def running_of(subject: Subject) -> int | None:
    """Return how many requests may run at once: what is said, or what SGLang makes of nothing with DFLASH; None: not known."""
    said = subject.whole(RUNNING)
    if said is not None or subject.has(RUNNING):
        return said
    return DEFAULT_RUNNING if subject.is_dflash and subject.server.profile.engine == "sglang" else None


def _algorithm(subject: Subject) -> Iterator[Hit]:
    """Hold the algorithm's name against those that the build has; it parses and dies later (facts §1.1, recording)."""
    name, table = subject.algorithm, subject.table
    if name is None or table is None or not subject.is_exact or name in (*table.algorithms, *subject.plugged):
        return
    near = nearest(name, table.algorithms)
    guess = f" (did you mean {near}?)" if near else f" (it has {listed(table.algorithms, most=12)})"
    words = f"{table.name} has no speculative algorithm {name}{guess}"
    yield Hit(message=words, key=subject.key(subject.find("--speculative-algorithm")) or "algo")


def _no_draft(subject: Subject) -> Iterator[Hit]:
    """Find an algorithm without its draft: DFLASH refuses, EAGLE3 loads the target twice and dies (recording, surprise 10)."""
    if subject.algorithm in _DRAFTING and not subject.has(DRAFT):
        yield Hit(message=f"{subject.algorithm} is started without {DRAFT}", key="draft")


def _pipeline(subject: Subject) -> Iterator[Hit]:
    """Find pipeline parallelism: "only supports pp_size == 1" (facts §2)."""
    size = subject.whole("--pp-size")
    if subject.is_dflash and size is not None and size != 1:
        words = f"{subject.algorithm} runs with a pipeline of 1, not {size}"
        yield Hit(message=words, key=subject.key(subject.find("--pp-size")))


def _attention_dp(subject: Subject) -> Iterator[Hit]:
    """Find attention data parallelism without what DFLASH needs beside it (facts §2)."""
    size = subject.whole("--attn-dp-size") or 1
    if subject.has("--enable-dp-attention"):
        size = max(size, subject.whole("--dp-size") or 1)
    if not subject.is_dflash or size < 2:
        return
    key = subject.key(subject.find("--attn-dp-size") or subject.find("--enable-dp-attention"))
    if not subject.has("--enable-dp-lm-head"):
        words = f"{subject.algorithm} with {size} attention groups needs --enable-dp-lm-head"
        yield Hit(message=words, key=key, remedy="give options: {enable-dp-lm-head: true}")
    if (subject.whole("--attn-cp-size") or 1) != 1:
        yield Hit(message=f"{subject.algorithm} with attention groups takes no context parallelism", key=key)
    name = "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"
    if (subject.env(name) or "0").lower() not in ("0", "false"):
        words = f"{subject.algorithm} with attention groups needs {name}=0"
        yield Hit(message=words, key=subject.env_key(name), remedy=f"take {name} out of env")


def _weight_cache(subject: Subject) -> Iterator[Hit]:
    """Find the weight cache: rejected with any speculative algorithm (facts §1.4)."""
    mode = subject.text("--weight-cache-mode")
    if subject.algorithm is not None and mode not in (None, "off"):
        words = f"--weight-cache-mode {mode} does not go with {subject.algorithm}"
        yield Hit(message=words, key=subject.key(subject.find("--weight-cache-mode")))


def _watermark(subject: Subject) -> Iterator[Hit]:
    """Find watermarking: rejected with DFLASH (facts §2)."""
    if subject.is_dflash and subject.has("--enable-watermark"):
        words = f"--enable-watermark does not go with {subject.algorithm}"
        yield Hit(message=words, key=subject.key(subject.find("--enable-watermark")))


def _two_widths(subject: Subject) -> Iterator[Hit]:
    """Find a block size and a number of draft tokens that differ: "For DFLASH they must match" (facts §2)."""
    widths = {one.written: one for one in subject.given if one.written in (BLOCK, DRAFT_TOKENS)}
    values = {name: whole(one.value) for name, one in widths.items()}
    if subject.algorithm == "DFLASH" and len(values) == 2 and len(set(values.values())) == 2:
        words = f"{BLOCK} is {values[BLOCK]} and {DRAFT_TOKENS} is {values[DRAFT_TOKENS]}: they must match"
        yield Hit(message=words, key=subject.key(widths[DRAFT_TOKENS]), remedy=f"take {DRAFT_TOKENS} out")


def _block_of(subject: Subject) -> tuple[int, int] | None:
    """Return the block that is asked for and the one that the draft was trained with, where both are known."""
    asked = subject.launch.knobs.get("block_size")
    draft = subject.server.draft
    trained = draft.block_size if draft else None
    return None if asked is None or trained is None else (asked, trained)


def _block_too_big(subject: Subject) -> Iterator[Hit]:
    """Find a block greater than the draft's own: the engine only warns, and the drafts past it are poor (facts §2)."""
    sizes = _block_of(subject)
    if sizes is not None and sizes[0] > sizes[1]:
        words = f"block_size is {sizes[0]}, and the draft was trained with blocks of {sizes[1]}"
        yield Hit(message=words, key=f"knobs.{subject.launch.algo}.block_size", remedy=f"set block_size to {sizes[1]}")


def _block_smaller(subject: Subject) -> Iterator[Hit]:
    """Find a block smaller than the draft's own: legal, and fine in the DFlash paper's table 8 (facts §2)."""
    sizes = _block_of(subject)
    if sizes is not None and sizes[0] < sizes[1]:
        words = f"block_size is {sizes[0]}, and the draft was trained with blocks of {sizes[1]}"
        yield Hit(message=words, key=f"knobs.{subject.launch.algo}.block_size")


def _running(subject: Subject) -> Iterator[Hit]:
    """Find an unset --max-running-requests: it becomes 48 with a warning (facts §1.1)."""
    if subject.is_dflash and subject.server.profile.engine == "sglang" and not subject.has(RUNNING):
        yield Hit(
            message=f"{RUNNING} is not set: with DFlash the engine makes it {DEFAULT_RUNNING}",
            remedy="set options: {max-running-requests: N} to what the server should take at once",
        )


def _eagle_shape(subject: Subject) -> Iterator[Hit]:
    """Find EAGLE's tree flags: DFLASH forces both to 1 with a warning, and there is no tree (facts §2)."""
    if subject.algorithm != "DFLASH" or subject.env("SGLANG_DFLASH_TREE_VERIFY"):
        return
    for name, what in (("--speculative-eagle-topk", "makes no tree"), ("--speculative-num-steps", "changes nothing")):
        value = subject.whole(name)
        if value is not None and value != 1:
            words = f"{name} {value} {what}: DFLASH forces it to 1"
            yield Hit(message=words, key=subject.key(subject.find(name)))


def _adaptive(subject: Subject) -> Iterator[Hit]:
    """Find the engine's own adaptation: EAGLE with top-k 1 alone; a second hand at the knobs (facts §2)."""
    if not subject.has("--speculative-adaptive"):
        return
    key = subject.key(subject.find("--speculative-adaptive"))
    if subject.algorithm in ("EAGLE", "EAGLE3"):
        yield Hit(
            message="the engine changes its own draft length: specctl's agent must not act on this server", key=key
        )
    else:
        yield Hit(message=f"--speculative-adaptive is for EAGLE, and does nothing with {subject.algorithm}", key=key)


def _draft_backend(subject: Subject) -> Iterator[Hit]:
    """Find a draft backend that DFLASH would not run with: it falls back to another one with a warning (facts §1.2, §2)."""
    name = "--speculative-draft-attention-backend"
    value = subject.text(name)
    if not subject.is_dflash or value is None:
        return
    key = subject.key(subject.find(name))
    if value == "trtllm_mha":
        yield Hit(message=f"{name} trtllm_mha serves drafts with sliding or causal layers alone", key=key)
    elif value not in _DRAFT_BACKENDS:
        near = nearest(value, _DRAFT_BACKENDS)
        guess = f" (did you mean {near}?)" if near else ""
        yield Hit(message=f"{name} {value} is no backend for a draft{guess}: flashinfer is used instead", key=key)


def _window(subject: Subject) -> Iterator[Hit]:
    """Find a draft window smaller than the block: refused (facts §2)."""
    window, block = subject.whole("--speculative-draft-window-size"), subject.launch.knobs.get("block_size")
    if subject.is_dflash and window is not None and block is not None and window < block:
        words = f"--speculative-draft-window-size {window} is smaller than the block of {block}"
        yield Hit(message=words, key=subject.key(subject.find("--speculative-draft-window-size")))


def _device(subject: Subject) -> Iterator[Hit]:
    """Find a device that DFLASH does not run on (facts §2; failed-starts/spec-DFLASH-on-cpu: exit 1)."""
    device = subject.text("--device")
    if subject.is_dflash and device is not None and not device.startswith(("cuda", "npu", "xpu")):
        words = f"{subject.algorithm} does not run on device {device}"
        yield Hit(message=words, key=subject.key(subject.find("--device")))


def _thresholds(subject: Subject) -> Iterator[Hit]:
    """Find acceptance thresholds below 1: drafts that the target would not have said are accepted (facts §3.2)."""
    for name in ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc"):
        value = number(subject.text(name))
        if subject.algorithm is not None and value is not None and value < 1:
            yield Hit(
                message=f"{name} is {value:g}: answers may differ from the target's own",
                key=subject.key(subject.find(name)),
            )


def _narrow_cache(subject: Subject) -> Iterator[Hit]:
    """Find four-bit caches: rejected with DFLASH on sm_100, not a number on sm_120 (facts §2, §8 row 32)."""
    value = subject.text("--kv-cache-dtype")
    if subject.is_dflash and value is not None and "fp4" in value:
        words = f"--kv-cache-dtype {value} with {subject.algorithm}"
        yield Hit(message=words, key=subject.key(subject.find("--kv-cache-dtype")))


def _unified_memory(subject: Subject) -> Iterator[Hit]:
    """Find unified memory: audited backends alone (facts §2)."""
    if subject.is_dflash and subject.has("--enable-unified-memory"):
        words = f"--enable-unified-memory goes with {subject.algorithm} on few attention backends alone"
        yield Hit(message=words, key=subject.key(subject.find("--enable-unified-memory")))


RULES = RuleSet(
    name="speculation",
    title="Speculation",
    rules=(
        Rule(
            id="E010",
            title="unknown speculative algorithm",
            reason="The name is a free text to the parser; the engine dies on it at configuration, before it loads "
            "anything.",
            remedy="Use an engine profile whose build has the algorithm.",
            check=_algorithm,
        ),
        Rule(
            id="E011",
            title="speculation without a draft",
            reason="DFLASH refuses to start; EAGLE and STANDALONE load the target as its own draft and die of it "
            "later.",
            remedy="Name the draft: servers.NAME.draft, and the flag for it in the engine profile.",
            check=_no_draft,
        ),
        Rule(
            id="E012",
            title="pipeline parallelism with DFlash",
            reason="The engine refuses to start: DFLASH supports a pipeline of 1 alone.",
            remedy="Split by tensor parallelism (tp) instead.",
            check=_pipeline,
        ),
        Rule(
            id="E013",
            title="attention data parallelism without what DFlash needs",
            reason="The engine refuses to start: draft and target share the target's head, on every attention group.",
            remedy="Give enable-dp-lm-head, and neither context parallelism nor prefill coordination.",
            check=_attention_dp,
        ),
        Rule(
            id="E014",
            title="weight cache with speculation",
            reason="The engine refuses to start: its weight cache does not carry the draft.",
            remedy="Take weight-cache-mode out, or say off.",
            check=_weight_cache,
        ),
        Rule(
            id="E015",
            title="watermark with DFlash",
            reason="The engine refuses to start.",
            remedy="Take enable-watermark out.",
            check=_watermark,
        ),
        Rule(
            id="E016",
            title="two widths that differ",
            reason="Block size and number of draft tokens are one thing to DFLASH; the engine refuses two values.",
            remedy="Set the knob block_size alone.",
            check=_two_widths,
        ),
        Rule(
            id="W025",
            title="block greater than the draft's",
            reason="The engine only warns, and every draft past the length that the drafter was trained for is a "
            "guess.",
            remedy="Set block_size to the draft's own, or less.",
            check=_block_too_big,
        ),
        Rule(
            id="N017",
            title="block smaller than the draft's",
            reason="It is legal and often fine: a step verifies less, and fewer drafts can be accepted.",
            remedy="Compare the two under your own load before you keep one.",
            check=_block_smaller,
        ),
        Rule(
            id="E018",
            title="draft window smaller than the block",
            reason="The engine refuses to start.",
            remedy="Raise speculative-draft-window-size to the block size or more.",
            check=_window,
        ),
        Rule(
            id="E019",
            title="device that DFlash does not run on",
            reason="The engine refuses to start: DFLASH runs on CUDA, NPU and XPU devices.",
            remedy="Take device out, or use algo none there.",
            check=_device,
        ),
        Rule(
            id="W009",
            title="speculation that is not lossless",
            reason="Below 1 the engine accepts drafts that the target itself would not have said; comparisons with none are void.",
            remedy="Leave both acceptance thresholds at 1.",
            check=_thresholds,
        ),
        Rule(
            id="W019",
            title="four-bit cache with DFlash",
            reason="Some GPUs refuse it at start, on others it gave no numbers.",
            remedy="Use auto or fp8_e4m3.",
            check=_narrow_cache,
        ),
        Rule(
            id="W011",
            title="number of running requests left to the engine",
            reason="With DFLASH the engine makes an unset limit 48, whatever memory there is, and only logs it.",
            remedy="Set max-running-requests.",
            check=_running,
        ),
        Rule(
            id="W012",
            title="EAGLE's flags make no tree",
            reason="DFLASH forces top-k and steps to 1 with a warning in the log, and goes on as a chain.",
            remedy="Take the flag out; for a tree use algo ddtree and an engine profile that has it.",
            check=_eagle_shape,
        ),
        Rule(
            id="W013",
            title="adaptive speculation of the engine's own",
            reason="It exists for EAGLE with top-k 1 alone; elsewhere it is switched off silently, and there it "
            "fights with an agent.",
            remedy="Take speculative-adaptive out, or pin the server so that the agent keeps its hands off.",
            check=_adaptive,
        ),
        Rule(
            id="W014",
            title="attention backend that the draft may not get",
            reason="DFLASH falls back to another backend with no more than a warning, so speed is not what was "
            "measured.",
            remedy="Use flashinfer, fa3, fa4 or triton, or leave the choice to the engine.",
            check=_draft_backend,
        ),
        Rule(
            id="W018",
            title="unified memory with DFlash",
            reason="Only audited attention backends run with both; others are refused at start.",
            remedy="Take enable-unified-memory out unless this very combination is known to run.",
            check=_unified_memory,
        ),
    ),
)
