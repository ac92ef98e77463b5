"""Places for tests of faults: a server on a host that a fault befalls, the moments of an act on it, and what must be so in the end.

Several places may be at work at once, so that what takes its time (a dead owner's lease, a silent host) is waited for once.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO

from tests.fleet import site as sites
from tests.fleet.host import Host
from tests.fleet.site import KEY, PORT, Site
from tests.fleet.waiting import FleetError, until

LIMITS = {"load": "60s", "stall": "40s", "drain": "5s", "stop": "5s", "confirm": "5s"}
ALLOW_FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}
# A moment of an act comes within this, and an act that nothing hinders ends within this, on a machine that is busy otherwise.
MOMENT_S = 120.0
# Phases of a guard that does nothing any more; what is left of its files goes with the next act or boot.
OVER = ("confirmed", "ended")
ACT_S = 180.0
NEW = {"context-length": 512}
# A client that asks again and again while its flag is there, and ends when nobody answers any more.
ASK = """
import json, os, sys, urllib.request
url, key, flag = sys.argv[1:]
asked = {"text": "def main():", "sampling_params": {"max_new_tokens": 400, "temperature": 0, "ignore_eos": True}}
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
while os.path.exists(flag):
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(asked).encode(), headers)).read()
"""


@dataclass(frozen=True, slots=True)
class Place:
    """One server on one host; `number` makes its name and its port."""

    site: Site = field(hash=False, compare=False, repr=False)
    host: str
    number: int = 0

    @property
    def server(self) -> str:
        """Return the server's name."""
        return "lab" if self.number == 0 else f"lab{self.number}"

    @property
    def port(self) -> int:
        """Return the server's port."""
        return PORT + self.number

    @property
    def folder(self) -> str:
        """Return the server's folder on the host."""
        return f"/var/lib/specctl/{self.server}"

    @property
    def unit(self) -> str:
        """Return the server's unit."""
        return f"specctl-{self.server}.service"

    @property
    def machine(self) -> Host:
        """Return the host."""
        return self.site.host(self.host)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that select it on the command line."""
        return "--host", self.host, "--server", self.server

    def run(self, command: str, *more: str, timeout_s: float = ACT_S) -> subprocess.CompletedProcess[str]:
        """Run a specctl command on it to its end."""
        return self.site.run(*command.split(), *self.words, *more, timeout_s=timeout_s)

    def begin(self, command: str, *more: str) -> Told:
        """Start a specctl command on it."""
        return Told(self.site.start(command, *self.words, *more))

    def deploy(self, algo: str = "none") -> None:
        """Deploy it, and require that it went well."""
        done = self.run("deploy", "--algo", algo, "--yes")
        assert done.returncode == 0, done.stderr

    def row(self) -> Mapping[str, object]:
        """Return its row of `specctl status`."""
        rows = self.site.read("status", *self.words)["servers"]
        assert isinstance(rows, list)
        (found,) = rows
        assert isinstance(found, dict)
        return found

    def records(self) -> list[dict[str, object]]:
        """Return the records that lie on its host."""
        found = self.read("records.jsonl")
        return [json.loads(line) for line in (found or b"").splitlines()]

    def last(self) -> tuple[object, object, object]:
        """Return who ended the last act on the host, how, and what serves since, by its record."""
        row = self.records()[-1]
        who = "guard" if row["who"] == "guard" else "operator"
        serving = row["serving"]
        return who, row["result"], tuple(serving) if isinstance(serving, list) else None

    def read(self, path: str) -> bytes | None:
        """Return the content of a file of its folder, None where there is none or the host is off."""
        with contextlib.suppress(FileNotFoundError, FleetError, ProcessLookupError):
            return self.machine.read(f"{self.folder}/{path}")
        return None

    def show(self, name: str) -> str:
        """Return a property of its unit."""
        return self.machine.output(["systemctl", "show", "--value", "-p", name, self.unit]).strip()

    def has(self, path: str) -> bool:
        """Claim that a file or folder lies in its folder, seen from outside the host: it may be asked many times a second."""
        return (self.machine.root / self.folder.lstrip("/") / path).exists()

    def current(self) -> tuple[str, str] | None:
        """Return release and algo of what a boot would start."""
        link = self.machine.root / self.folder.lstrip("/") / "current"
        if not link.is_symlink():
            return None
        _, release, file = link.readlink().parts
        return release, file.removesuffix(".service")

    def processes(self) -> frozenset[str]:
        """Return the processes of its unit, seen from outside the host."""
        groups = self.machine.root / "sys/fs/cgroup"
        found = [group / "system.slice" / self.unit / "cgroup.procs" for group in (groups / "systemd", groups)]
        return frozenset(pid for path in found if path.exists() for pid in path.read_text().split())

    def engines(self) -> list[int]:
        """Return the processes on the host that serve its port, whoever started them."""
        shown = self.machine.console(["pgrep", "--full", f"[s]pecctl.lab serve.* --port {self.port}( |$)"])
        return [int(pid) for pid in shown.stdout.split()]

    def leased(self) -> bool:
        """Claim that a lease on it is alive."""
        found = self.read("lock")
        if not found:
            return False
        lease = json.loads(found)
        alive = lease["expires_s"] is None or time.clock_gettime(time.CLOCK_BOOTTIME) < lease["expires_s"]
        return bool(alive) and lease["boot"] == self.machine.boot_id()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Keep the server busy, one request after the other, while the block lasts."""
        machine, flag = self.machine, f"/run/asking-{self.port}"
        machine.put(flag, b"")
        url = f"http://127.0.0.1:{self.port}/generate"
        asking = threading.Thread(
            target=lambda: machine.console(["python3", "-c", ASK, url, KEY, flag], timeout_s=ACT_S), daemon=True
        )
        asking.start()
        until(lambda: self.row()["running"] == 1, within_s=MOMENT_S, what="the request runs")
        try:
            yield
        finally:
            machine.console(["rm", "-f", flag])
            asking.join(timeout=MOMENT_S)


