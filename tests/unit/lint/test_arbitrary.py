"""No launch makes a rule crash, whatever its options, variables, unit lines, knobs and limits say."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.engines.types import Argument, Credential
from specctl.lint.catalogue import by_id
from specctl.lint.flags import FlagTable
from specctl.lint.run import lint, merged
from specctl.lint.subject import Subject
from specctl.ops.lint import flag_table
from specctl.rollout.launch import Launch
from tests.examples import HOSTILE
from tests.unit.lint.subjects import Made, fleet, subject

pytestmark = pytest.mark.slow  # hundreds of whole launches

FLAGS = sorted({*flag_table("sglang-0.5.23").flags, *flag_table("sglang-0.5.23").changes})
# Variables and lines that rules look at, so that chance reaches them.
VARIABLES = (
    "NCCL_P2P_LEVEL",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_P2P_DISABLE",
    "NCCL_IB_DISABLE",
    "CUDA_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PROMETHEUS_MULTIPROC_DIR",
    "SGLANG_RUST_SERVER",
    "SGLANG_HEALTH_CHECK_TIMEOUT",
    "SGL_FORCE_SHUTDOWN",
    "HF_TOKEN",
    "SGLANG_DFLASH_TREE_VERIFY",
)
LINES = ("Type", "KillMode", "KillSignal", "TimeoutSec", "PrivateTmp", "ProtectHome", "LimitNOFILE", "TasksMax", "Nice")
TEXTS = st.text(max_size=12) | st.sampled_from(
    [
        "",
        "-",
        "--",
        "=",
        "-1",
        "1e999",
        "nan",
        "32K",
        "٣",
        "²",
        "9" * 30,
        "true",
        "NONE",
        "DFLASH",
        ":",
        "127.0.0.1:",
        "[::]:x",
    ]
)
VALUES = (
    TEXTS | st.booleans() | st.integers(min_value=-(10**20), max_value=10**20) | st.floats() | st.tuples(TEXTS, TEXTS)
)
OPTIONS = st.dictionaries(st.sampled_from(FLAGS) | TEXTS.map(lambda text: f"--{text}"), VALUES, max_size=8)
ENV = st.dictionaries(st.sampled_from(VARIABLES) | TEXTS, TEXTS, max_size=6)
EXTRA = st.lists(st.tuples(st.sampled_from(LINES) | TEXTS, TEXTS), max_size=4).map(tuple)
SECONDS = st.floats(min_value=0, max_value=1e7)
ARGUMENTS = st.lists(
    st.sampled_from(FLAGS)
    | TEXTS
    | TEXTS.map(lambda text: f"--{text}")
    | TEXTS.map(lambda text: Credential(name=text)),
    max_size=12,
).map(tuple)
SERVERS = ("stock", "pr", "fork", "unlisted", "lab")


def check(judged: Subject) -> None:
    """Lint, and hold what is found to what views and programs rely on."""
    found = lint(judged)
    assert merged([*found, *found]) == found
    for one in found:
        assert one.rule is by_id()[one.rule.id]
        assert one.message
        assert one.remedy
        assert one.algos == (judged.launch.algo,)


@settings(max_examples=HOSTILE)
@given(
    of=st.sampled_from(SERVERS),
    options=OPTIONS,
    env=ENV,
    extra=EXTRA,
    seconds=st.tuples(SECONDS, SECONDS, SECONDS, SECONDS),
    port=st.integers(1, 65535),
    bind=TEXTS,
    tp=st.none() | st.integers(1, 1024),
    hardware=st.sampled_from([None, {}, {"interconnect": None}, {"interconnect": "nvlink"}, {"gpu_memory_bytes": 1}]),
    data=st.data(),
)
def test_arbitrary_settings(
    of: str,
    options: dict[str, str | int | float | bool | tuple[str, ...]],
    env: dict[str, str],
    extra: tuple[tuple[str, str], ...],
    seconds: tuple[float, float, float, float],
    port: int,
    bind: str,
    tp: int | None,
    hardware: dict[str, object] | None,
    data: st.DataObject,
) -> None:
    """Any options, variables, unit lines, limits, port, address and machine are findings or silence."""
    base = fleet().hosts[0].server(of)
    assert base is not None
    algo = data.draw(st.sampled_from(sorted(base.profile.algos)))
    limits = dict(zip(("load_s", "drain_s", "stop_s", "stall_s"), seconds, strict=True))
    server = {"port": port, "bind": bind, "tp": tp}
    made = Made(
        of=of,
        algo=algo,
        options=options,
        env=env,
        unit={"extra": extra},
        limits=limits,
        server=server,
        hardware=hardware,
    )
    check(subject(made))


@settings(max_examples=HOSTILE)
@given(argv=ARGUMENTS, env=ENV, of=st.sampled_from(SERVERS), listed=st.booleans())
def test_arbitrary_arguments(*, argv: tuple[Argument, ...], env: dict[str, str], of: str, listed: bool) -> None:
    """Any argv and environment, of whatever origin, are findings or silence."""
    server = fleet().hosts[0].server(of)
    assert server is not None
    table: FlagTable | None = flag_table("sglang-0.5.23") if listed else None
    launch = Launch(host="gpu1", server=of, algo="dflash", argv=("python", "-m", *argv), env=env, knobs={})
    check(Subject.of(fleet().hosts[0], server, launch, table))


@given(st.dictionaries(st.sampled_from(["block_size", "tree_budget", "topk_cap", "x"]), st.integers(1, 1024)))
def test_arbitrary_knobs(knobs: dict[str, int]) -> None:
    """Any knobs, whole or in part, are findings or silence."""
    judged = subject(Made(of="fork", algo="ddtree"))
    check(dataclasses.replace(judged, launch=dataclasses.replace(judged.launch, knobs=knobs)))
