"""The facts of one host on one screen: machine, GPUs and how they reach each other, servers; what is not known is —."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.gpu_facts import Gpu, Graphics
from specctl.rollout.machine_facts import Machine
from specctl.rollout.model_facts import ModelFacts
from specctl.rollout.preflight.words import seconds, size
from specctl.ui.text import UNKNOWN

LABEL = 10
DIGEST = 12
WIDE = 110
LEFT = frozenset(("MODEL", "PERSIST", "MIG", "PROCESSES"))


def _size(count: float | None) -> str:
    return UNKNOWN if count is None else size(count)


def _limit(value: float | None, *, in_bytes: bool = False) -> str:
    if value is None:
        return UNKNOWN
    if math.isinf(value):
        return "unlimited"
    return size(value) if in_bytes else f"{value:.0f}"


def _either(yes: str, no: str, *, value: bool | None) -> str:
    return UNKNOWN if value is None else yes if value else no


def clock_text(machine: Machine) -> str:
    """Say how far the clocks are apart, and whether a time service keeps the host's."""
    ahead = machine.clock_ahead_s
    unsure = f"synchronised {UNKNOWN}"
    kept = {True: "synchronised", False: "not synchronised", None: unsure}[machine.clock_synchronised]
    if ahead is None:
        return f"{UNKNOWN}, {kept}"
    apart = "agrees" if abs(ahead) < 1 else f"{seconds(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}"
    return f"{apart}, {kept}"


def _machine_rows(machine: Machine) -> Iterator[tuple[str, str]]:
    yield (
        "system",
        f"{machine.os or UNKNOWN} · kernel {machine.kernel or UNKNOWN} · systemd {machine.systemd or UNKNOWN}",
    )
    count = UNKNOWN if machine.cpu_count is None else str(machine.cpu_count)
    yield "cpu", f"{count}× {machine.cpu_model or UNKNOWN}"
    pages = f" · {size(machine.hugepages_bytes)} in hugepages" if machine.hugepages_bytes else ""
    yield "memory", f"{_size(machine.memory_free_bytes)} free of {_size(machine.memory_bytes)}{pages}"
    for number, disk in enumerate(machine.disks):
        state = "" if disk.writable is not False else " · cannot be written"
        text = f"{_size(disk.free_bytes)} free of {_size(disk.total_bytes)} · {disk.filesystem or UNKNOWN} · {disk.path}{state}"
        yield "disk" if number == 0 else "", text
    yield (
        "limits",
        f"open files {_limit(machine.nofile)} · locked memory {_limit(machine.memlock_bytes, in_bytes=True)}",
    )
    yield "clock", clock_text(machine)


def links_text(graphics: Graphics) -> str:
    """Say how the GPUs reach each other: each kind of link with its number of pairs."""
    if graphics.topology is None:
        return UNKNOWN
    pairs = graphics.topology.pairs(graphics.topology.gpus)
    counted = Counter(link for _, _, link in pairs)
    return ", ".join(f"{count} pairs {link}" for link, count in counted.most_common()) or "one GPU"


def _gpu_rows(graphics: Graphics) -> Iterator[tuple[str, str]]:
    if graphics.problem is not None:
        yield "gpus", graphics.problem
        return
    if graphics.gpus is None:
        yield "gpus", UNKNOWN
        return
    yield "driver", f"{graphics.driver or UNKNOWN} · CUDA {graphics.cuda or UNKNOWN}"
    yield "links", links_text(graphics)
    switches = UNKNOWN if graphics.nvswitches is None else str(graphics.nvswitches)
    yield "fabric", f"{switches} NVSwitches on PCI · fabric manager {graphics.fabric_manager or UNKNOWN}"
    kinds = ", ".join(f"{count}× {kind}" for kind, count in graphics.iommu_kinds.items())
    units = UNKNOWN if graphics.iommu_units is None else str(graphics.iommu_units)
    redirects = UNKNOWN if graphics.acs_redirecting is None else f"{graphics.acs_redirecting} of {graphics.acs_bridges}"
    yield "pci", f"{units} IOMMUs ({kinds or UNKNOWN}) · {redirects} bridges redirect (ACS)"


