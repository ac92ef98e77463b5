"""A site: test hosts with an inventory of lab servers, and specctl run on it as its operator would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.fleet.fleet import Fleet
from tests.fleet.host import Host

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "specctl" / "lab" / "models"
KEY = "sk-site-0123456789abcdef"
PORT = 30100
UNIT = "specctl-lab.service"
FOLDER = "/var/lib/specctl/lab"
# A unit with a /tmp of its own would not see a checkout that lies there.
IN_TMP = any(str(path).startswith(("/tmp/", "/var/tmp/")) for path in (ROOT, Path(sys.executable)))


def inventory(hosts: tuple[str, ...], launch: Mapping[str, object], connect: Mapping[str, object]) -> dict[str, object]:
    """Return an inventory that runs one lab server on each host; `launch` is laid over the server's own settings."""
    return {
        "models": {
            "lab-target": {"path": str(MODELS / "target")},
            "lab-draft": {"kind": "draft", "path": str(MODELS / "dflash"), "target": "lab-target"},
        },
        "servers": {
            "lab": {
                "engine": "lab",
                "target": "lab-target",
                "draft": "lab-draft",
                "port": PORT,
                "algo": "dflash",
                "python": sys.executable,
                "knobs": {
                    "dflash": {"block_size": 8},
                    "ddtree": {"block_size": 8, "tree_budget": 16, "topk_cap": 8},
                },
                "options": {"enable-metrics": True, "max-running-requests": 8},
                "limits": {"load": "60s", "stall": "30s", "drain": "5s", "stop": "5s"},
                "secrets": {"api_key": "env:SITE_KEY"},
                "unit": {"extra": {"PrivateTmp": "no"} if IN_TMP else {}},
            }
        },
        "hosts": {name: {"servers": ["lab"], "connect": dict(connect), "launch": dict(launch)} for name in hosts},
    }


@dataclass(slots=True)
class Site:
    """The fleet with an inventory in the operator's home."""

    fleet: Fleet
    hosts: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    server: str = "lab"

    def write(self, content: Mapping[str, object]) -> None:
        """Write an inventory into the operator's home."""
        (self.fleet.home / "inventory.yaml").write_text(yaml.safe_dump(dict(content), sort_keys=False))

    def describe(self, launch: Mapping[str, object] | None = None, connect: Mapping[str, object] | None = None) -> None:
        """Write the inventory anew, with these launch and connection settings on every host."""
        self.write(inventory(self.hosts, launch or {}, connect or {}))

    def environment(self) -> dict[str, str]:
        """Return what the operator's shell has set."""
        return {"SITE_KEY": KEY, "NO_COLOR": "1", **self.env}

    def run(self, *arguments: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a specctl command to its end."""
        return self.fleet.specctl(*arguments, env=self.environment(), timeout_s=timeout_s)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a specctl command."""
        command = [str(Path(sys.executable).with_name("specctl")), *arguments]
        return self.fleet.start(command, env=self.environment())

    def read(self, *arguments: str) -> dict[str, object]:
        """Run a reading command with --json and return what it printed."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    def row(self, host: str) -> dict[str, object]:
        """Return a host's row of `specctl status`."""
        rows = self.read("status", "--host", host)["servers"]
        assert isinstance(rows, list)
        assert len(rows) == 1
        found = rows[0]
        assert isinstance(found, dict)
        return found

    def records(self, host: str) -> list[dict[str, object]]:
        """Return the records that lie on a host."""
        shown = self.fleet.hosts[host].console(["cat", f"/var/lib/specctl/{self.server}/records.jsonl"])
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def host(self, name: str) -> Host:
        """Return a host."""
        return self.fleet.hosts[name]

    def unit(self, host: str, *properties: str) -> dict[str, str]:
        """Return what systemd says of the server's unit."""
        shown = self.fleet.hosts[host].output(
            ["systemctl", "show", f"specctl-{self.server}.service", f"--property={','.join(properties)}"]
        )
        return dict(line.split("=", 1) for line in shown.splitlines())


def wait_for_line(process: subprocess.Popen[str], word: str) -> None:
    """Read a command's standard error until a line with the word comes; the pipe stays open for what follows."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    raise AssertionError(f"the command ended without saying {word}")
