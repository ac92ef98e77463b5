"""Limits and the unit: what would cut a load or a drain short, or take from the gate what it depends on (engine facts §3.3, §8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specctl.fleet.types import ServiceManager
from specctl.lint.rules.memory import size_text_short
from specctl.lint.subject import Subject, is_false, is_true, whole
from specctl.lint.types import Hit, Rule, RuleSet

# After its last request the engine looks every 5 s whether it may leave, then gives its schedulers 15 s (facts §3.3).
ENGINE_EXIT_S = 20.0
# What the field's host loaded: 590 GB in 8 minutes; slower disks take longer, so a limit below this is too short for anyone.
LOAD_BYTES_PER_S = 590e9 / 480
BIG_BYTES = 50_000_000_000
# Lines of [Service] that break what the gate and a stop depend on, whatever their value, and why (facts §3.3, surprises 19-20).
_BREAKING: Mapping[str, str] = {
    "TimeoutSec": "ends the load after that time",
    "RuntimeMaxSec": "ends a healthy server after that time",
    "WatchdogSec": "kills the server, which sends no sd_notify",
    "ExecStop": "stops the engine before it could drain",
    "RemainAfterExit": "keeps a dead engine's unit active, and death is not seen",
    "GuessMainPID": "may follow the wrong process",
    "PIDFile": "may follow the wrong process",
    "ExecReload": "pretends that a launch can change without a restart",
    "StandardOutput": "takes the log away from the gate, which reads the journal",
    "StandardError": "takes the log away from the gate, which reads the journal",
    "LogNamespace": "takes the log away from the gate, which reads the default journal",
    "SuccessExitStatus": "hides how the engine ended",
    "RestartPreventExitStatus": "keeps a crashed server down",
    "RestartForceExitStatus": "starts again what was meant to end",
    "KillMode": "specctl needs mixed: SIGTERM for the main process alone",
    "Type": "specctl needs exec: the engine sends no readiness",
    "TimeoutStartSec": "ends a load that takes minutes",
    "Restart": "is unit.restart's to say",
    "ExecStart": "is the launch itself",
}
# Hardening under which CUDA, JIT compilation or NCCL cannot work, with the values that do the harm.
_HARMFUL: Mapping[str, tuple[str, str]] = {
    "MemoryDenyWriteExecute": ("true", "compiled kernels cannot be mapped"),
    "PrivateDevices": ("true", "the GPUs are hidden"),
    "ProtectHome": ("any", "engines and caches in home folders are hidden"),
    "PrivateNetwork": ("true", "the port is reached by nobody"),
    "PrivateUsers": ("true", "devices and caches belong to nobody"),
    "PrivateIPC": ("true", "shared memory of other processes is not seen"),
    "DynamicUser": ("true", "caches and models are no longer readable"),
    "NoExecPaths": ("any", "compiled kernels cannot be run"),
    "ProtectSystem": ("strict", "caches of compiled kernels cannot be written"),
    "RootDirectory": ("any", "the engine, its models and its driver are outside"),
    "RootImage": ("any", "the engine, its models and its driver are outside"),
    "IPAddressDeny": ("any", "the port may be reached by nobody"),
    "SystemCallFilter": ("any", "CUDA and NCCL use calls that filters leave out"),
    "DeviceAllow": ("any", "GPUs that it does not name are closed"),
    "DevicePolicy": ("any", "GPUs that are not allowed by name are closed"),
    "PrivateTmp": ("false", "metric files of earlier runs and of other servers mix"),
    "SendSIGKILL": ("false", "what does not end keeps its GPU memory for ever"),
}


def _no_drain(subject: Subject) -> Iterator[Hit]:
    """Find a drain limit of 0: every running request is cut off (facts §3.3)."""
    if subject.server.limits.drain_s == 0:
        yield Hit(message="limits.drain is 0: every stop cuts running requests off", key="limits.drain")


def _short_drain(subject: Subject) -> Iterator[Hit]:
    """Find a drain limit under the engine's own way out: it is the unit's TimeoutStopSec too (facts §3.3, surprise 18)."""
    drain_s = subject.server.limits.drain_s
    if 0 < drain_s < ENGINE_EXIT_S:
        words = (
            f"limits.drain is {drain_s:g} s, and an engine without requests takes up to {ENGINE_EXIT_S:g} s to leave"
        )
        yield Hit(message=words, key="limits.drain", remedy=f"give it {ENGINE_EXIT_S:g} s or more")


def _drain_under_stop(subject: Subject) -> Iterator[Hit]:
    """Find a drain limit under the stop limit: requests get less time than the cleanup after them."""
    limits = subject.server.limits
    if ENGINE_EXIT_S <= limits.drain_s < limits.stop_s:
        words = f"limits.drain is {limits.drain_s:g} s and limits.stop {limits.stop_s:g} s"
        yield Hit(message=words, key="limits.drain")


def _short_load(subject: Subject) -> Iterator[Hit]:
    """Find a load limit that no host was seen to keep for so many bytes (field notes: 590 GB in 8 minutes; facts §8 row 28)."""
    models = (subject.server.target, subject.server.draft if subject.profile.draft else None)
    size = sum(model.size_bytes for model in models if model is not None and model.size_bytes is not None)
    expected_s = size / LOAD_BYTES_PER_S
    load_s = subject.server.limits.load_s
    if size >= BIG_BYTES and load_s < expected_s:
        words = f"limits.load is {load_s:g} s, and {size_text_short(size)} took about {expected_s:.0f} s where loads were measured"
        yield Hit(message=words, key="limits.load", remedy=f"give it {2 * expected_s / 60:.0f}m, or leave it at 20m")


def _deaf_stall(subject: Subject) -> Iterator[Hit]:
    """Find a stall limit that the load limit reaches first: a hung load is then called too slow (design: gate)."""
    limits = subject.server.limits
    if limits.stall_s >= limits.load_s:
        words = (
            f"limits.stall is {limits.stall_s:g} s and limits.load {limits.load_s:g} s: a hung load is never called so"
        )
        yield Hit(message=words, key="limits.stall")


def _no_restart(subject: Subject) -> Iterator[Hit]:
    """Find a server that stays down after a crash: the engine ends itself on any scheduler failure (surprises 7, 17)."""
    if not subject.server.unit.restart:
        yield Hit(
            message="unit.restart is false: a crash leaves the server down until somebody looks", key="unit.restart"
        )


def _breaking(subject: Subject) -> Iterator[Hit]:
    """Find lines of [Service] that take from the gate or a stop what they depend on (facts §3.3, §8 row 30; surprise 19)."""
    for name, value in subject.server.unit.extra:
        why = _BREAKING.get(name)
        if why is not None:
            yield Hit(message=f"{name}={value} {why}", key=f"unit.extra.{name}")
        elif name == "FinalKillSignal" or (name == "KillSignal" and value.strip() not in ("SIGTERM", "15")):
            yield Hit(message=f"{name}={value} is no SIGTERM, on which the engine drains", key=f"unit.extra.{name}")


def _does_harm(when: str, value: str) -> bool:
    """Say whether a value of a hardening line is one that does harm."""
    if when == "true":
        return is_true(value)
    if when == "false":
        return is_false(value)
    said = value.strip()
    return said != "" and not is_false(said) if when == "any" else said == when


def _harmful(subject: Subject) -> Iterator[Hit]:
    """Find hardening that JIT compilation, NCCL and engines in home folders do not survive (design: the unit)."""
    for name, value in subject.server.unit.extra:
        found = _HARMFUL.get(name)
        if found is None:
            continue
        when, why = found
        if _does_harm(when, value):
            yield Hit(message=f"{name}={value}: {why}", key=f"unit.extra.{name}")


def _roots_own(subject: Subject) -> Iterator[Hit]:
    """Find paths below /root for an ordinary user, who cannot read them (field: engine and models below /root)."""
    server = subject.server
    if server.unit.user in (None, "root", "0"):
        return
    paths = {"python": server.python, "target": server.target.path, "working_dir": server.working_dir or ""}
    if subject.profile.draft and server.draft is not None:
        paths["draft"] = server.draft.path
    for key, path in paths.items():
        if path.startswith("/root/"):
            yield Hit(message=f"{key} is {path}, which user {server.unit.user} cannot read", key=key)


def _not_systemd(subject: Subject) -> Iterator[Hit]:
    """Find settings that supervisor has no word for (rollout/unit.py, supervisor_values)."""
    if subject.host.manager is not ServiceManager.SUPERVISOR:
        return
    unit = subject.server.unit
    if unit.memory_max is not None:
        yield Hit(message="unit.memory_max holds under systemd alone", key="unit.memory_max")
    if unit.extra:
        names = ", ".join(dict.fromkeys(name for name, _ in unit.extra))
        yield Hit(message=f"unit.extra holds under systemd alone ({names})", key="unit.extra")


def _few_files(subject: Subject) -> Iterator[Hit]:
    """Find limits below what the unit gives already: shards, sockets and pinned memory need them (facts §1.4: ulimits)."""
    least = {"LimitNOFILE": 65_536, "LimitMEMLOCK": 2**40, "TasksMax": 4096, "LimitNPROC": 4096, "LimitAS": 2**46}
    for name, value in subject.server.unit.extra:
        count = whole(value.partition(":")[0])
        if name in least and count is not None and count < least[name]:
            yield Hit(
                message=f"{name}={value} is less than an engine over several GPUs needs", key=f"unit.extra.{name}"
            )


RULES = RuleSet(
    name="unit",
    title="Limits and the unit",
    rules=(
        Rule(
            id="W080",
            title="no time to drain",
            reason="Nothing waits for running requests, and the service manager kills the engine at once.",
            remedy="Give limits.drain the time of your longest answers; 2m is usual.",
            check=_no_drain,
        ),
        Rule(
            id="W081",
            title="drain shorter than the engine's way out",
            reason="The limit is also the unit's TimeoutStopSec: the engine is killed before it could have left by "
            "itself.",
            remedy="Raise limits.drain.",
            check=_short_drain,
        ),
        Rule(
            id="N080",
            title="drain shorter than the stop",
            reason="Requests get less time to end than processes and ports get to vanish; perhaps the two were mixed "
            "up.",
            remedy="Raise limits.drain, or lower limits.stop.",
            check=_drain_under_stop,
        ),
        Rule(
            id="W082",
            title="load limit too short for the model",
            reason="The gate gives a healthy load up at the limit and rolls it back, and the next try would end the "
            "same.",
            remedy="Raise limits.load to twice what a load takes; slow disks take far longer.",
            check=_short_load,
        ),
        Rule(
            id="N081",
            title="stall limit that never speaks",
            reason="The load limit ends the gate first, and the verdict is slow where it should have been stalled.",
            remedy="Lower limits.stall below limits.load.",
            check=_deaf_stall,
        ),
        Rule(
            id="W083",
            title="no restart after a crash",
            reason="The engine ends itself on any failure of a scheduler; a restart heals most of them.",
            remedy="Take unit.restart out, or say true.",
            check=_no_restart,
        ),
        Rule(
            id="E080",
            title="line that breaks the unit",
            reason="The gate and the stop of a release depend on how specctl writes the unit: exec, no start limit, "
            "SIGTERM to one process, "
            "its log in the journal.",
            remedy="Take the line out of unit.extra.",
            check=_breaking,
        ),
        Rule(
            id="W085",
            title="hardening that an engine does not survive",
            reason="The unit hardens what CUDA, JIT compilation and NCCL survive; this goes further.",
            remedy="Take the line out of unit.extra.",
            check=_harmful,
        ),
        Rule(
            id="W088",
            title="root's files for another user",
            reason="/root is closed to everybody else: the engine does not start, or ends when it opens its model.",
            remedy="Move what the engine reads out of /root, or let it run as root.",
            check=_roots_own,
        ),
        Rule(
            id="W087",
            title="unit settings under supervisor",
            reason="supervisor has no word for them: they are left out without a trace.",
            remedy="Say them for hosts with systemd alone.",
            check=_not_systemd,
        ),
        Rule(
            id="W086",
            title="resource limit too low",
            reason="The unit gives ample limits; a later line lowers them, and engines over several GPUs die of that "
            "far from its cause.",
            remedy="Take the line out of unit.extra, or raise it.",
            check=_few_files,
        ),
    ),
)
