"""Launches to be linted, made from the built-in profiles: a sound base, and what a test changes in it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.engines.types import FlagValue
from specctl.fleet.types import (
    Fleet,
    Hardware,
    Host,
    Limits,
    SecretRef,
    SecretSource,
    Server,
    ServiceManager,
    UnitSettings,
)
from specctl.lint.run import lint
from specctl.lint.subject import Subject
from specctl.lint.types import Finding
from specctl.ops import lint as linter
from specctl.rollout import launch as launches
from tests.unit.fleet.inventories import resolved

BASE = """
engine_profiles:
  fork:
    extends: sglang-pr29907
    version: null
    algos:
      ddtree:
        implies: {--disable-overlap-schedule: null, --page-size: null}
        knobs: {topk_cap: --speculative-ddtree-topk-cap}
        knob_env: {topk_cap: null}
  unlisted: {extends: sglang-0.5.23, flag_list: null}
models:
  big: {path: /srv/big, size: 590GB}
  small: {path: /srv/small, kind: draft, block_size: 8, size: 6GB}
hardware:
  box: {gpus: {model: RTX PRO 6000 Blackwell, count: 8, memory: 96GiB}, interconnect: pcie}
hosts:
  gpu1: {hardware: box, servers: [stock, pr, fork, plugin, unlisted, lab]}
defaults:
  launch:
    python: /opt/sglang/bin/python
    secrets: {api_key: env:A, admin_api_key: env:B}
    options: {max-running-requests: 8, enable-metrics: true}
    knobs: {dflash: {block_size: 8}}
servers:
  stock: {engine: sglang-0.5.23, target: big, draft: small, port: 30001, tp: 8, gpus: "0-7"}
  pr:
    {engine: sglang-pr29907, target: big, draft: small, port: 30002, tp: 8,
     knobs: &tree {ddtree: {block_size: 8, tree_budget: 7, topk_cap: 2}}}
  fork: {engine: fork, target: big, draft: small, port: 30003, tp: 8, knobs: *tree}
  plugin: {engine: sglang-0.5.23+ddtree, target: big, draft: small, port: 30006, tp: 8, knobs: *tree}
  unlisted: {engine: unlisted, target: big, draft: small, port: 30004, tp: 8}
  lab: {engine: lab, target: big, draft: small, port: 30005, knobs: *tree}
"""


@functools.cache
def fleet() -> Fleet:
    """Return the sound base; every server but the first leaves the GPUs to it."""
    return resolved(BASE).fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What differs from the base: each mapping is laid over that of the server, `server` and `host` replace fields."""

    of: str = "stock"
    algo: str = "dflash"
    options: Mapping[str, FlagValue | None] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    knobs: Mapping[str, int | None] = field(default_factory=dict)
    secrets: tuple[str, ...] | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    unit: Mapping[str, object] = field(default_factory=dict)
    server: Mapping[str, object] = field(default_factory=dict)
    draft: Mapping[str, object] = field(default_factory=dict)
    target: Mapping[str, object] = field(default_factory=dict)
    hardware: Mapping[str, object] | None = field(default_factory=dict)
    select: Mapping[str, FlagValue] = field(default_factory=dict)
    algo_env: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, object] = field(default_factory=dict)
    supervisor: bool = False


def _laid(base: Mapping[str, FlagValue], over: Mapping[str, FlagValue | None]) -> dict[str, FlagValue]:
    merged = {**base, **over}
    return {name: value for name, value in merged.items() if value is not None}


def _server(made: Made, base: Server) -> Server:
    profile = base.profile
    if made.select or made.algo_env:
        algo = dataclasses.replace(
            profile.algos[made.algo],
            select={**profile.algos[made.algo].select, **made.select},
            env=made.algo_env,
        )
        profile = dataclasses.replace(profile, algos={**profile.algos, made.algo: algo})
    knobs = {
        name: value for name, value in {**base.knobs.get(made.algo, {}), **made.knobs}.items() if value is not None
    }
    names = tuple(base.secrets) if made.secrets is None else made.secrets
    draft = base.draft and dataclasses.replace(base.draft, **made.draft)  # type: ignore[arg-type]  # of the test's own
    changed: Mapping[str, object] = {
        "profile": profile,
        "options": _laid(base.options, made.options),
        "env": {**base.env, **made.env},
        "knobs": {**base.knobs, made.algo: knobs},
        "secrets": {name: SecretRef(source=SecretSource.ENV, locator="X") for name in names},
        "limits": dataclasses.replace(Limits(), **made.limits),
        "unit": dataclasses.replace(UnitSettings(), **made.unit),  # type: ignore[arg-type]  # of the test's own
        "target": dataclasses.replace(base.target, **made.target),  # type: ignore[arg-type]  # of the test's own
        "draft": draft,
        **made.server,
    }
    return dataclasses.replace(base, **changed)  # type: ignore[arg-type]  # of the test's own


def subject(made: Made) -> Subject:
    """Return the launch that a test describes."""
    base = fleet().hosts[0]
    one = base.server(made.of)
    assert one is not None
    server = _server(made, one)
    others = [dataclasses.replace(each, **made.beside) for each in base.servers if each.name != made.of]  # type: ignore[arg-type]
    hardware: Hardware | None = None
    if made.hardware is not None and base.hardware is not None:
        hardware = dataclasses.replace(base.hardware, **made.hardware)  # type: ignore[arg-type]  # of the test's own
    host: Host = dataclasses.replace(
        base,
        hardware=hardware,
        servers=(server, *others),
        manager=ServiceManager.SUPERVISOR if made.supervisor else ServiceManager.SYSTEMD,
    )
    return linter.subject(host, server, launches.build(host, server, made.algo))


def findings(made: Made) -> tuple[Finding, ...]:
    """Return what the linter says of the launch."""
    return lint(subject(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A rule with a launch that breaks it, a word of what is then said, and one like it that does not.

    `also` are the rules that the broken launch breaks besides; nothing else may be said of it.
    """

    rule: str
    broken: Made
    says: str
    kept: Made = Made()
    also: tuple[str, ...] = ()
    key: str | None = None


def check_broken(case: Case) -> None:
    """Hold the broken launch to the rule: it is found, with the words and the place, and nothing else is."""
    found = findings(case.broken)
    mine = [one for one in found if one.rule.id == case.rule]
    assert [one for one in mine if case.says in one.message], [f"{one.rule.id} {one.message}" for one in found]
    assert {one.rule.id for one in found} == {case.rule, *case.also}
    if case.key is not None:
        assert case.key in [one.key for one in mine]


def check_kept(case: Case) -> None:
    """Hold the other launch to silence about the rule."""
    assert case.rule not in {one.rule.id for one in findings(case.kept)}
