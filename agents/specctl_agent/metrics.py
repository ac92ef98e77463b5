"""Turn a picture into metrics: base units, GPUs by UUID, and no sample of what is not known or too old to be shown."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.control.sample.gpu import GpuSample, NvmlSample
from specctl.control.sample.host import HostSample
from specctl.fleet.types import AgentMode
from specctl_agent.exposition import Family, Kind, render
from specctl_agent.pictures import Picture, ServerPicture

# Three looks that did not come, of one a second with slack: what is older is not shown as if it were now.
STALE_S = 5.0
NVML = "nvml"
GAUGE, COUNTER = Kind.GAUGE, Kind.COUNTER


def page(picture: Picture) -> bytes:
    """Return the metrics page."""
    return render(families(picture))


def families(picture: Picture) -> Iterator[Family]:
    """Yield every family of the picture, in a fixed order."""
    yield from _agent(picture)
    yield from _collectors(picture)
    yield from _nvml(picture.nvml if _fresh(picture.nvml_age_s) else None)
    yield from _host(picture.host if _fresh(picture.host_age_s) else None)
    yield from _servers(picture.servers)
    yield from _decisions(picture)
    yield from _modes(picture.servers)


def _fresh(age_s: float | None) -> bool:
    return age_s is not None and age_s <= STALE_S


def _agent(picture: Picture) -> Iterator[Family]:
    info = Family("specctl_agent_info", GAUGE, "The agent's version; always 1.")
    info.add(1.0, {"version": picture.version})
    yield info
    yield _one(
        "specctl_agent_start_time_seconds",
        GAUGE,
        "Unix time at which the agent started.",
        picture.started_wall_s or None,
    )
    yield _one("specctl_agent_ticks_total", COUNTER, "Turns of the agent's loop since it started.", picture.ticks)
    yield _one(
        "specctl_agent_late_ticks_total", COUNTER, "Turns that took longer than their period.", picture.late_ticks
    )
    yield _one("specctl_agent_tick_duration_seconds", GAUGE, "How long the last turn took.", picture.tick_s)
    yield _one(
        "specctl_agent_connections_refused_total", COUNTER, "Clients cut off for their manners.", picture.turned_away
    )
    trouble = Family(
        "specctl_agent_trouble", GAUGE, "1 for each thing that keeps the agent from working whole; see its log."
    )
    for subject in picture.troubles:
        trouble.add(1.0, {"subject": subject})
    yield trouble


def _collectors(picture: Picture) -> Iterator[Family]:
    success = Family(
        "specctl_collector_success", GAUGE, "1 if the collector's last look succeeded, 0 if it failed or hangs."
    )
    duration = Family("specctl_collector_duration_seconds", GAUGE, "How long the collector's last look took.")
    age = Family("specctl_collector_age_seconds", GAUGE, "Age of what the collector last saw.")
    looks = Family("specctl_collector_looks_total", COUNTER, "Looks that ended, by their end.")
    hangs = Family("specctl_collector_hangs_total", COUNTER, "Looks that outlived their deadline.")
    for name, (health, age_s) in picture.collectors.items():
        server, _, collector = name.rpartition("/")
        labels = {"collector": collector, **({"server": server} if server else {})}
        blind = name == NVML and picture.nvml is not None and picture.nvml.trouble is not None
        seen = health.successes + health.failures + health.hangs > 0
        success.add(float(health.error is None and not health.hung and not blind) if seen else None, labels)
        duration.add(health.last_duration_s, labels)
        age.add(age_s, labels)
        looks.add(health.successes, {**labels, "result": "success"})
        looks.add(health.failures, {**labels, "result": "failure"})
        hangs.add(health.hangs, labels)
    yield from (success, duration, age, looks, hangs)


def _nvml(sample: NvmlSample | None) -> Iterator[Family]:
    if sample is None:
        return
    up = Family("specctl_nvml_up", GAUGE, "1 if the GPUs' driver answers.")
    up.add(float(sample.trouble is None))
    trouble = Family("specctl_nvml_trouble", GAUGE, "1 with what keeps the GPUs from being sampled.")
    if sample.trouble is not None:
        trouble.add(1.0, {"problem": sample.trouble.problem.value})
    lost = Family("specctl_gpu_lost", GAUGE, "1 for a GPU that gives no sample.")
    for each in sample.lost:
        lost.add(1.0, {"gpu": each.uuid or f"index-{each.index}", "problem": each.trouble.problem.value})
    info = Family("specctl_gpu_info", GAUGE, "What a GPU is; always 1.")
    for fact in sample.facts:
        info.add(1.0, {"gpu": fact.uuid, "index": str(fact.index), "name": fact.name or "", "pci": fact.pci or ""})
    yield from (up, trouble, lost, info)
    yield from _gpus(sample.gpus)
    xids = Family("specctl_gpu_xid_errors_total", COUNTER, "XID events since the agent started.")
    for count in sample.xid_counts:
        xids.add(count.count, {"gpu": count.uuid or "unknown", "xid": str(count.xid)})
    yield xids
    yield _one("specctl_nvml_hangs_total", COUNTER, "Calls to the driver that hung.", sample.health.hangs)
    yield _one("specctl_nvml_hung_seconds_total", COUNTER, "Time spent on calls that hung.", sample.health.hung_s)
    yield _one(
        "specctl_nvml_stuck_processes", GAUGE, "Killed processes that the driver still holds.", sample.health.stuck
    )


def _gpus(gpus: tuple[GpuSample, ...]) -> Iterator[Family]:
    for name, text, value in GPU_GAUGES:
        family = Family(name, GAUGE, text)
        for gpu in gpus:
            family.add(value(gpu), {"gpu": gpu.uuid})
        yield family
    throttled = Family("specctl_gpu_throttled", GAUGE, "1 for each reason that holds a GPU's clocks down.")
    ecc = Family("specctl_gpu_ecc_errors_total", COUNTER, "ECC errors since the driver was loaded.")
    links = Family("specctl_gpu_nvlink_bytes_total", COUNTER, "Bytes over NVLink since the driver was loaded.")
    pcie = Family("specctl_gpu_pcie_bytes_per_second", GAUGE, "Bytes a second over PCIe at the last measurement.")
    for gpu in gpus:
        labels = {"gpu": gpu.uuid}
        for reason in gpu.throttles or ():
            throttled.add(1.0, {**labels, "reason": reason.value})
        if gpu.wear is not None:
            ecc.add(gpu.wear.ecc_corrected, {**labels, "kind": "corrected"})
            ecc.add(gpu.wear.ecc_uncorrected, {**labels, "kind": "uncorrected"})
        if gpu.links is not None:
            links.add(gpu.links.nvlink_tx_bytes, {**labels, "direction": "transmit"})
            links.add(gpu.links.nvlink_rx_bytes, {**labels, "direction": "receive"})
            pcie.add(gpu.links.pcie_tx_bytes_per_s, {**labels, "direction": "transmit"})
            pcie.add(gpu.links.pcie_rx_bytes_per_s, {**labels, "direction": "receive"})
    yield from (throttled, ecc, links, pcie)


GPU_GAUGES = (
    ("specctl_gpu_busy_ratio", "Share of the last period in which a kernel ran.", lambda gpu: gpu.busy_ratio),
    ("specctl_gpu_memory_used_bytes", "Memory in use.", lambda gpu: gpu.memory_used_bytes),
    ("specctl_gpu_memory_total_bytes", "Memory of the GPU.", lambda gpu: gpu.memory_total_bytes),
    ("specctl_gpu_power_watts", "Power drawn.", lambda gpu: gpu.power_w),
    ("specctl_gpu_power_limit_watts", "Power limit.", lambda gpu: gpu.power_limit_w),
    ("specctl_gpu_sm_clock_hertz", "Clock of the multiprocessors.", lambda gpu: gpu.sm_clock_hz),
    ("specctl_gpu_memory_clock_hertz", "Clock of the memory.", lambda gpu: gpu.memory_clock_hz),
    ("specctl_gpu_temperature_celsius", "Temperature.", lambda gpu: gpu.temperature_c),
    (
        "specctl_gpu_processes",
        "Processes that compute on the GPU.",
        lambda gpu: None if gpu.processes is None else len(gpu.processes),
    ),
    ("specctl_gpu_retired_pages", "Memory pages set aside.", lambda gpu: gpu.wear and gpu.wear.retired_pages),
    ("specctl_gpu_remapped_rows", "Memory rows set aside.", lambda gpu: gpu.wear and gpu.wear.remapped_rows),
)


def _host(sample: HostSample | None) -> Iterator[Family]:
    if sample is None:
        return
    yield _one("specctl_host_cpus", GAUGE, "Processors of the host.", sample.cpus)
    yield _one("specctl_host_cpu_ratio", GAUGE, "Share of all processors' time that was not idle.", sample.cpu_ratio)
    yield _one("specctl_host_load1", GAUGE, "Mean number of tasks that run or wait, over a minute.", sample.load_1m)
    yield _one("specctl_host_memory_total_bytes", GAUGE, "Memory of the host.", sample.memory_total_bytes)
    yield _one(
        "specctl_host_memory_available_bytes", GAUGE, "Memory that programs can get.", sample.memory_available_bytes
    )
    yield _one("specctl_host_swap_total_bytes", GAUGE, "Swap of the host.", sample.swap_total_bytes)
    yield _one("specctl_host_swap_used_bytes", GAUGE, "Swap in use.", sample.swap_used_bytes)
    yield _one(
        "specctl_host_disk_total_bytes", GAUGE, "Size of the disk with the agent's state.", sample.disk_total_bytes
    )
    yield _one("specctl_host_disk_free_bytes", GAUGE, "Free space there for ordinary users.", sample.disk_free_bytes)
    active = Family("specctl_unit_active", GAUGE, "1 if systemd calls a server's unit active.")
    restarts = Family("specctl_unit_restarts_total", COUNTER, "Restarts of a server's unit by systemd.")
    memory = Family("specctl_unit_memory_bytes", GAUGE, "Memory charged to a server's control group.")
    limit = Family("specctl_unit_memory_limit_bytes", GAUGE, "Memory limit of a server's control group.")
    kills = Family("specctl_unit_oom_kills_total", COUNTER, "Processes of a server killed for want of memory.")
    for unit in sample.units:
        labels = {"unit": unit.unit}
        active.add(None if unit.active is None else float(unit.active == "active"), labels)
        restarts.add(unit.restarts, labels)
        memory.add(unit.memory_bytes, labels)
        limit.add(unit.limit_bytes, labels)
        kills.add(unit.oom_kills, labels)
    yield from (active, restarts, memory, limit, kills)


def _servers(servers: tuple[ServerPicture, ...]) -> Iterator[Family]:
    running = Family("specctl_server_running_requests", GAUGE, "Requests that the engine works on.")
    waiting = Family("specctl_server_waiting_requests", GAUGE, "Requests that wait in the engine.")
    activity = Family(
        "specctl_server_activity", GAUGE, "1 with what the engine does: active, idle, stale, frozen or unready."
    )
    tokens = Family(
        "specctl_server_decode_tokens_per_second", GAUGE, "Tokens a second while the engine decoded, lately."
    )
    accept = Family(
        "specctl_server_accept_length_tokens", GAUGE, "Tokens committed a verify step, bonus included, lately."
    )
    finding = Family("specctl_server_finding", GAUGE, "1 for each contradiction among the engine's figures.")
    for server in servers:
        labels = {"server": server.server}
        sample = server.sample if _fresh(server.sample_age_s) else None
        if sample is not None:
            running.add(sample.running, labels)
            waiting.add(sample.waiting, labels)
            activity.add(1.0, {**labels, "activity": sample.activity.value})
        decoded = server.figures.decoded if server.figures is not None else None
        tokens.add(None if decoded is None else decoded.tokens_s, labels)
        accept.add(None if decoded is None else decoded.accept_length, labels)
        for each in server.findings:
            finding.add(1.0, {**labels, "finding": each})
    yield from (running, waiting, activity, tokens, accept, finding)


def _decisions(picture: Picture) -> Iterator[Family]:
    conduct = Family("specctl_agent_mode", GAUGE, "1 for what the agent may do with a server.")
    decision = Family("specctl_decision", GAUGE, "1 with the decision and its rule that stand now.")
    age = Family("specctl_decision_age_seconds", GAUGE, "How long the decision has stood.")
    gain = Family("specctl_decision_gain_ratio", GAUGE, "Predicted gain of the best mode over the one that runs.")
    acting = Family("specctl_switching", GAUGE, "1 while the agent switches a server.")
    pin = Family("specctl_pin_remaining_seconds", GAUGE, "How long a pin still holds.")
    held = Family("specctl_held", GAUGE, "1 if somebody told the agent to hold.")
    frozen = Family("specctl_frozen", GAUGE, "1 if the agent froze after a switch whose gain did not show.")
    for server in picture.servers:
        labels = {"server": server.server}
        for each in AgentMode:
            conduct.add(float(each is server.conduct), {**labels, "mode": each.value})
        if server.decided is not None:
            target = "" if server.decided.target is None else str(server.decided.target)
            kind = server.decided.text.partition(" ")[0]
            decision.add(1.0, {**labels, "decision": kind, "target": target, "rule": server.decided.rule})
            age.add(picture.at_s - server.decided.since_s, labels)
        gain.add(server.gain_ratio, labels)
        acting.add(float(server.acting is not None), labels)
        pin.add(server.pin_left_s, labels)
        held.add(float(server.held is not None), labels)
        frozen.add(float(server.frozen is not None), labels)
    yield from (conduct, decision, age, gain, acting, pin, held, frozen)
    yield _one(
        "specctl_decision_changes_total",
        COUNTER,
        "Changes of what the agent decided, since it started.",
        picture.decisions,
    )


def _modes(servers: tuple[ServerPicture, ...]) -> Iterator[Family]:
    running = Family("specctl_server_algo", GAUGE, "1 with the algo and knobs that a server runs.")
    spent = Family(
        "specctl_server_algo_seconds_total", COUNTER, "Time in which a server ran an algo, as the agent saw it."
    )
    switches = Family("specctl_switches_total", COUNTER, "Switches by the agent, by their end.")
    lost = Family("specctl_switch_seconds_total", COUNTER, "Time that switches took.")
    for server in servers:
        labels = {"server": server.server}
        if server.mode is not None:
            running.add(1.0, {**labels, "algo": server.mode.algo, "mode": str(server.mode)})
        for mode, seconds in sorted(server.mode_s.items()):
            spent.add(seconds, {**labels, "algo": mode.partition(":")[0], "mode": mode})
        for each in server.switches:
            told = {"from": each.old, "to": each.new, "means": each.means, "result": each.result}
            switches.add(each.count, {**labels, **told})
        lost.add(server.lost_s, labels)
    yield from (running, spent, switches, lost)


def _one(name: str, kind: Kind, text: str, value: float | None) -> Family:
    family = Family(name, kind, text)
    family.add(value)
    return family
