"""The inventory for the real engine on a CPU, laid over what the test changes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fleet.site import KEY
from tests.sglang import environment

SERVER = "real"
UNIT = f"specctl-{SERVER}.service"
FOLDER = f"/var/lib/specctl/{SERVER}"
PORT = 30200
HOST = "gpu1"
ADMIN_KEY = "sk-admin-fedcba9876543210"
SECRETS = {"SITE_KEY": KEY, "SITE_ADMIN_KEY": ADMIN_KEY}
# A start takes half a minute, and took five on two cores with twenty programs at work.
LIMITS = {"load": "600s", "stall": "180s", "drain": "120s", "stop": "30s", "smoke": "120s"}
# --mem-fraction-static counts the machine's whole memory; with more than this the engine can use all of it up.
OPTIONS: Mapping[str, object] = {
    "device": "cpu",
    "attention-backend": "torch_native",
    "disable-overlap-schedule": True,
    "mem-fraction-static": 0.3,
    "enable-metrics": True,
    "max-total-tokens": 32768,
    "max-running-requests": 8,
}
MEMORY_MAX = "6GiB"
# What the linter rightly says of DFLASH on a CPU, and the stand-ins make untrue.
WAIVERS = {
    "E019": "the tests' stand-ins let DFLASH start on a CPU",
    "W014": "the tests' stand-ins let a draft use torch's own attention",
}
BLOCK = 8
TREE_PROFILE = "hoped-for"
PLUGIN_PROFILE = "real-with-plugin"
ON_A_CPU = {"--attention-backend": "torch_native", "--speculative-draft-attention-backend": "torch_native"}
TREE = {"ddtree": {"block_size": BLOCK, "tree_budget": 16, "topk_cap": 4}}

# The built-in profile, with the one flag more that DFLASH needs on a CPU.
PROFILES: Mapping[str, object] = {
    "real": {
        "extends": "sglang-0.5.23",
        "algos": {"dflash": {"implies": {"--speculative-draft-attention-backend": "torch_native"}}},
    },
    # The built-in profile with the plugin, in the attention that a CPU has.
    PLUGIN_PROFILE: {
        "extends": "sglang-0.5.23+ddtree",
        "algos": {algo: {"implies": ON_A_CPU} for algo in ("dflash", "ddtree")},
    },
    # Somebody's hope: the flags of a fork, written down for an engine that is none.
    TREE_PROFILE: {
        "extends": "real",
        "algos": {
            "ddtree": {
                "select": {"--speculative-algorithm": "DDTREE"},
                "draft": "--speculative-draft-model-path",
                "knobs": {
                    "block_size": "--speculative-dflash-block-size",
                    "tree_budget": "--speculative-ddtree-budget",
                    "topk_cap": "--speculative-ddtree-topk-cap",
                },
                "capability": "DDTREE",
                "live_proof": [{"kind": "meta", "pattern": "spec_verify_ct"}],
            }
        },
    },
}


def environ() -> dict[str, str]:
    """Return the environment of an engine on a CPU."""
    return {
        # The copy of a kernel for GPUs, in torch.
        "SGLANG_NATIVE_MOVE_KV_CACHE": "1",
        "HF_HUB_OFFLINE": "1",
        "SGLANG_USE_CPU_ENGINE": "1",
        # So small a model is slower on two threads that wait for each other than on one.
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(environment.STANDIN_PATH),
    }


def inventory(
    *, engine: str = "real", target: str | None = None, launch: Mapping[str, object] | None = None, **limits: str
) -> dict[str, object]:
    """Return an inventory of one server on one host, with that engine profile and target, and these limits over the usual.

    `launch` is laid over the server's settings on the host.
    """
    models = environment.models()
    server = {
        "engine": engine,
        "target": "tiny",
        "draft": "tiny-dflash",
        "port": PORT,
        "algo": "none",
        "venv": str(environment.venv()),
        "knobs": {"dflash": {"block_size": BLOCK}} | (TREE if engine in (TREE_PROFILE, PLUGIN_PROFILE) else {}),
        "options": dict(OPTIONS),
        "env": environ(),
        "limits": LIMITS | limits,
        "unit": {"memory_max": MEMORY_MAX},
        "waivers": dict(WAIVERS),
        "secrets": {"api_key": "env:SITE_KEY", "admin_api_key": "env:SITE_ADMIN_KEY"},
    }
    return {
        "engine_profiles": dict(PROFILES),
        "models": {
            "tiny": {"path": target or str(models / "target")},
            "tiny-dflash": {"kind": "draft", "path": str(models / "draft"), "target": "tiny"},
        },
        "servers": {SERVER: server},
        "hosts": {HOST: {"servers": [SERVER], "launch": dict(launch or {})}},
    }