def _watts(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}"


def gpu_table(graphics: Graphics, width: int) -> Table:
    """Return a row a GPU; narrow terminals lose the settings, never the memory and who holds it."""
    view = Table(box=None, pad_edge=False, header_style="column", show_edge=False)
    wide = width >= WIDE
    names = ["  GPU", "MODEL", "USED", "MEMORY", *(["WATTS", "°C", "PERSIST", "MIG"] if wide else []), "PROCESSES"]
    for name in names:
        view.add_column(name, justify="left" if name in LEFT else "right", overflow="fold")
    for gpu in graphics.gpus or ():
        settings = [
            f"{_watts(gpu.power_limit_w)}/{_watts(gpu.power_default_w)}",
            _watts(gpu.temperature_c),
            _either("on", "off", value=gpu.persistence),
            _either("on", "off", value=gpu.mig),
        ]
        view.add_row(
            str(gpu.index),
            gpu.model or UNKNOWN,
            _size(gpu.used_bytes),
            _size(gpu.memory_bytes),
            *(settings if wide else []),
            _processes(graphics, gpu),
        )
    return view


def _processes(graphics: Graphics, gpu: Gpu) -> str:
    if graphics.processes is None:
        return UNKNOWN
    here = [one for one in graphics.processes if one.gpu == gpu.uuid]
    return ", ".join(f"{one.pid} {one.name} {_size(one.used_bytes)}" for one in here) or "none"


def model_text(model: ModelFacts | None) -> str:
    """Say what is known of a model's folder."""
    if model is None:
        return UNKNOWN
    if not model.there:
        return f"{model.path} · {_either('', 'not there', value=model.there)}"
    lacks = f" · {model.missing_count} files missing" if model.missing_count else ""
    config = model.config
    parts = [] if config is None else [config.model_type, config.quantisation]
    sizes = [] if config is None else [("hidden", config.hidden_size), ("vocabulary", config.vocab_size)]
    sizes += [] if config is None else [("layers", config.layers), ("block", config.block_size)]
    said = [*(part for part in parts if part), *(f"{name} {value}" for name, value in sizes if value is not None)]
    return " · ".join([model.path, _size(model.size_bytes) + lacks, *said])


def _server_rows(server: ServerFacts) -> Iterator[tuple[str, str]]:
    nothing = "nothing deployed" if server.unreadable is None else UNKNOWN
    release = f"release {server.current.id}, {server.current.algo}" if server.current else nothing
    port = server.port.value if server.port else UNKNOWN
    owner = f" ({server.port_owner})" if server.port_owner else ""
    yield "server", f"{server.name} · {release} · unit {server.unit.active or UNKNOWN} · port {port}{owner}"
    runs = _either("", " · cannot be run", value=server.python_runs)
    yield "python", f"{server.python_path or UNKNOWN}{'' if runs == UNKNOWN else runs}"
    for name, version in server.packages.items():
        digest = server.package_digests.get(name, "")[:DIGEST] or UNKNOWN
        yield "package", f"{name} {version} · {digest}"
    yield "target", model_text(server.target)
    yield "draft", model_text(server.draft)
    yield from (("warn", text) for text in (*server.drift, *server.warnings))


def view(facts: HostFacts, width: int) -> Group:
    """Return the whole screen of one host, its table of GPUs in this width."""
    parts: list[RenderableType] = [Text(facts.host, style="host")]
    parts.extend(_line(*row) for row in (*_machine_rows(facts.machine), *_gpu_rows(facts.graphics)))
    if facts.graphics.gpus:
        parts.append(gpu_table(facts.graphics, width))
    for server in facts.servers.values():
        parts.extend(_line(*row) for row in _server_rows(server))
    parts.extend(_line("warn", warning) for warning in facts.warnings)
    return Group(*parts, Text())


def _line(label: str, text: str) -> Text:
    return Text.assemble((f"  {label:<{LABEL}}", "warn" if label == "warn" else "quiet"), text)
