"""A stand-in for `nvidia-smi` on a test host: a small script that prints files, whose shape tests/data/nvidia-smi describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.host import Host

PROGRAM = "/usr/local/bin/nvidia-smi"
FOLDER = "/usr/local/lib/fake-nvidia-smi"
DATA = Path(__file__).parents[1] / "data" / "nvidia-smi"
SCRIPT = f"""#!/bin/sh
case "$*" in
    *fabric.state*) name=fabric ;;
    *--query-gpu=*) name=gpus ;;
    *--query-compute-apps=gpu_uuid,*) name=apps ;;
    *--query-compute-apps=*) name=used ;;
    *topo*) name=topo ;;
    *) name=version ;;
esac
[ -e {FOLDER}/hang ] && exec sleep 600
cat "{FOLDER}/$name" 2>/dev/null
exit "$(cat "{FOLDER}/status" 2>/dev/null || echo 0)"
"""


def read(name: str) -> str:
    """Return one of the files of tests/data/nvidia-smi."""
    return (DATA / name).read_text(encoding="utf-8")


def gpus(count: int, megabytes: int, **changes: str) -> str:
    """Return the rows of so many GPUs; `changes` are fields of the first by their name in host/gpus.py."""
    places = {"used": 4, "persistence": 6, "mig": 7, "limit": 8}
    rows = []
    for index in range(count):
        fields = [str(index), f"GPU-{index}", "NVIDIA Test", str(megabytes), "0", "580.95.05", "Enabled", "Disabled"]
        fields += ["600.00", "600.00", "30", f"00000000:0{index + 1}:00.0"]
        for name, value in changes.items() if index == 0 else ():
            fields[places[name]] = value
        rows.append(", ".join(fields))
    return "\n".join(rows) + "\n"


@dataclass(frozen=True, slots=True)
class Nvidia:
    """The stand-in on one host."""

    host: Host

    def says(self, files: Mapping[str, str], *, status: int = 0) -> None:
        """Let it print these from now on: gpus, apps, used, topo, fabric, version."""
        self.host.output(["rm", "-rf", FOLDER])
        for name, content in {"version": read("version.txt"), **files, "status": f"{status}\n"}.items():
            self.host.put(f"{FOLDER}/{name}", content.encode())

    def hangs(self) -> None:
        """Let it never answer, as beside a driver that is stuck."""
        self.host.put(f"{FOLDER}/hang", b"")


@contextmanager
def installed(host: Host) -> Iterator[Nvidia]:
    """Install the stand-in on a host; it is gone again at the end."""
    host.put(PROGRAM, SCRIPT.encode(), mode=0o755)
    try:
        yield Nvidia(host)
    finally:
        host.output(["rm", "-rf", PROGRAM, FOLDER])
