"""The examples of docs/lab-server.md are true."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx

from tests.labserver import ALLOW_FAULTS, LabServer, free_port, wait_until

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "lab-server.md").read_text(encoding="utf-8")


def test_the_command_starts_a_server(logs: Path) -> None:
    """The documented command serves the shipped models from a checkout, on another port."""
    joined = TEXT.replace("\\\n", " ")
    words = shlex.split(re.search(r"^    (python -m specctl\.lab serve .*)$", joined, re.MULTILINE)[1])  # type: ignore[index]  # it is there
    port = free_port()
    argv = [sys.executable, *words[1:-1], str(port)]
    with (logs / "documented.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        assert words[-2:] == ["--port", "30000"]
        wait_until(lambda: _ready(port), what="the documented server")
    finally:
        process.kill()
        process.wait()


def _ready(port: int) -> bool:
    """Tell whether a server answers /ready with 200."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def test_the_switch_is_taken(server: LabServer) -> None:
    """The documented body switches the algorithm."""
    body = json.loads(re.search(r"^    POST /set_internal_state  (.*)$", TEXT, re.MULTILINE)[1])  # type: ignore[index]  # it is there
    assert server.post("/set_internal_state", body).json() == [True]
    assert server.post("/set_internal_state", {"server_args": {"speculative_algorithm": None}}).json() == [True]


def test_every_option_is_documented() -> None:
    """Each option of the parser is named in the document."""
    listed = subprocess.run(
        [sys.executable, "-m", "specctl.lab", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=ALLOW_FAULTS,
    ).stdout
    names = set(re.findall(r"--[a-z][a-z-]+", listed)) - {"--help", "--tensor-parallel-size"}
    assert [name for name in sorted(names) if f"`{name}" not in TEXT] == []
