"""Gather the wheels of the agent on the operator's machine: this very specctl's, and the locked ones of its libraries."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from specctl.errors import UnsupportedError, UsageError
from specctl.rollout.wheel_tags import Interpreter, distribution

NAME = "specctl-fleet"
_PACKAGE = Path(__file__).resolve().parent.parent
LOCKS = (_PACKAGE / "_shipped" / "requirements" / "agent.lock", _PACKAGE.parent / "requirements" / "agent.lock")
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
BUILD_S = 120.0
DOWNLOAD_S = 300.0
HOUSE_HINT = "give --wheelhouse FOLDER with the wheels of requirements/agent.lock and of specctl"


def lock_file() -> Path:
    """Return the lock file that ships with this specctl."""
    for path in LOCKS:
        if path.is_file():
            return path
    raise UnsupportedError("requirements/agent.lock is missing", hint="specctl ships it: reinstall specctl-fleet")


def sums(folder: Path) -> Mapping[str, str]:
    """Return every wheel in a folder by name, with its SHA-256."""
    if not folder.is_dir():
        raise UsageError(f"no folder of wheels at {folder}", hint="--wheelhouse takes an existing folder")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.whl"))}


def content(folder: Path, name: str) -> str:
    """Return a wheel as a session carries it."""
    return base64.b64encode((folder / name).read_bytes()).decode("ascii")


def download(folder: Path, python: Interpreter) -> None:
    """Fetch the locked wheels for an interpreter that is not here, by pip, which checks their hashes; raises UnsupportedError."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:"]
    words += ["--disable-pip-version-check", "--implementation", "cp", "--python-version", python.text]
    words += [word for platform in python.platforms() for word in ("--platform", platform)]
    _ran(
        [*words, "--dest", str(folder), "--requirement", str(lock_file())],
        DOWNLOAD_S,
        "the agent's libraries could not be fetched",
    )


def own(folder: Path) -> str:
    """Put the wheel of this very specctl into a folder and return its name; raises UnsupportedError.

    From a checkout it is built; where specctl was installed, it is packed again from the files that pip put there.
    """
    found = metadata.distribution(NAME)
    checkout = _checkout(found)
    if checkout is None:
        return _packed(found, folder)
    done = _ran(
        [sys.executable, "-c", BUILD, str(folder)], BUILD_S, "specctl's own wheel could not be built", cwd=checkout
    )
    name = done.split()[-1] if done.split() else ""
    if distribution(name) != (NAME, found.version):
        raise UnsupportedError(
            f"the checkout at {checkout} built {name or 'nothing'}", hint="make it anew: make clean, make check"
        )
    return name


def version() -> str:
    """Return this specctl's version."""
    return metadata.version(NAME)


def _checkout(found: metadata.Distribution) -> Path | None:
    """Return the folder that specctl is installed from in place, or None."""
    told = json.loads(found.read_text("direct_url.json") or "{}")
    if not told.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(str(told["url"])).path))


def _packed(found: metadata.Distribution, folder: Path) -> str:
    """Write the wheel again that an installation came from: its files, as RECORD names them, and a RECORD of what is in it."""
    name = f"{NAME.replace('-', '_')}-{found.version}-py3-none-any.whl"
    info = f"{NAME.replace('-', '_')}-{found.version}.dist-info"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(found.files or (), key=str):
            path, place = str(file), Path(str(file.locate()))
            if path.startswith("..") or path.endswith(".pyc") or path == f"{info}/RECORD" or not place.is_file():
                continue
            body = place.read_bytes()
            wheel.writestr(zipfile.ZipInfo(path), body, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode("ascii")
            rows.writerow([path, f"sha256={digest}", len(body)])
        rows.writerow([f"{info}/RECORD", "", ""])
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record.getvalue())
    return name


def _ran(argv: Sequence[str], limit_s: float, failed: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise UnsupportedError(f"{failed}: it took longer than {limit_s:.0f} s", hint=HOUSE_HINT) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise UnsupportedError(f"{failed}: {said[0]}", hint=HOUSE_HINT)
    return done.stdout
