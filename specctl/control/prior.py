"""A throughput model before anything was measured: published figures, keyed by GPU, model class, tensor parallelism and context.

T(c) = c·τ / (t_verify(c·checked) + t_draft + t_tree), with the tokens that one verify step checks as the axis of its time. It knows
little on purpose: where no table over concurrency was published, or outside of one, it answers None, and the agent says
"calibrate first". Its bounds are wide, so that the policy moves on it only where modes are far apart.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode
from specctl.control.rates import Estimate, Source

LEVELS: Sequence[int] = (1, 4, 8, 16, 32)
BLOCK = 16
"""The block of every DFlash figure below; a mode that names no block is taken to have it."""
Bounds = tuple[float, float, float]
NOISE: Bounds = (0.9, 1.0, 1.1)
"""Another build of the same engine: PR sglang#20547 and the later blog differ by about as much for one GPU and model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of the DFlash paper's Table 3 (arXiv 2602.06036 v2; one B200, SGLang, FA4): tokens a second at LEVELS.

    `plain`: without speculation. `chain`: DFlash, block 16, with the accept length `tau` (bonus included) of the same task.
    """

    plain: Sequence[float]
    chain: Sequence[float]
    tau: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClass:
    """A kind of target: `moe`, and the range of its parameters in billions, all of them."""

    moe: bool
    low_b: float
    high_b: float
    rows: Sequence[Published]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a prior is looked up by; `context_tokens`: mean context of a request, None where unknown (thought short)."""

    gpu: str
    moe: bool
    parameters_b: float
    tensor_parallel: int = 1
    context_tokens: float | None = None


B200: Sequence[ModelClass] = (
    ModelClass(
        moe=False,
        low_b=3.0,
        high_b=6.0,
        rows=(
            Published(plain=(316, 1145, 2201, 4100, 7136), chain=(1531, 4943, 9066, 14477, 20417), tau=8.01),
            Published(plain=(312, 1162, 2217, 4184, 7143), chain=(1247, 4147, 6997, 11234, 15703), tau=6.63),
        ),
    ),
    ModelClass(
        moe=False,
        low_b=6.0,
        high_b=10.0,
        rows=(
            Published(plain=(230, 861, 1666, 3133, 5694), chain=(1175, 3884, 7485, 12268, 16076), tau=8.01),
            Published(plain=(229, 868, 1649, 3253, 5462), chain=(955, 3092, 6010, 9919, 13116), tau=6.50),
        ),
    ),
    ModelClass(
        moe=True,
        low_b=25.0,
        high_b=36.0,
        rows=(
            Published(plain=(229, 686, 1068, 1681, 2713), chain=(802, 2078, 3442, 5429, 8314), tau=8.09),
            Published(plain=(220, 681, 1112, 1733, 2823), chain=(569, 1621, 2554, 4160, 6401), tau=6.42),
            Published(plain=(228, 682, 1057, 1697, 2735), chain=(720, 2052, 3360, 5522, 8538), tau=7.23),
        ),
    ),
)
"""Table 3: Qwen3-4B and Qwen3-8B on Math500 and HumanEval, Qwen3-Coder-30B-A3B on HumanEval, LCB and MBPP."""

TAU: Bounds = (4.07 * 0.86, 6.5, 8.1)
"""Accept length of a block of 16 over tasks: chat (MT-Bench 4.07 at T=1, less the 12-16 % of a higher temperature) to math
(Math500 8.0), the paper's Tables 1 and 3; code (HumanEval 6.5) in between. It does not move with concurrency (sglang#16818)."""

BLOCK_8: Bounds = (0.80, 0.85, 0.91)
"""Accept length of a block of 8 over one of 16, the same drafter: Table 8, 5.09/6.33, 4.44/5.29 and 3.18/3.50."""

TREE_GAIN: Sequence[tuple[int, float]] = (
    (1, 1.0),
    (15, 1.19),
    (31, 1.26),
    (47, 1.29),
    (63, 1.32),
    (95, 1.36),
    (127, 1.38),
)
"""Accept length of a tree over the chain by its budget, the same drafters: CAST (arXiv 2610.00321) on H100, LLaMA-3.1-8B to 31
nodes, Qwen3-8B beyond. Tasks differ by 0.06 either way; budget 1 is a chain of one."""
TREE_GAIN_SPREAD = 0.06

TREE_S: Bounds = (0.0008, 0.002, 0.004)
"""Building the tree on the CPU (0.8-1.5 ms) and, at worst, compacting the KV cache (2.5 ms): CoreWeave's vLLM branch, GB200."""
NO_OVERLAP: Bounds = (1.0, 1.15, 1.33)
"""A tree turns the overlap scheduler off; that costs up to 25-33 % at 32 requests on B200 (sglang#20547 and the blog)."""

