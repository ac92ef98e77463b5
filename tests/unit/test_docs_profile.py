"""docs/adding-an-engine-profile.md: its example is an inventory that loads, renders and proves what the page says it does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles, read_bytes
from specctl.errors import InventoryError
from specctl.fleet.resolve import resolve
from specctl.fleet.schema_profiles import AlgoSection, EvidenceSection, ProfileSection
from specctl.fleet.types import Host, Server
from specctl.rollout import launch as launches
from specctl.rollout.proof import Claimed, Proof, Proven, Refuted, judge
from specctl.rollout.smoke import NEEDED_STEPS, SmokeResult

TEXT = (Path(__file__).parents[2] / "docs" / "adding-an-engine-profile.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
(LINE,) = re.findall(r"```text\n(.*?)\n```", TEXT, re.DOTALL)
KNOBS: Mapping[str, int] = {"block_size": 8, "tree_budget": 16, "topk_cap": 4}
SMOKE = SmokeResult(
    requests=2,
    completion_tokens=256,
    verify_steps=NEEDED_STEPS,
    accept_length=3.9,
    meta={"spec_verify_ct": float(NEEDED_STEPS)},
)


def placed(text: str = EXAMPLE) -> tuple[Host, Server]:
    """Return the example's one server on its host."""
    (host,) = resolve([read_bytes("acorn.yaml", text.encode())], BuiltInProfiles()).fleet.hosts
    (server,) = host.servers
    return host, server


def proof(*lines: str, knobs: Mapping[str, int] = KNOBS, smoke: SmokeResult = SMOKE) -> Proof:
    """Judge ddtree of the example's profile by these log lines of a smoke."""
    _, server = placed()
    return judge(server.profile.algos["ddtree"], knobs, lines, lines, smoke, tree_line=server.profile.tree_line)


def test_the_example_renders_as_the_page_says() -> None:
    """Knobs go by flag and by variable, what the algo implies is written, and the base's flags hold."""
    host, server = placed()
    launch = launches.build(host, server, "ddtree")
    assert launch.words()[3:] == (
        "--model-path", "/srv/models/big", "--port", "30001", "--host", "127.0.0.1", "--disable-overlap-schedule",
        "--speculative-algorithm", "DDTREE", "--speculative-draft-model-path", "/srv/models/big-draft",
        "--speculative-dflash-block-size", "8",
    )  # fmt: skip
    own = {name: value for name, value in launch.env.items() if name.startswith("ACORN")}
    assert own == {"ACORN_TREE_METRICS": "1", "ACORN_TREE_BUDGET": "16", "ACORN_TREE_TOPK": "4"}


def test_the_example_keeps_what_it_extends() -> None:
    """Algos and flags of stock SGLang are inherited, its version is not."""
    _, server = placed()
    profile = server.profile
    assert (set(profile.algos), profile.version, profile.module) == (
        {"none", "dflash", "ddtree"},
        None,
        ("sglang.launch_server",),
    )
    assert profile.packages == ("acorn-sglang", "torch")


def test_the_shown_line_proves_the_tree() -> None:
    """The log line on the page, with the counter, proves ddtree and its budget."""
    assert isinstance(proof(LINE), Proven)


def test_another_budget_is_refuted_and_no_line_is_a_claim() -> None:
    """A budget other than the one asked for speaks against it; without the line, the counter alone only claims."""
    assert isinstance(proof(LINE, knobs={**KNOBS, "tree_budget": 7}), Refuted)
    assert isinstance(proof(), Claimed)
    assert isinstance(proof(LINE, smoke=SmokeResult()), Claimed)


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("options: {}", "options: {disable-overlap-schedule: false}", "needs --disable-overlap-schedule True"),
        (
            "options: {}",
            "options: {speculative-dflash-block-size: 4}",
            "specctl writes --speculative-dflash-block-size itself",
        ),
        ("ACORN_TREE_TOPK", "", ""),
    ],
)
def test_what_the_page_says_is_refused_is_refused(good: str, bad: str, said: str) -> None:
    """Another value of an implied flag, a flag that specctl writes, and a knob that the build cannot take are problems."""
    text = EXAMPLE.replace("    algo: ddtree\n", "    algo: ddtree\n    options: {}\n")
    if bad:
        text = text.replace(good, bad)
    else:
        text = text.replace("          topk_cap: ACORN_TREE_TOPK\n", "")
        said = "no flag for topk_cap"
    with pytest.raises(InventoryError) as caught:
        placed(text)
    assert any(said in str(problem) for problem in caught.value.problems), caught.value.problems


def test_every_key_is_explained() -> None:
    """Each key of a profile, of an algo and of an evidence is in the page's tables or its examples."""
    tables = "\n".join(line for line in TEXT.splitlines() if line.startswith("|"))
    told = set(re.findall(r"`(\w+)`", tables))
    keys = {*ProfileSection.model_fields, *AlgoSection.model_fields} - {"algos"}
    assert keys <= told
    assert "`algos.ALGO`" in tables
    assert all(key in TEXT for key in EvidenceSection.model_fields)
