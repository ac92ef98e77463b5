"""Memory and GPUs: what cannot fit, as far as the inventory's own figures tell (engine facts §5.3, §8; recordings, surprise 9)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.fleet.units import size_text
from specctl.lint.subject import Subject, number
from specctl.lint.types import Hit, Rule, RuleSet

FRACTION = "--mem-fraction-static"
# Above this share, and with less than this left, a 595 GB model on 96 GB GPUs ran out of memory with its draft (facts §8 row 32:
# "keep <= 0.85", which leaves 14.4 GiB).
HIGH_FRACTION = 0.85
HEADROOM_BYTES = 14 * 2**30
# Where the GPU's memory is not known, this share is too high for a draft and its graphs on any GPU that was reported.
HIGHEST_FRACTION = 0.9

# With these, less than the files hold comes to lie in a GPU's memory.
_SMALLER_THAN_FILES = (
    "--quantization",
    "--quantize-and-serve",
    "--cpu-offload-gb",
    "--offload-mode",
    "--kt-method",
    "--load-format",
)


def _gpu_bytes(subject: Subject) -> int | None:
    hardware = subject.host.hardware
    return None if hardware is None else hardware.gpu_memory_bytes


def _outside(subject: Subject) -> Iterator[Hit]:
    """Find a share outside 0 to 1: 1.5 is accepted unchecked and took all memory of a machine (surprise 9)."""
    share = number(subject.text(FRACTION))
    if share is not None and not 0 < share < 1:
        yield Hit(
            message=f"{FRACTION} is {share:g}: it is a share of a GPU's memory", key=subject.key(subject.find(FRACTION))
        )


def _high(subject: Subject) -> Iterator[Hit]:
    """Find a share that leaves a draft and its graphs too little (facts §8 row 32)."""
    share = number(subject.text(FRACTION))
    if share is None or not HIGH_FRACTION < share < 1 or not subject.profile.draft or subject.server.draft is None:
        return
    memory = _gpu_bytes(subject)
    left = None if memory is None else (1 - share) * memory
    if share > HIGHEST_FRACTION if left is None else left < HEADROOM_BYTES:
        rest = "" if left is None else f", which leaves {left / 2**30:.1f} GiB a GPU"
        yield Hit(
            message=f"{FRACTION} is {share:g} with a draft{rest}",
            key=subject.key(subject.find(FRACTION)),
            remedy=f"keep it at {HIGH_FRACTION} or below",
        )


def _weights(subject: Subject) -> Iterator[Hit]:
    """Find weights that exceed the static share: "Not enough memory. Please try to increase …" after the load (facts §5.3)."""
    memory, ways = _gpu_bytes(subject), subject.server.tp
    models = [
        subject.server.target,
        *([subject.server.draft] if subject.profile.draft and subject.server.draft else []),
    ]
    sizes = [model.size_bytes for model in models if model.size_bytes is not None]
    if memory is None or ways is None or subject.server.target.size_bytes is None:
        return
    if any(subject.has(name) for name in _SMALLER_THAN_FILES):
        return
    share = number(subject.text(FRACTION)) or HIGHEST_FRACTION
    pipes = subject.whole("--pp-size") or 1
    needed = sum(sizes) // (ways * max(1, pipes))
    if needed >= share * memory:
        yield Hit(
            message=f"the weights take {size_text_short(needed)} of each of {ways} GPUs, and the static share is "
            f"{size_text_short(int(share * memory))}",
            key="tp",
        )


def size_text_short(size: int) -> str:
    """Return a size for a sentence: in GB with one decimal, or exactly where it is small."""
    return f"{size / 1e9:.1f} GB" if size >= 100_000_000 else size_text(size)


def _too_few_gpus(subject: Subject) -> Iterator[Hit]:
    """Find more parallel parts than GPUs: the engine dies on an invalid device ordinal."""
    ways, gpus = subject.whole("--tp-size") or subject.server.tp or 1, len(subject.server.gpus)
    parts = ways * max(1, subject.whole("--pp-size") or 1)
    if gpus and parts > gpus:
        yield Hit(
            message=f"{parts} GPUs are needed and {gpus} are given",
            key="gpus",
            remedy=f"give {parts} GPUs, or lower tp",
        )


def _idle_gpus(subject: Subject) -> Iterator[Hit]:
    """Find GPUs that nothing is split over: they stand idle, and no other server gets them (`gpus` is exclusive)."""
    gpus, parts = len(subject.server.gpus), subject.whole("--tp-size") or subject.server.tp or 1
    for name in ("--pp-size", "--dp-size", "--attn-dp-size", "--ep-size"):
        parts *= max(1, subject.whole(name) or 1)
    if subject.server.profile.flags.get("tp") and parts < gpus:
        yield Hit(
            message=f"{gpus} GPUs are given and {parts} used",
            key="gpus",
            remedy=f"set tp to {gpus}, or give fewer GPUs",
        )


def _odd_split(subject: Subject) -> Iterator[Hit]:
    """Find a split that heads and experts seldom allow (recordings, failed-starts/tp-size-3-indivisible: exit 137)."""
    ways = subject.whole("--tp-size") or subject.server.tp or 1
    if ways & (ways - 1):
        yield Hit(message=f"tp is {ways}, no power of two", key="tp")


def _pages(subject: Subject) -> Iterator[Hit]:
    """Find a prefill chunk that is no whole number of pages: refused (facts §2, page size)."""
    chunk, page = subject.whole("--chunked-prefill-size"), subject.whole("--page-size")
    if chunk is not None and page is not None and chunk > 0 and page > 0 and chunk % page:
        words = f"--chunked-prefill-size {chunk} is no multiple of --page-size {page}"
        yield Hit(message=words, key=subject.key(subject.find("--chunked-prefill-size")))


def _from_the_hub(subject: Subject) -> Iterator[Hit]:
    """Find models by a hub's name: the load is a download, and a wrong path reads as a name too (surprise 11)."""
    drafting = subject.server.draft if subject.profile.draft else None
    for word, model in (("target", subject.server.target), ("draft", drafting)):
        if model is not None and not model.path.startswith("/"):
            yield Hit(message=f"{word} {model.path} is no absolute path: it is looked up on the model hub", key=word)