CONTEXTS: Sequence[tuple[float, Bounds, float]] = (
    (2048.0, (1.0, 1.0, 1.0), 1.0),
    (4096.0, (0.87, 0.95, 1.0), 1.07),
    (8192.0, (0.73, 0.81, 0.91), 1.5),
    (16384.0, (0.59, 0.67, 0.74), 2.4),
)
"""By mean context: what is left of the accept length (Table 4: hotpotqa, qasper, gov_report) and what a verify step takes more
(CAST, H100, 128 tokens: 24.8, 26.6, 37.9, 60.0 ms; without drafts it stays). Beyond 16K nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The published figures for one class, as a throughput model; `keep` and `slower` are the context's."""

    rows: Sequence[Published]
    keep: Bounds = (1.0, 1.0, 1.0)
    slower: float = 1.0

    @property
    def modes(self) -> Sequence[Mode]:
        """Return none: it answers for whatever mode it is asked of."""
        return ()

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the estimate; None outside the published concurrency and packed tokens."""
        if not LEVELS[0] <= concurrency <= LEVELS[-1]:
            return None
        found = self._plain(concurrency) if ALGOS[mode.algo].shape is Shape.NONE else self._drafted(mode, concurrency)
        if found is None:
            return None
        low, value, high = found
        return Estimate(value=value, low=low * NOISE[0], high=high * NOISE[2], source=Source.PRIOR)

    def _plain(self, concurrency: float) -> Bounds:
        rates = [_between(LEVELS, row.plain, concurrency) for row in self.rows]
        return min(rates), sum(rates) / len(rates), max(rates)

    def _drafted(self, mode: Mode, concurrency: float) -> Bounds | None:
        knobs = dict(mode.knobs)
        checked = ALGOS[mode.algo].checked({"block_size": BLOCK, **knobs})
        tau = _accepted(mode, knobs)
        if checked is None or tau is None:
            return None
        step = self._step_s(concurrency * checked)
        if step is None:
            return None
        tree = ALGOS[mode.algo].shape is Shape.TREE
        extra, factor = (TREE_S, NO_OVERLAP) if tree else ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        low, value, high = (
            concurrency * tau[place] * self.keep[place] / (step[other] * self.slower * factor[other] + extra[other])
            for place, other in ((0, 2), (1, 1), (2, 0))
        )
        return low, value, high

    def _step_s(self, packed: float) -> Bounds | None:
        """Return the seconds of a step, draft included, that checks so many tokens: what Table 3 implies; below its first, that."""
        packs = [level * BLOCK for level in LEVELS]
        if packed > packs[-1]:
            return None
        steps = [
            _between(
                packs, [c * row.tau / rate for c, rate in zip(LEVELS, row.chain, strict=True)], max(packed, packs[0])
            )
            for row in self.rows
        ]
        return min(steps), sum(steps) / len(steps), max(steps)


def prior(key: Key) -> Prior | None:
    """Return the published figures for a server; None where there are none over concurrency."""
    if "B200" not in key.gpu.upper() or key.tensor_parallel != 1:
        return None
    context = key.context_tokens or 0.0
    band = next(((keep, slower) for top, keep, slower in CONTEXTS if context <= top), None)
    if band is None:
        return None
    for one in B200:
        if one.moe == key.moe and one.low_b <= key.parameters_b < one.high_b:
            return Prior(rows=one.rows, keep=band[0], slower=band[1])
    return None


def _accepted(mode: Mode, knobs: dict[str, int]) -> Bounds | None:
    """Return the accept length; None for a block or a budget that nobody published."""
    block = knobs.get("block_size", BLOCK)
    if not BLOCK // 2 <= block <= BLOCK:
        return None
    share = (block - BLOCK // 2) / (BLOCK // 2)
    low, value, high = (tau * (part + (1 - part) * share) for tau, part in zip(TAU, BLOCK_8, strict=True))
    if ALGOS[mode.algo].shape is not Shape.TREE:
        return low, value, high
    budget = knobs.get("tree_budget")
    budgets = [one for one, _ in TREE_GAIN]
    if budget is None or not budgets[0] <= budget <= budgets[-1]:
        return None
    gain = _between(budgets, [one for _, one in TREE_GAIN], budget)
    return low * (gain - TREE_GAIN_SPREAD), value * gain, high * (gain + TREE_GAIN_SPREAD)


def _between(places: Sequence[float], values: Sequence[float], at: float) -> float:
    """Interpolate linearly; `at` lies within the places."""
    right = max(1, bisect.bisect_left(places, at))
    left = right - 1
    share = (at - places[left]) / (places[right] - places[left])
    return values[left] + (values[right] - values[left]) * share
