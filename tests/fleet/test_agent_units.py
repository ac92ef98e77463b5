"""Watching units on real systemd, as an ordinary user."""

from __future__ import annotations

import json
import sys

from tests.fleet import fleet as fleets

UNIT = "specctl-watched.service"
# Looks at the unit, and once more for each line of its input; for the watch two seconds pass with each look.
WATCH = f"""
import dataclasses, itertools, json, sys
from specctl_agent.samplers.host_units import ASK_AGAIN_S, UnitWatch
watch = UnitWatch(["{UNIT}"])
for look, _ in enumerate(itertools.chain(["first"], iter(sys.stdin.readline, ""))):
    print(json.dumps(dataclasses.asdict(watch.sample(look * ASK_AGAIN_S)[0])), flush=True)
"""
# Runs the watch beside a unit that it starts, kills and stops, and prints what was seen each time.
STORY = f"""
import json, os, subprocess, sys, time
def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
def pid():
    return int(run("systemctl", "show", "--value", "--property=MainPID", "{UNIT}"))
run("systemd-run", "--unit", "{UNIT}", "--property=Restart=always", "--property=RestartSec=0", "--property=MemoryMax=64M",
    "sleep", "infinity")
argv = ["runuser", "-u", "ops", "--", sys.executable, "-c", sys.argv[1]]
watch = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
seen = [json.loads(watch.stdout.readline())]
def look():
    watch.stdin.write("again\\n")
    watch.stdin.flush()
    seen.append(json.loads(watch.stdout.readline()))
first = pid()
os.kill(first, 9)
while pid() in (0, first):
    time.sleep(0.02)
look()
run("systemctl", "stop", "{UNIT}")
look()
watch.stdin.close()
print(json.dumps([first, seen]))
"""


def test_a_unit_is_watched_through_its_life(fleet: fleets.Fleet) -> None:
    """An ordinary user sees a unit run, a new start of it at once, and its end; its memory and limit while it runs."""
    host = next(iter(fleet.hosts.values()))
    pid, (runs, again, ended) = json.loads(host.output([sys.executable, "-c", STORY, WATCH]))
    assert (runs["load"], runs["active"], runs["sub"], runs["restarts"]) == ("loaded", "active", "running", 0)
    assert runs["main_pid"] == pid
    assert runs["processes"] == 1
    assert runs["limit_bytes"] == 64 << 20
    assert 0 < runs["memory_bytes"] < 64 << 20
    assert (again["active"], again["restarts"]) == ("active", 1)
    assert again["main_pid"] != pid
    assert len(again["invocation"]) == 32
    assert again["invocation"] != runs["invocation"]
    assert (ended["active"], ended["main_pid"], ended["memory_bytes"], ended["processes"]) == (
        "inactive",
        None,
        None,
        None,
    )
