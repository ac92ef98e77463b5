"""The real engine's environment: where it lies, what it lacks, how it is made (`python -m tests.sglang.environment`).

It is a virtual environment outside the checkout with the wheel as PyPI has it, and two tiny models inside; nothing but these tests
needs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

VERSION = "0.5.23"
VARIABLE = "SPECCTL_SGLANG_VENV"
DEFAULT = "~/.cache/specctl-sglang/venv"
STANDIN = Path(__file__).with_name("standin")
# What the stand-ins need on PYTHONPATH, for the engine and for whatever asks its interpreter.
STANDIN_PATH = STANDIN / "path"
NEEDED_BYTES = 13 * 10**9
INSTALL_WITHIN_S = 1800.0
MODELS_WITHIN_S = 300.0
PRIVATE = ("/tmp", "/var/tmp")
# Below other work on the machine: the installation takes minutes.
NICENESS = 5


def venv() -> Path:
    """Return the environment's folder, there or not."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).expanduser().absolute()


def python() -> Path:
    """Return the engine's interpreter."""
    return venv() / "bin" / "python"


def models() -> Path:
    """Return the folder of the models `target` and `draft`; it exists only in an environment that was made whole."""
    return venv() / "share" / "specctl-models"


def shared() -> tuple[Path, ...]:
    """Return what a host must see: the environment and the interpreter that it stands on."""
    return (venv(), python().resolve().parents[1])


def hidden(*folders: Path) -> str | None:
    """Return why a unit would not see one of these folders, or None: it runs with PrivateTmp."""
    for folder in folders:
        if any(folder.is_relative_to(private) for private in PRIVATE):
            return f"a unit has a /tmp of its own and does not see {folder}: move it elsewhere"
    return None


def missing() -> str | None:
    """Return why the real engine cannot be run here, or None when it can."""
    if not python().exists():
        return f"no real SGLang in {venv()}: `make sglang-env` makes it (11 GB, some minutes; {VARIABLE} names another folder)"
    if not list(venv().glob(f"lib/python3*/site-packages/sglang-{VERSION}.dist-info")):
        return f"{venv()} has no SGLang {VERSION}: remove the folder and run `make sglang-env`"
    if not models().is_dir():
        return f"{venv()} has no models: run `make sglang-env`"
    return None


def build() -> str | None:
    """Make what is missing; return why it could not be made, or None."""
    if missing() is None:
        return None
    folder = venv()
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if not python().exists() and free < NEEDED_BYTES:
        return f"{folder.parent} has {free / 1e9:.0f} GB free, {NEEDED_BYTES / 1e9:.0f} GB are needed"
    if not python().exists():
        _run([sys.executable, "-m", "venv", str(folder)], INSTALL_WITHIN_S)
    _run([str(python()), "-m", "pip", "install", "--no-cache-dir", f"sglang=={VERSION}"], INSTALL_WITHIN_S)
    _make_models()
    return missing()


def _make_models() -> None:
    """Make the models beside their place and rename them when they are whole."""
    scratch = models().with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    _run([str(python()), str(STANDIN / "make_models.py"), str(scratch)], MODELS_WITHIN_S)
    shutil.rmtree(models(), ignore_errors=True)
    scratch.rename(models())


def _run(argv: list[str], within_s: float) -> None:
    print(f"$ {' '.join(argv)}", flush=True)
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, timeout=within_s)


def main() -> int:
    """Make the environment and say how it went."""
    os.nice(NICENESS)
    began = time.monotonic()
    try:
        why = build()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why is not None:
        print(f"error: {why}", file=sys.stderr)
        return 1
    print(f"SGLang {VERSION} is in {venv()} ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
