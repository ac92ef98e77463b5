"""Secrets that an engine prints in clear, and whose characters mean something to shells and units, are nowhere they need not be."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

import yaml

from tests.fleet import places
from tests.fleet.places import ALLOW_FAULTS, Place
from tests.fleet.site import Site

SECRETS = {
    "SITE_KEY": "sk-%n$HOME\"'\\api-0123456789",
    "SITE_ADMIN": "sk-${PATH}`id`;admin-0123456789",
    "SITE_TOKEN": "hf_%%h $(id) #token 0123456789",
}
# Where they have to be: the release's own two files, the agent's keys, and the engine's log and credentials, which are its own.
ALLOWED = ("engine.yaml", "secrets.env", "api_key", "admin_api_key")


def describe(site: Site, fault: str | None = None) -> None:
    """Write an inventory with all three secrets."""
    places.describe(site, options={"inject": fault} if fault else {})
    path = site.fleet.home / "inventory.yaml"
    whole = yaml.safe_load(path.read_text())
    whole["servers"]["lab"]["secrets"] = {
        "api_key": "env:SITE_KEY",
        "admin_api_key": "env:SITE_ADMIN",
        "hf_token": "env:SITE_TOKEN",
    }
    if fault:
        whole["servers"]["lab"]["env"] = dict(ALLOW_FAULTS)
    path.write_text(yaml.safe_dump(whole, sort_keys=False))


class Eye:
    """Looks at every command line of the machine, the hosts' too, until it is closed."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=10.0)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = path.read_bytes().decode("utf-8", "replace")
                except OSError:
                    continue
                self.seen.update(name for name, secret in SECRETS.items() if secret in words)


def test_secrets_are_nowhere(site: Site) -> None:
    """Deployed, failed, rolled back, listed and logged: the keys are in no argv, unit, plan, record, event, state or shown log."""
    place = Place(site, "gpu1")
    site.env.update(SECRETS)
    describe(site)
    said: list[str] = []
    with Eye() as eye:
        for inject, commands in (
            (None, ["deploy --algo none --yes --diff", "deploy --algo ddtree --yes --json"]),
            (
                "oom:graph",
                [
                    "deploy --algo dflash --dry-run --diff",
                    "deploy --algo dflash --yes",
                    "deploy --algo ddtree --yes --json",
                ],
            ),
            (
                None,
                [
                    "status --json",
                    "history --json",
                    "facts --json",
                    "preflight",
                    "logs -n 1000",
                    "lint",
                    "render",
                    "health",
                ],
            ),
        ):
            describe(site, inject)
            for command in commands:
                done = place.run(command)
                said += [done.stdout, done.stderr]
    assert eye.seen == set()
    assert [row["result"] for row in place.records()] == ["done", "done", "rolled back", "rolled back"]
    shown = "".join(said)
    assert "server_args" in shown  # the engine's line with its keys was there to be blotted out
    own = "".join(
        path.read_text(errors="replace")
        for path in (site.fleet.home / ".local/state/specctl").rglob("*")
        if path.is_file()
    )
    for name, secret in SECRETS.items():
        assert secret not in shown, name
        assert secret not in own, name
        found = place.machine.console(
            ["grep", "-rlF", "--", secret, "/etc", "/var/lib/specctl", "/run/systemd/system"]
        ).stdout
        assert {Path(path).name for path in found.split()} <= set(ALLOWED), (name, found)
    where = " ".join(
        f"{place.folder}/{path}" for path in ("releases/*/engine.yaml", "releases/*/secrets.env", "agent/keys/*")
    )
    modes = place.machine.output(["sh", "-c", f"stat -c '%a %n' {where}"])
    assert {line.split()[0] for line in modes.splitlines()} == {"600"}
