"""NCCL, CUDA and PyTorch variables against the machine that the inventory describes (engine facts §8; NCCL's documentation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specctl.fleet.suggest import listed, nearest
from specctl.lint.subject import Subject, whole
from specctl.lint.types import Hit, Rule, RuleSet

LEVEL, ALGO, DISABLE = "NCCL_P2P_LEVEL", "NCCL_ALGO", "NCCL_P2P_DISABLE"
# From the nearest to the farthest that peers may be apart; the names of `nvidia-smi topo -m`.
LEVELS: Mapping[str, str] = {
    "LOC": "peers never reach each other directly",
    "NVL": "peers reach each other directly over NVLink",
    "PIX": "peers reach each other directly under one PCIe switch",
    "PXB": "peers reach each other directly across several PCIe switches",
    "PHB": "peers reach each other directly across one CPU's host bridge",
    "SYS": "peers reach each other directly across CPU sockets",
}
# The old numbers, kept by NCCL for those who wrote them before there were names; NVLink has none, and more than 4 is SYS.
OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
# Levels under which GPUs of one PCIe machine never reach each other directly.
_NEVER_OVER_PCIE = ("LOC", "NVL")
_NAMES: Mapping[str, tuple[str, ...]] = {
    ALGO: ("Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"),
    "NCCL_PROTO": ("LL", "LL128", "Simple"),
}
_NUMBERS = (
    DISABLE,
    "NCCL_IB_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
)
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
# GPUs on which the engine's own all-reduce over PCIe peers was wrong or hung (facts §8 row 20: sm_12x, RTX 4090).
_SHAKY_PEERS = ("RTX PRO 6000", "RTX 5090", "RTX 4090")


def level_of(text: str) -> str | None:
    """Return the name of a P2P level; of an old number what NCCL reads it as; None for what is no level."""
    count = whole(text)
    if count is not None:
        return OLD_LEVELS[min(count, len(OLD_LEVELS) - 1)] if count >= 0 else None
    name = text.strip().upper()
    return name if name in LEVELS else None


def _interconnect(subject: Subject) -> str | None:
    return None if subject.host.hardware is None else subject.host.hardware.interconnect


def _unknown(subject: Subject) -> Iterator[Hit]:
    """Find words that NCCL does not know; it warns in a log that is off by default, and goes on without them."""
    level = subject.env(LEVEL)
    if level is not None and level_of(level) is None:
        near = nearest(level, LEVELS)
        guess = f" (did you mean {near}?)" if near else f" (it is one of {listed(LEVELS)})"
        yield Hit(message=f"{LEVEL}={level} is no level{guess}", key=subject.env_key(LEVEL))
    for variable, known in _NAMES.items():
        value = subject.env(variable)
        if value is None or ":" in value:
            continue
        folded = {name.casefold() for name in known}
        for word in value.strip().removeprefix("^").split(","):
            if word.strip().casefold() not in folded:
                near = nearest(word, known)
                guess = f" (did you mean {near}?)" if near else f" (it is one of {listed(known)})"
                yield Hit(
                    message=f"{variable}={value}: {word.strip()!r} is unknown{guess}", key=subject.env_key(variable)
                )


def _old_number(subject: Subject) -> Iterator[Hit]:
    """Explain an old number: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and more SYS (NCCL's documentation of NCCL_P2P_LEVEL)."""
    text = subject.env(LEVEL)
    name = level_of(text) if text is not None and whole(text) is not None else None
    if name is not None:
        words = f"{LEVEL}={text} is an old number for {name}: {LEVELS[name]}"
        yield Hit(message=words, key=subject.env_key(LEVEL), remedy=f"write {name}")


def _narrow(subject: Subject) -> Iterator[Hit]:
    """Find a level narrower than what connects the GPUs: traffic then goes through main memory (facts §8)."""
    text, wire = subject.env(LEVEL), _interconnect(subject)
    level = level_of(text) if text is not None else None
    if level is None or len(subject.server.gpus) < 2 or subject.env(DISABLE) == "1":
        return
    if wire == "nvlink" and level == "LOC":
        yield Hit(message=f"{LEVEL}={text} switches NVLink between the GPUs off", key=subject.env_key(LEVEL))
    elif wire == "pcie" and level in _NEVER_OVER_PCIE:
        words = f"{LEVEL}={text} says that {LEVELS[level]}, and these GPUs are on PCIe"
        yield Hit(
            message=words, key=subject.env_key(LEVEL), remedy="write PIX, PXB, PHB or SYS, as `nvidia-smi topo -m` says"
        )


def _ring(subject: Subject) -> Iterator[Hit]:
    """Find a fixed ring on NVSwitch machines: NVLS and trees are what the switch is for (facts §8)."""
    algo = subject.env(ALGO)
    if _interconnect(subject) == "nvlink" and algo is not None and algo.strip().casefold() == "ring":
        yield Hit(message=f"{ALGO}={algo} on GPUs behind NVLink", key=subject.env_key(ALGO))


def _no_peers(subject: Subject) -> Iterator[Hit]:
    """Find peer-to-peer switched off where there is NVLink (facts §8: a cure for PCIe machines)."""
    value = whole(subject.env(DISABLE))
    if _interconnect(subject) == "nvlink" and value is not None and value != 0:
        yield Hit(message=f"{DISABLE}={value} sends NVLink's traffic through main memory", key=subject.env_key(DISABLE))


def _words_for_numbers(subject: Subject) -> Iterator[Hit]:
    """Find words where NCCL reads a number: "true" is read as 0 (NCCL reads them by strtoll)."""
    for name in _NUMBERS:
        value = subject.env(name)
        if value is not None and whole(value) is None:
            yield Hit(
                message=f"{name}={value} is read as 0",
                key=subject.env_key(name),
                remedy="write 1 or 0" if name.endswith(("DISABLE", "ENABLE")) else "write a number",
            )


def _expandable(subject: Subject) -> Iterator[Hit]:
    """Find expandable segments on PCIe: incompatible with the one-shot all-reduce over PCIe peers (facts §8)."""
    if _interconnect(subject) != "pcie" or subject.has("--disable-custom-all-reduce"):
        return
    for name in _ALLOCATOR:
        value = (subject.env(name) or "").replace(" ", "").casefold()
        if "expandable_segments:true" in value:
            words = f"{name} asks for expandable segments, and the custom all-reduce over PCIe is on"
            yield Hit(message=words, key=subject.env_key(name))


def _shaky_all_reduce(subject: Subject) -> Iterator[Hit]:
    """Find the engine's own all-reduce on two PCIe GPUs of a kind where it was wrong; with more it is off by itself (§8 row 20)."""
    hardware = subject.host.hardware
    model = (hardware.gpu_model if hardware else None) or ""
    shaky = any(name.casefold() in model.casefold() for name in _SHAKY_PEERS)
    two = (subject.whole("--tp-size") or subject.server.tp) == 2
    if shaky and two and _interconnect(subject) == "pcie" and not subject.has("--disable-custom-all-reduce"):
        yield Hit(message=f"two {model} over PCIe with the engine's own all-reduce", key="tp")


def _devices(subject: Subject) -> Iterator[Hit]:
    """Find GPUs chosen behind specctl's back: conflicts and preflight look at `gpus`."""
    name = "CUDA_VISIBLE_DEVICES"
    if name not in subject.server.env and name not in subject.profile.env:
        return
    gpus = ",".join(str(index) for index in subject.server.gpus)
    beside = f" beside gpus: {gpus}" if gpus else ""
    yield Hit(
        message=f"{name}={subject.env(name)} is set by hand{beside}",
        key=subject.env_key(name),
        remedy="say gpus: instead; specctl writes the variable",
    )


def _search_path(subject: Subject) -> Iterator[Hit]:
    """Find a PATH without the folders that specctl would put there: kernels are compiled with nvcc and ninja (facts §8 row 15)."""
    path = subject.server.env.get("PATH")
    if path is None:
        return
    wanted = [f"{subject.server.cuda_home}/bin"] if subject.server.cuda_home else []
    if "/" in subject.server.python:
        wanted.append(subject.server.python.rpartition("/")[0])
    lacking = [folder for folder in wanted if folder not in path.split(":")]
    if lacking:
        words = f"PATH is set by hand, without {listed(lacking)}"
        yield Hit(
            message=words,
            key="env.PATH",
            remedy="take PATH out: specctl builds it of cuda_home, venv and the standard folders",
        )


RULES = RuleSet(
    name="nccl",
    title="NCCL, CUDA and PyTorch",
    rules=(
        Rule(
            id="W050",
            title="unknown value for NCCL",
            reason="NCCL goes on with its default and says so only in a log that is off.",
            remedy="Use one of the names that NCCL documents.",
            check=_unknown,
        ),
        Rule(
            id="W051",
            title="P2P level as an old number",
            reason="NCCL discourages numbers: the levels behind them have changed before, and NVLink has none.",
            remedy="Write the level's name: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and more SYS.",
            check=_old_number,
        ),
        Rule(
            id="W052",
            title="P2P level narrower than the interconnect",
            reason="GPUs farther apart than the level talk through main memory, at a fraction of the speed.",
            remedy="Raise NCCL_P2P_LEVEL to the distance of the GPUs, or take it out.",
            check=_narrow,
        ),
        Rule(
            id="W053",
            title="ring on NVLink",
            reason="A fixed ring keeps NCCL from the switch's own reductions and from trees, which are faster at "
            "decode sizes.",
            remedy="Take NCCL_ALGO out of env.",
            check=_ring,
        ),
        Rule(
            id="W054",
            title="peer-to-peer off on NVLink",
            reason="It is a cure for PCIe machines with a wrong IOMMU; here it throws the interconnect away.",
            remedy="Take NCCL_P2P_DISABLE out of env.",
            check=_no_peers,
        ),
        Rule(
            id="W055",
            title="word where NCCL reads a number",
            reason="NCCL reads a number from the front of the text; a word has none and counts as 0, whatever it says.",
            remedy="Write a number.",
            check=_words_for_numbers,
        ),
        Rule(
            id="W056",
            title="expandable segments with the all-reduce over PCIe",
            reason="The one-shot all-reduce shares buffers between processes in a way that expandable segments do not "
            "allow.",
            remedy="Take expandable_segments out, or set disable-custom-all-reduce.",
            check=_expandable,
        ),
        Rule(
            id="W057",
            title="custom all-reduce on two PCIe GPUs",
            reason="It assumes working peer access; on these GPUs it was reported to hang and to give wrong sums.",
            remedy="Set disable-custom-all-reduce: true.",
            check=_shaky_all_reduce,
        ),
        Rule(
            id="W069",
            title="PATH without the engine's tools",
            reason="Kernels are compiled on first use with tools of the CUDA toolkit and the engine's environment, found by PATH.",
            remedy="Take PATH out of env.",
            check=_search_path,
        ),
        Rule(
            id="W065",
            title="GPUs chosen by hand",
            reason="specctl finds conflicts, counts memory and clears leftovers by gpus; a variable of your own "
            "contradicts or hides it.",
            remedy="Say gpus: and take CUDA_VISIBLE_DEVICES out of env.",
            check=_devices,
        ),
    ),
)
