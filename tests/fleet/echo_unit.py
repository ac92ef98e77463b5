"""Ask real systemd what a unit's process gets: its argv and its environment, for many units in one go.

A unit under observation runs image.ECHO (`ExecStart=/usr/lib/specctl-fleet/echo …`), which prints both to its stdout, and so to
the journal: that works under whatever hardening the unit has. The unit must end by itself, so it may not restart after success.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.fleet import image
from tests.fleet.host import Host
from tests.fleet.waiting import FleetError

PROGRAM = image.ECHO
# What systemd itself adds to every service's environment.
OWN_VARIABLES = frozenset({"INVOCATION_ID", "JOURNAL_STREAM", "LANG", "PATH", "SYSTEMD_EXEC_PID"})
OBSERVED_WITHIN_S = 120.0

# Runs on the host: unit texts come on stdin, what became of each goes to stdout. One call starts all; they end in parallel.
OBSERVER = r"""
import glob, json, os, subprocess, sys, time
texts = json.load(sys.stdin)
folder = "/run/systemd/system/"
names = ["fleet-echo-%s-%d.service" % (os.urandom(4).hex(), number) for number in range(len(texts))]
def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
try:
    for name, text in zip(names, texts):
        with open(folder + name, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    run("systemctl", "daemon-reload")
    said = run("systemctl", "start", *names)
    def states():
        shown = run("systemctl", "show", "--property=ActiveState,Result,ExecMainStatus,InvocationID,LoadState", *names)
        return [dict(line.split("=", 1) for line in block.splitlines()) for block in shown.strip().split("\n\n")]
    deadline = time.monotonic() + 90
    now = states()
    while any(one["ActiveState"] not in ("inactive", "failed") for one in now) and time.monotonic() < deadline:
        time.sleep(0.02)
        now = states()
    run("journalctl", "--sync")
    lines = {}
    fields = run("journalctl", "--output=json", "--all", "--no-pager", *("_SYSTEMD_UNIT=" + name for name in names))
    for entry in map(json.loads, filter(None, fields.split("\n"))):  # splitlines() would part a line at U+2028
        if isinstance(entry["MESSAGE"], str):
            lines.setdefault(entry["_SYSTEMD_UNIT"], []).append(entry["MESSAGE"])
    print(json.dumps([dict(state, lines=lines.get(name, []), said=said) for name, state in zip(names, now)]))
finally:
    for name in names:
        if os.path.exists(folder + name):
            os.unlink(folder + name)
    subprocess.run(["systemctl", "stop", *names], capture_output=True)
    subprocess.run(["systemctl", "daemon-reload"])
    subprocess.run(["systemctl", "reset-failed", "fleet-echo-*"], capture_output=True)
"""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one process was started with; bytes that are not UTF-8 are surrogate escapes."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]


def observe(host: Host, unit_text: str) -> Observation:
    """Return what the unit's process got; raise FleetError with systemd's words when it did not run."""
    (observation,) = observe_all(host, [unit_text])
    return observation


def observe_all(host: Host, unit_texts: Sequence[str]) -> tuple[Observation, ...]:
    """Return what the process of each unit got, in order; raise FleetError when one of them did not run."""
    if not unit_texts:
        return ()
    asked = json.dumps(list(unit_texts))
    done = host.console(["python3", "-c", OBSERVER], stdin=asked, timeout_s=OBSERVED_WITHIN_S)
    if done.returncode != 0:
        raise FleetError(f"{host.name}: observing units: {done.stderr.strip()}")
    return tuple(_observation(text, seen) for text, seen in zip(unit_texts, json.loads(done.stdout), strict=True))


def _observation(unit_text: str, seen: dict[str, object]) -> Observation:
    printed = seen["lines"]
    assert isinstance(printed, list)
    lines = [line.removeprefix("echo:") for line in printed if isinstance(line, str) and line.startswith("echo:")]
    try:
        got = json.loads(base64.b64decode("".join(lines), validate=True))
    except (binascii.Error, ValueError) as error:
        outcome = {key: seen[key] for key in ("LoadState", "ActiveState", "Result", "ExecMainStatus")}
        raise FleetError(f"a unit did not run: {outcome}: {seen['said']}\n{unit_text}") from error
    pairs = (entry.partition("=") for entry in got["environ"])
    return Observation(tuple(got["argv"]), {name: value for name, _, value in pairs})
