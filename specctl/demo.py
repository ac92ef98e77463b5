"""`make demo`: the main job on this machine, by the same commands that a person would type; leaves nothing behind.

Runs in a temporary folder with a home and a state of its own; every command is printed before it runs.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PROMPT = "def main(argv=None):\n    parser = argparse.ArgumentParser("
STEPS: tuple[tuple[str, Sequence[str]], ...] = (
    ("Write an inventory for this machine: one lab server, kept running by supervisor.", ("init", "--lab")),
    ("Look at what a deploy would do.", ("deploy", "--host", "local", "--algo", "dflash", "--dry-run")),
    (
        "Deploy it: write, start, watch the load, prove that linear DFlash decodes.",
        ("deploy", "--host", "local", "--algo", "dflash", "--yes"),
    ),
    ("Send it a prompt.", ("ask", "--host", "local", "--tokens", "48", PROMPT)),
    ("Switch to the tree of drafts.", ("switch", "--host", "local", "--algo", "ddtree", "--yes")),
    ("The same prompt: the same words, in fewer steps.", ("ask", "--host", "local", "--tokens", "48", PROMPT)),
    (
        "Switch speculation off without a start: the running engine is told, and proves it.",
        ("switch", "--live", "--host", "local", "--algo", "none", "--yes"),
    ),
    ("Ask for the same again: nothing to do.", ("switch", "--live", "--host", "local", "--algo", "none", "--yes")),
    ("See how it stands, and what was done.", ("status", "--host", "local")),
    ("", ("history", "--host", "local")),
)
CLEAN_UP = ("undeploy", "--host", "local", "--purge", "--yes")


def specctl(*words: str) -> list[str]:
    """Return the command as a process of this very installation."""
    return [sys.executable, "-m", "specctl", *words]


def say(text: str) -> None:
    """Print a line of the demo's own."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(words: Sequence[str], folder: Path, env: dict[str, str]) -> int:
    """Show a command and run it."""
    say(f"\n$ specctl {shlex.join(words)}")
    return subprocess.run(specctl(*words), cwd=folder, env=env, check=False).returncode


@contextlib.contextmanager
def place() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a temporary folder and an environment whose state lies in it; ends the supervisord that was started there."""
    with tempfile.TemporaryDirectory(prefix="specctl-demo-") as name:
        folder = Path(name)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPECCTL_", "XDG_STATE_HOME"))}
        env = {**kept, "XDG_STATE_HOME": str(folder / "state"), "LAB_API_KEY": "demo-" + os.urandom(8).hex()}
        try:
            yield folder, env
        finally:
            end_daemons(folder)


def end_daemons(folder: Path) -> None:
    """End the supervisord whose pid file lies in the folder, and wait until it is gone."""
    for path in folder.rglob("supervisord.pid"):
        with contextlib.suppress(OSError, ValueError):
            pid = int(path.read_text())
            os.kill(pid, signal.SIGTERM)
            for _ in range(100):
                os.kill(pid, 0)
                time.sleep(0.1)


def main() -> int:
    """Run every step, then clean up; return 0 when all went well."""
    say("specctl demo: the lab engine on this machine, no root, SSH, GPU, systemd or torch needed.")
    with place() as (folder, env):
        code = 0
        for text, words in STEPS:
            if text:
                say(f"\n# {text}")
            code = run(words, folder, env)
            if code:
                break
        say("\n# Clean up.")
        cleaned = run(CLEAN_UP, folder, env)
    say(
        "\ndone: nothing is left behind."
        if not code and not cleaned
        else f"\nthe demo failed with exit code {code or cleaned}."
    )
    return code or cleaned


if __name__ == "__main__":
    sys.exit(main())
