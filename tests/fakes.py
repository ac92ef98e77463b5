"""Values for tests: a small host and server, and facts about them; built by hand, no file is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from specctl.engines.types import AlgoProfile, EngineProfile, Evidence, EvidenceKind
from specctl.fleet.types import Host, Model, SecretRef, SecretSource, Server, ServiceManager, Via
from specctl.rollout.facts import CurrentRelease, ServerFacts
from specctl.rollout.observation import Port, UnitState

DRAFT = "--speculative-draft-model-path"
PROFILE = EngineProfile(
    name="test-engine",
    engine="sglang",
    version="1",
    module=("engine",),
    flags={"target": "--model-path", "port": "--port", "bind": "--host", "tp": "--tp-size", "config": "--config"},
    algos={
        "none": AlgoProfile(algo="none"),
        "dflash": AlgoProfile(
            algo="dflash",
            select={"--speculative-algorithm": "DFLASH"},
            draft=DRAFT,
            knobs={"block_size": "--block-size"},
            live_proof=(Evidence(kind=EvidenceKind.META, pattern="spec_verify_ct"),),
        ),
        "ddtree": AlgoProfile(
            algo="ddtree",
            select={"--speculative-algorithm": "DDTREE"},
            draft=DRAFT,
            knobs={"tree_budget": "--tree-budget"},
            knob_env={"topk_cap": "TOPK_CAP"},
            env={"TREE": "1"},
            implies={"--page-size": 1, "--disable-overlap-schedule": True},
        ),
    },
)

SERVER = Server(
    name="chat",
    profile=PROFILE,
    target=Model(name="big", path="/models/big"),
    draft=Model(name="small", path="/models/small", block_size=16),
    port=30001,
    bind="127.0.0.1",
    algo="dflash",
    python="/opt/venv/bin/python",
    knobs={"ddtree": {"tree_budget": 7, "topk_cap": 2}},
    options={"--page-size": 64, "--trust": True, "--off": False, "--many": ("a", "b c")},
    env={"NCCL_ALGO": "Ring"},
)

HOST = Host(name="gpu1", via=Via.SSH, address="gpu1.example.com", servers=(SERVER,))
LOCAL = Host(
    name="local",
    via=Via.LOCAL,
    manager=ServiceManager.SUPERVISOR,
    state_dir=PurePosixPath("/srv/state"),
    servers=(SERVER,),
)


def with_secrets(*names: str) -> Server:
    """Return the server with references to secrets of these names."""
    refs = {name: SecretRef(source=SecretSource.ENV, locator=name.upper()) for name in names}
    return replace(SERVER, secrets=refs)


def facts(
    manifest: Mapping[str, object] | None = None,
    *,
    release: str = "3",
    algo: str = "dflash",
    active: str = "active",
    records: tuple[Mapping[str, object], ...] = (),
    drift: tuple[str, ...] = (),
) -> ServerFacts:
    """Return facts of a server that runs a release; of one never deployed when there is no manifest."""
    if manifest is None:
        return ServerFacts(name=SERVER.name, unit=UnitState(active="inactive"))
    return ServerFacts(
        name=SERVER.name,
        current=CurrentRelease(id=release, algo=algo, manifest=manifest),
        releases=tuple(str(number) for number in range(1, int(release) + 1)),
        unit=UnitState(active=active, invocation="i1", restarts=0),
        port=Port.OWN,
        records=records,
        drift=drift,
    )