class Told:
    """A command under way, and all that it has said; its output is read by threads of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.printed: list[str] = []
        self._readers = [
            threading.Thread(target=_gather, args=(stream, into), daemon=True)
            for stream, into in ((process.stderr, self.said), (process.stdout, self.printed))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def errors(self) -> str:
        """Return what it has said on standard error."""
        return "".join(self.said)

    def when(self, condition: Callable[[], bool], what: str, within_s: float = MOMENT_S) -> None:
        """Wait for a moment of the command's, which must not have ended before."""

        def come() -> bool:
            assert self.process.poll() is None, f"ended {self.process.returncode} before {what}: {self.errors}"
            return condition()

        until(come, within_s=within_s, what=what)

    def has_said(self, *words: str) -> bool:
        """Claim that a line with one of the words came."""
        return any(word in line for line in tuple(self.said) for word in words)

    def says(self, word: str, within_s: float = MOMENT_S) -> None:
        """Wait until it says a word."""
        self.when(lambda: self.has_said(word), f"it says {word!r}", within_s)

    def ends(self, within_s: float = ACT_S) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait(timeout=within_s)
        for reader in self._readers:
            reader.join(timeout=10.0)
        return code


def _gather(stream: IO[str] | None, into: list[str]) -> None:
    for line in stream or ():
        into.append(line)  # noqa: PERF402  # a line counts when it comes, not at the end


