"""Trees: what they cost in verified tokens, and what their engines need beside them (engine facts §6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specctl.algos.types import Shape
from specctl.lint.rules.speculation import running_of
from specctl.lint.subject import Subject, is_true, whole
from specctl.lint.types import Hit, Rule, RuleSet

# Where the kernels of a GPU step up, in tokens that one verify step packs: Qwen3-8B on RTX PRO 6000 Blackwell verifies a tree
# of 95 nodes in 3.61 ms a token and one of 127 (128 with its root) in 4.28 ms, which is what the plain chain takes.
CLIFFS: Mapping[str, int] = {"RTX PRO 6000": 128}
# Elsewhere trees were seen to lose from 256 to 512 packed tokens on (budget 64 at 8 streams, budget 32 at 16).
DEFAULT_CLIFF = 512


def cliff_of(subject: Subject) -> int:
    """Return from how many packed tokens on a verify step costs more than it gains: the inventory's, the GPU's, or the usual."""
    hardware = subject.host.hardware
    if hardware is not None and hardware.verify_cliff_tokens is not None:
        return hardware.verify_cliff_tokens
    model = (hardware.gpu_model if hardware else None) or ""
    return next((tokens for name, tokens in CLIFFS.items() if name.casefold() in model.casefold()), DEFAULT_CLIFF)


def _cliff(subject: Subject) -> Iterator[Hit]:
    """Hold concurrency × (1 + budget) against the cliff, for trees that pack more than a chain of their block would."""
    budget = subject.launch.knobs.get("tree_budget")
    running = running_of(subject)
    if subject.shape is not Shape.TREE or budget is None or running is None:
        return
    width, block = 1 + budget, subject.launch.knobs.get("block_size")
    if block is not None and width <= block:
        return
    cliff = cliff_of(subject)
    if running * width < cliff:
        return
    first = max(1, -(-cliff // width))
    many = "one request" if first == 1 else f"{first} requests"
    most = (cliff - 1) // running - 1
    lower = f"set tree_budget to {most} or less, or " if most >= 2 else ""
    yield Hit(
        message=f"from {many} on a step verifies {cliff} tokens or more ({first} × (1 + {budget})), and {running} may run",
        key=f"knobs.{subject.launch.algo}.tree_budget",
        remedy=f"{lower}keep the tree for times with fewer than {first} requests" if first > 1 else None,
    )


def _capacity(topk: int, depth: int, enough: int) -> int:
    """Return how many nodes a tree of so many alternatives a depth can have, or `enough` where it has more."""
    total, level = 0, 1
    for _ in range(depth):
        level *= topk
        total += level
        if total >= enough:
            return enough
    return total


def _room(subject: Subject) -> Iterator[Hit]:
    """Find a budget that the cap and the block leave no room for: the rest is verified for nothing (field notes)."""
    knobs = subject.launch.knobs
    names = ("tree_budget", "topk_cap", "block_size")
    if subject.shape is not Shape.TREE or any(name not in knobs for name in names):
        return
    budget, topk, block = (knobs[name] for name in names)
    room = _capacity(topk, block - 1, budget)
    if room < budget:
        yield Hit(
            message=f"tree_budget is {budget}, and {block - 1} depths of {topk} alternatives hold {room} nodes",
            key=f"knobs.{subject.launch.algo}.tree_budget",
            remedy=f"set tree_budget to {room}, or raise topk_cap",
        )


def _page(subject: Subject) -> Iterator[Hit]:
    """Find pages greater than one token under a tree: most builds move accepted nodes token by token (facts §6.1, §7).

    The plugin's trees were tested with pages of 1 and 16 (tests/sglang/test_ddtree_pages.py).
    """
    page = subject.whole("--page-size")
    if subject.shape is Shape.TREE and not subject.plugged and page is not None and page != 1:
        words = f"--page-size is {page} with a tree"
        yield Hit(message=words, key=subject.key(subject.find("--page-size")), remedy="say page-size: 1")


def _overlap(subject: Subject) -> Iterator[Hit]:
    """Find a tree by environment without --disable-overlap-schedule, which that fork's recipe has (facts §6.1, dflash_fixed)."""
    name = "SGLANG_DFLASH_TREE_VERIFY"
    if is_true(subject.env(name)) and not subject.has("--disable-overlap-schedule"):
        yield Hit(
            message=f"{name} makes a tree, and the overlap scheduler is on",
            key=subject.env_key(name),
            remedy="give options: {disable-overlap-schedule: true}",
        )


def _overridden(subject: Subject) -> Iterator[Hit]:
    """Find options whose place the algo's implied flags take: the rendered value is not the inventory's (facts §6.1)."""
    for flag, value in subject.profile.implies.items():
        said = subject.server.options.get(flag)
        if said is not None and said != value and whole(str(said)) != whole(str(value)):
            yield Hit(
                message=f"{flag} is {said} in the inventory and {value} with {subject.launch.algo}",
                key=f"options.{flag}",
                remedy=f"say {value} yourself, so that algos differ in nothing else",
            )


RULES = RuleSet(
    name="tree",
    title="Trees",
    rules=(
        Rule(
            id="W020",
            title="pages of more than one token under a tree",
            reason="Accepted nodes lie scattered in the cache and are moved token by token; most tree engines need "
            "pages of one.",
            remedy="Set page-size to 1, or waive this rule for a build that is known to manage.",
            check=_page,
        ),
        Rule(
            id="W021",
            title="tree over the verification cliff",
            reason="A step verifies concurrency × (1 + budget) tokens; past a step in the GPU's kernels, or in its "
            "arithmetic, a wide "
            "tree costs more time than its accepted tokens save.",
            remedy="Lower tree_budget, or keep the tree for times of few requests; hardware.NAME.verify_cliff_tokens says where "
            "your cliff is.",
            check=_cliff,
        ),
        Rule(
            id="W022",
            title="budget that the tree cannot spend",
            reason="The cap on alternatives and the block's depth hold fewer nodes than the budget; the rest is "
            "verified as padding.",
            remedy="Lower tree_budget or raise topk_cap.",
            check=_room,
        ),
        Rule(
            id="W023",
            title="overlap scheduler under a tree",
            reason="The fork whose variable this is builds trees without the overlap scheduler alone.",
            remedy="Set disable-overlap-schedule.",
            check=_overlap,
        ),
        Rule(
            id="W024",
            title="option that an algo overrides",
            reason="The engine profile gives this algo its own value, so a comparison of algos changes two things at "
            "once.",
            remedy="Give the option the value that every algo can run with.",
            check=_overridden,
        ),
    ),
)
