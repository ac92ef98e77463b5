"""The inventories that ship: the example is sound and shows both platforms; the field's gives its deployment exactly."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from pathlib import Path

from specctl.adapters.inventory_files import BuiltInProfiles, read_file
from specctl.fleet.overrides import Overrides
from specctl.fleet.resolve import Resolved, resolve
from specctl.fleet.select import Selection, select
from specctl.fleet.types import Hardware, Server, ServiceManager, Via

INVENTORY = Path(__file__).parents[3] / "inventory"


def load(name: str) -> Resolved:
    """Resolve an inventory that ships."""
    return resolve([read_file(str(INVENTORY / name))], BuiltInProfiles())


def test_the_example_has_both_platforms_and_this_machine() -> None:
    """ct200 over PCIe, b300 over NVLink, and local without SSH or systemd; metrics on and a key for every server."""
    fleet = load("example.yaml").fleet
    ct200, b300, local = fleet.hosts
    assert [host.name for host in fleet.hosts] == ["ct200", "b300", "local"]
    assert ct200.hardware == Hardware(
        name="ct200",
        gpu_model="RTX PRO 6000 Blackwell",
        gpu_count=8,
        gpu_memory_bytes=96 * 2**30,
        interconnect="pcie",
        verify_cliff_tokens=128,
        note="No NVLink; NCCL goes over PCIe.",
    )
    assert b300.hardware is not None
    assert (b300.hardware.gpu_model, b300.hardware.gpu_count, b300.hardware.interconnect) == ("B300 SXM6", 8, "nvlink")
    assert (local.via, local.manager, local.servers[0].profile.engine) == (Via.LOCAL, ServiceManager.SUPERVISOR, "lab")
    for host in fleet.hosts:
        for server in host.servers:
            assert server.options["--enable-metrics"] is True
            assert "api_key" in server.secrets


def test_the_example_offers_every_algo_of_its_servers() -> None:
    """Each server of the example can be asked for each algo of its profile."""
    inventory = load("example.yaml")
    for host, server in select(inventory.fleet, Selection(everything=True)):
        for algo in server.profile.algos:
            ((_, over),) = inventory.over([(host, server)], Overrides(algo=algo))
            assert over == dataclasses.replace(
                server, algo=algo, provenance={**server.provenance, "algo": over.provenance["algo"]}
            )


def test_what_ships_names_no_real_machine() -> None:
    """Addresses are those reserved for documentation."""
    for file in (*INVENTORY.glob("*.yaml"), INVENTORY.parent / "specctl" / "ops" / "starter.yaml"):
        for address in re.findall(r"address: ([^\s,}]+)", file.read_text(encoding="utf-8")):
            reserved = address.endswith(".example.com") or ipaddress.ip_address(address) in ipaddress.ip_network(
                "192.0.2.0/24"
            )
            assert reserved, f"{file.name}: {address}"


def field_server() -> Server:
    """Return the field's server."""
    return load("field.yaml").fleet.hosts[0].servers[0]


def test_the_field_is_as_it_was() -> None:
    """Flags in the unit's order, environment and models of the deployment that specctl was born from."""
    server = field_server()
    assert list(server.options.items()) == [
        ("--mem-fraction-static", 0.85),
        ("--context-length", 32768),
        ("--max-running-requests", 64),
        ("--page-size", 1),
        ("--num-continuous-decode-steps", 8),
        ("--attention-backend", "triton"),
        ("--trust-remote-code", True),
        ("--grammar-backend", "none"),
    ]
    assert dict(server.env) == {
        "LD_LIBRARY_PATH": "/root/venv_sglang211/lib/python3.12/site-packages/nvidia/cu13/lib:"
        "/root/venv_sglang211/lib/python3.12/site-packages/nvidia/cuda_runtime/lib:/usr/local/cuda-13.0/lib64",
        "NCCL_IB_DISABLE": "1",
        "NCCL_P2P_LEVEL": "5",
        "NCCL_ALGO": "Ring",
        "OMP_NUM_THREADS": "8",
    }
    assert (server.python, server.cuda_home) == ("/root/venv_sglang211/bin/python", "/usr/local/cuda-13.0")
    assert (server.bind, server.port, server.tp, server.gpus) == ("0.0.0.0", 30001, 8, tuple(range(8)))
    assert (server.target.path, server.draft and server.draft.path) == (
        "/root/models/Kimi-K2.6",
        "/root/models/Kimi-K2.6-DFlash-tmp-long",
    )
    assert (server.profile.module, dict(server.secrets)) == (("sglang.launch_server",), {})


def test_the_field_waives_in_the_open() -> None:
    """What a linter would say of the deployment is waived, each with its reason."""
    waivers = field_server().waivers
    assert [waiver.rule for waiver in waivers] == ["W031", "W032", "W033", "W051"]
    assert all(waiver.reason.endswith("the deployment as it was") for waiver in waivers)


def test_the_fields_fork_reads_its_own_log_line() -> None:
    """The tree line of the field's fork matches the line that was seen, and the file says that flags are not public."""
    profile = field_server().profile
    line = "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=2.00 avg_commit_len=2.00"
    line += " avg_accepted_depth=5.00"
    assert profile.tree_line is not None
    found = re.search(profile.tree_line, line)
    assert found is not None
    assert found.groupdict() == {
        "bs": "1",
        "tree_budget": "7",
        "nodes": "8.00",
        "drafts": "2.00",
        "commit": "2.00",
        "depth": "5.00",
    }
    assert "not public" in (profile.notes or "")
    assert dict(field_server().knobs["ddtree"]) == {"block_size": 8, "tree_budget": 7, "topk_cap": 1}
