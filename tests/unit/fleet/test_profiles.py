"""Engine profiles: the built-in ones say what the engine facts say, and a fork is data that adds to one."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.algos import ALGOS
from specctl.engines.types import EngineProfile, Evidence, EvidenceKind
from specctl.fleet.positions import Node
from specctl.fleet.profiles import Profiles
from tests.unit.fleet.inventories import server

SHELF = BuiltInProfiles()
# Lines as the recordings of the real server, the pull request and the field have them.
LINES: Mapping[tuple[str, str], str] = {
    (
        "sglang-0.5.23",
        "dflash",
    ): "[2026-11-29 18:03:20] Initialized DFLASH draft runner. attention_backend=torch_native, "
    "model=DFlashDraftModel, block_size=8, draft_window_size=None, compact_cache=False",
    ("sglang-pr29907", "ddtree"): "Initialized DDTree worker. block_size=8, tree_budget=7, max_tree_nodes=8",
    (
        "lab",
        "ddtree",
    ): "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=2.00 avg_commit_len=2.00 "
    "avg_accepted_depth=5.00",
    ("lab", "dflash"): "Initialized DFLASH draft runner. attention_backend=numpy, model=lab, block_size=8",
}


def built_in(name: str) -> EngineProfile:
    """Return a built-in profile."""
    profile = Profiles({}, SHELF).get(name)
    assert profile is not None
    return profile


@pytest.mark.parametrize(
    ("name", "algos"),
    [
        ("sglang-0.5.23", ["none", "dflash"]),
        ("sglang-pr29907", ["none", "dflash", "ddtree"]),
        ("lab", ["none", "dflash", "ddtree"]),
    ],
)
def test_built_in_profiles_have_their_algos(name: str, algos: list[str]) -> None:
    """Stock SGLang has no tree; the pull request and the lab have one; every algo can be proven."""
    profile = built_in(name)
    assert list(profile.algos) == algos
    assert all(algo.live_proof for algo in profile.algos.values())
    assert all(
        set(algo.knobs) | set(algo.knob_env) <= {k.name for k in ALGOS[n].knobs} for n, algo in profile.algos.items()
    )


def test_the_pull_request_implies_its_flags() -> None:
    """PR 29907 runs without overlap and with pages of one; its top-k cap is a variable."""
    ddtree = built_in("sglang-pr29907").algos["ddtree"]
    assert dict(ddtree.implies) == {"--disable-overlap-schedule": True, "--page-size": 1}
    assert dict(ddtree.knob_env) == {"topk_cap": "SGLANG_DDTREE_MAX_TOPK"}
    assert dict(ddtree.select) == {"--speculative-algorithm": "DDTREE"}


@pytest.mark.parametrize(
    ("key", "line"), LINES.items(), ids=lambda value: "-".join(value) if isinstance(value, tuple) else ""
)
def test_proofs_match_what_engines_print(key: tuple[str, str], line: str) -> None:
    """The log pattern of a proof matches the line that the engine prints, and reads the knobs from it."""
    profile, algo = key
    (pattern,) = [
        e.pattern for e in built_in(profile).algos[algo].live_proof if e.kind is EvidenceKind.LOG and not e.absent
    ]
    found = re.search(pattern, line)
    assert found is not None
    assert {"block_size": "8", "tree_budget": "7"}.items() >= found.groupdict().items()
    assert found.groupdict()


def test_no_speculation_is_proven_by_what_is_absent() -> None:
    """Plain decoding shows no verify steps; a chain shows some, and no tree line."""
    algos = built_in("sglang-0.5.23").algos
    assert algos["none"].live_proof == (Evidence(kind=EvidenceKind.META, pattern="spec_verify_ct", absent=True),)
    assert algos["dflash"].live_proof[2] == Evidence(kind=EvidenceKind.LOG, pattern="DDTREE metrics:", absent=True)


def test_the_lab_takes_everything_live() -> None:
    """The lab engine changes its algo and every knob while it runs."""
    live = built_in("lab").algos["ddtree"].live_knobs
    assert live == ("algo", "block_size", "tree_budget", "topk_cap")


def test_a_fork_adds_changes_and_takes_away() -> None:
    """A profile of profiles: mappings merge by key at every level, lists are replaced, null takes away."""
    profile = server(
        """
        engine_profiles:
          fork:
            extends: middle
            flags: {served_name: null, tp: --tp}
            packages: [fork]
            algos: {none: null, ddtree: {knobs: {topk_cap: --cap}, env: {FAST: 1}}}
          middle:
            extends: sglang-pr29907
            version: "9"
            algos: {dflash: {implies: {--overlap: false, --several: [a, 2]}}}
        servers: {chat: {engine: fork, target: big, draft: small, port: 1, python: /p, algo: dflash}}
        hosts: {gpu1: {servers: [chat]}}
        """
    ).profile
    assert (profile.name, profile.engine, profile.version, profile.packages) == ("fork", "sglang", "9", ("fork",))
    assert list(profile.algos) == ["dflash", "ddtree"]
    assert profile.flags["tp"] == "--tp"
    assert "served_name" not in profile.flags
    assert dict(profile.algos["dflash"].implies) == {"--overlap": False, "--several": ("a", "2")}
    ddtree = profile.algos["ddtree"]
    assert list(ddtree.knobs) == ["block_size", "tree_budget", "topk_cap"]
    assert dict(ddtree.env) == {"FAST": "1"}
    assert dict(profile.capability) == {"dflash": "DFLASH", "ddtree": "DDTREE"}


class CountingShelf:
    """The built-in profiles, counting which are read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def names(self) -> tuple[str, ...]:
        """Name them."""
        return SHELF.names()

    def tree(self, name: str) -> tuple[str, Node]:
        """Return one, and note it."""
        self.read.append(name)
        return SHELF.tree(name)


def test_only_the_profiles_that_are_needed_are_read() -> None:
    """A built-in profile costs nothing until somebody names it, or one that extends it."""
    shelf = CountingShelf()
    profiles = Profiles({}, shelf)
    assert profiles.get("lab") is profiles.get("lab")
    assert shelf.read == ["lab"]
    assert profiles.with_algo("ddtree") == ("lab", "sglang-0.5.23+ddtree", "sglang-pr29907")
    assert sorted(shelf.read) == ["lab", "sglang-0.5.23", "sglang-0.5.23+ddtree", "sglang-pr29907"]


def test_a_name_that_is_no_profile_is_none() -> None:
    """Asking for nothing known gives nothing."""
    assert Profiles({}, SHELF).get("sglang-9") is None