def _host_memory(subject: Subject) -> Iterator[Hit]:
    """Find a memory limit of the unit below the target's size: the page cache of a load counts towards it."""
    limit, size = subject.server.unit.memory_max, subject.server.target.size_bytes
    if limit is not None and limit.isdecimal() and size is not None and int(limit) < size:
        words = (
            f"unit.memory_max is {size_text_short(int(limit))}, and the target has {size_text_short(size)} of weights"
        )
        yield Hit(message=words, key="unit.memory_max")


RULES = RuleSet(
    name="memory",
    title="Memory and GPUs",
    rules=(
        Rule(
            id="E040",
            title="memory share outside 0 to 1",
            reason="The engine takes any number unchecked; one above 1 takes all memory of the machine with it.",
            remedy="Set mem-fraction-static between 0 and 1.",
            check=_outside,
        ),
        Rule(
            id="W040",
            title="memory share too high for a draft",
            reason="Draft, verification buffers and CUDA graphs live in what the static share leaves; too little, and "
            "the engine dies of "
            "memory after the whole load, or goes on without the draft's graph.",
            remedy="Lower mem-fraction-static.",
            check=_high,
        ),
        Rule(
            id="E041",
            title="weights that do not fit",
            reason="The engine loads everything first and finds then that no memory is left for its cache.",
            remedy="Split over more GPUs (tp), raise mem-fraction-static, or use a smaller model.",
            check=_weights,
        ),
        Rule(
            id="E042",
            title="more parallel parts than GPUs",
            reason="The engine asks for GPUs that it cannot see, and dies.",
            remedy="Give it as many GPUs as tp asks for.",
            check=_too_few_gpus,
        ),
        Rule(
            id="W045",
            title="GPUs that stand idle",
            reason="The GPUs of a server are its own: what tp does not use, nobody uses.",
            remedy="Set tp to the number of GPUs, or give fewer.",
            check=_idle_gpus,
        ),
        Rule(
            id="W043",
            title="split that is no power of two",
            reason="Attention heads and experts must divide evenly; where they do not, the engine dies in its schedulers.",
            remedy="Use 1, 2, 4 or 8, or waive this rule for a model that divides.",
            check=_odd_split,
        ),
        Rule(
            id="E043",
            title="prefill chunk that is no whole number of pages",
            reason="The engine refuses to start.",
            remedy="Make chunked-prefill-size a multiple of page-size.",
            check=_pages,
        ),
        Rule(
            id="N044",
            title="model from the hub",
            reason="Progress, sizes and preflight know files on the host alone; the first load downloads, and may take hours.",
            remedy="Download it before, and give the folder's absolute path.",
            check=_from_the_hub,
        ),
        Rule(
            id="W084",
            title="memory limit below the weights",
            reason="Reading the weights fills the page cache, which counts towards the unit's limit: "
            "the load crawls while the kernel throws pages away, and what the engine itself holds is killed for.",
            remedy="Raise unit.memory_max above the size of the weights, or take it out.",
            check=_host_memory,
        ),
    ),
)