def describe(
    site: Site,
    servers: int = 1,
    *,
    options: Mapping[str, object] | None = None,
    limits: Mapping[str, str] | None = None,
    connect: Mapping[str, object] | None = None,
    python: str = "python3",
) -> None:
    """Write an inventory of so many servers a host, with these options and limits; faults are allowed where one is asked for."""
    launch: dict[str, object] = {"options": dict(options or {}), "limits": {**LIMITS, **(limits or {})}}
    if "inject" in (options or {}):
        launch["env"] = ALLOW_FAULTS
    whole = sites.inventory(site.hosts, launch, connect or {})
    servers_part, hosts = whole["servers"], whole["hosts"]
    assert isinstance(servers_part, dict)
    assert isinstance(hosts, dict)
    base = servers_part["lab"]
    places = [Place(site, site.hosts[0], number) for number in range(servers)]
    whole["servers"] = {place.server: {**base, "port": place.port} for place in places}
    for host in hosts.values():
        host.update(servers=[place.server for place in places], python=python)
    site.write(whole)


def serving(site: Site, hosts: Sequence[str]) -> list[Place]:
    """Deploy a server with algo none on these hosts, then change the inventory so that the next deploy writes release 2."""
    describe(site)
    chosen = (word for host in hosts for word in ("--host", host))
    done = site.run("deploy", *chosen, "--algo", "none", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    describe(site, options=NEW)
    return [Place(site, host) for host in hosts]


def together(work: Callable[[Place], object], places: Sequence[Place]) -> None:
    """Do the work on every place at once; the first that fails is raised once all have ended."""
    with ThreadPoolExecutor(len(places)) as pool:
        for future in [pool.submit(work, place) for place in places]:
            future.result()


def moment(place: Place, told: Told, name: str, before: frozenset[str] = frozenset()) -> None:
    """Wait until an act from release 1 to release 2 has come to a step; `before`: the processes that served before it began.

    Each sign is the host's own, or a line of the command's.
    """
    signs: dict[str, Callable[[], bool]] = {
        "write": lambda: place.has("releases/2"),
        "drain": lambda: place.has("guard/state.json"),
        "swap": lambda: place.current() != ("1", "none"),
        "stop": lambda: told.has_said("  stop ") or not before <= place.processes(),
        "start": lambda: bool(place.processes() - before),
        "gate": lambda: told.has_said("  start      0:", "  weights ", "  graphs "),
        "smoke": lambda: told.has_said("  ready "),
        "record": lambda: told.has_said("  deployed "),
    }
    told.when(signs[name], f"the step {name}")


STEPS = ("write", "drain", "swap", "stop", "start", "gate", "smoke", "record")


def at_rest(place: Place, within_s: float) -> None:
    """Wait until nobody is at work on the place: no guard, and no lease that is alive."""

    def over() -> bool:
        try:
            state = json.loads(place.read("guard/state.json") or b'{"phase": "ended"}')
            return place.machine.is_running and state["phase"] in OVER and not place.leased()
        except (FleetError, OSError, ValueError):  # the host is on its way down or up, or the lease is being renewed
            return False

    until(over, within_s=within_s, what=f"{place.server} on {place.host} at rest")


def require_one(place: Place, serving: tuple[str, str]) -> None:
    """Require that exactly one release runs, which is what a boot would start, and that it generates; and no guard is left."""
    row, engines = place.row(), place.engines()
    seen = f"{place}: {row}, engines {engines}, last record {place.records()[-1:]}"
    assert len(engines) == 1, seen
    assert str(engines[0]) == place.show("MainPID"), seen
    assert (row["release"], row["algo"], row["state"]) == (*serving, "ready"), seen
    assert str(row["note"] or "last").startswith("last"), seen  # no drift; at most how the last act ended
    assert place.current() == serving, seen
    assert row["guard"] is None, seen
    answer = place.run("ask", "--tokens", "8", "def")
    assert answer.returncode == 0, f"{seen}: {answer.stderr}"


def require_stopped(place: Place) -> None:
    """Require that nothing of the server runs, that no boot would start it, and that no guard is left."""
    row = place.row()
    assert row["state"] in ("stopped", "failed", "not deployed"), row
    assert (place.processes(), place.engines(), row["guard"]) == (frozenset(), [], None), row
    assert place.machine.console(["systemctl", "is-enabled", "--quiet", place.unit]).returncode != 0, row
