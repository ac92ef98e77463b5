"""Take the agent's wheels and unpack them into a version of its own, whole and checked or not at all; without pip or internet."""

from __future__ import annotations

import base64
import binascii
import csv
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import time
import zipfile
from contextlib import contextmanager
from typing import Dict, Iterable, Iterator, List, Mapping, Tuple

from specctl.host import agent_place, commands, files
from specctl.host.wire import REMOTE_COMMAND, USAGE, Args, Call, OpError

INCOMING = ".incoming-"
UNITS = "units"
SITE = "site"
LAUNCHER = "agent.py"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
WHEEL = re.compile(r"[A-Za-z0-9_.]+-[A-Za-z0-9_.!+]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+\.whl\Z")
UNPACKED_BYTES = 256 << 20
COMPILE_S = 120.0
TRIAL_S = 30.0
# An install that another operator has under way is over by then, or never ends.
UNDER_WAY_S = 3600.0
# Its own folder before all others, and nothing of the host's: -I and -S leave the standard library alone.
PROGRAM = '''"""Start the agent from the folder beside this file: a version that runs keeps its own when another takes its place."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "site"))

if __name__ == "__main__":
    from specctl_agent.main import main

    sys.exit(main())
'''
COMMAND = '#!/bin/sh\nexec {python} -I -S {launcher} "$@"\n'


def put(call: Call) -> Mapping[str, object]:
    """Keep one wheel until it is built in; its sum is checked here."""
    args = call.args
    folder = _incoming(args.path("prefix"))
    name, wanted = _wheel_name(args), args.text("sha256")
    os.makedirs(folder, mode=0o755, exist_ok=True)
    path = os.path.join(folder, name)
    if _sum_of(path) == wanted:
        return {"kept": True}
    try:
        content = base64.b64decode(args.text("content"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise OpError(USAGE, f"{name} came as no base64") from error
    if files.sha256(content) != wanted:
        raise OpError(REMOTE_COMMAND, f"{name} came with another SHA-256 than it was sent with")
    files.replace(path, content, 0o644)
    return {"kept": False}


def build(call: Call) -> Mapping[str, object]:
    """Unpack the wheels that were put into a version's folder, compile them, and try that the agent starts."""
    args = call.args
    prefix, version, python = args.path("prefix"), args.text("version"), args.path("python")
    if not NAME.match(version):
        raise OpError(USAGE, f"{version!r} is no name of a version")
    wheels = {_wheel_name(each): each.text("sha256") for each in args.parts("wheels")}
    note = {"version": version, "release": args.text("release"), "python": python, "wheels": wheels}
    place = os.path.join(prefix, version)
    with locked(prefix):
        built = files.read_object(os.path.join(place, agent_place.NOTE)) != note
        if built:
            _build(prefix, place, note, wheels)
    shutil.rmtree(_incoming(prefix), ignore_errors=True)
    return {"built": built}


def _build(prefix: str, place: str, note: Mapping[str, object], wheels: Mapping[str, str]) -> None:
    """Make the version beside the others, and give it its name once it is whole."""
    python = str(note["python"])
    scratch = os.path.join(prefix, f"{files.TEMPORARY}{os.path.basename(place)}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        site = os.path.join(scratch, SITE)
        os.makedirs(site, mode=0o755)
        for name, wanted in sorted(wheels.items()):
            _unpack(os.path.join(_incoming(prefix), name), wanted, site)
        _write_launcher(scratch, place, python)
        _compiled(python, site)
        _tried(python, scratch)
        files.write_new(
            os.path.join(scratch, agent_place.NOTE), json.dumps(note, sort_keys=True).encode("ascii"), 0o644
        )
        os.sync()
        shutil.rmtree(place, ignore_errors=True)
        os.rename(scratch, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    files.sync_dir(prefix)


@contextmanager
def locked(prefix: str) -> Iterator[None]:
    """Keep two operators from changing the agent of one host at the same time; the second waits."""
    os.makedirs(prefix, mode=0o755, exist_ok=True)
    descriptor = os.open(os.path.join(prefix, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _incoming(prefix: str) -> str:
    """Return the folder of this session's wheels: another operator's end with the version that is built of them."""
    return os.path.join(prefix, f"{INCOMING}{os.getpid()}")


def _wheel_name(args: Args) -> str:
    name = args.text("name")
    if not WHEEL.match(name):
        raise OpError(USAGE, f"{name!r} is no name of a wheel")
    return name


def _sum_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _unpack(path: str, wanted: str, site: str) -> None:
    """Unpack one wheel, every file checked against its RECORD; scripts and data of wheels are left out."""
    name = os.path.basename(path)
    if _sum_of(path) != wanted:
        raise OpError(REMOTE_COMMAND, f"{name} is not here, or is another than was sent")
    try:
        with zipfile.ZipFile(path) as wheel:
            if sum(each.file_size for each in wheel.infolist()) > UNPACKED_BYTES:
                raise OpError(REMOTE_COMMAND, f"{name} is larger unpacked than {UNPACKED_BYTES >> 20} MB")
            sums = _record(wheel)
            for each in wheel.infolist():
                if not each.is_dir():
                    _place(site, _target(each.filename), _content(wheel, each.filename, sums))
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise OpError(REMOTE_COMMAND, f"{name} is no wheel that can be read ({error})") from error


def _record(wheel: zipfile.ZipFile) -> Dict[str, str]:
    (name,) = [each for each in wheel.namelist() if re.match(r"[^/]+\.dist-info/RECORD\Z", each)] or ["RECORD"]
    rows = csv.reader(io.StringIO(wheel.read(name).decode("utf-8")))
    return {row[0]: row[1] for row in rows if len(row) >= 2}


def _content(wheel: zipfile.ZipFile, name: str, sums: Mapping[str, str]) -> bytes:
    content = wheel.read(name)
    if name.endswith((".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")):
        return content
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")
    if sums.get(name) != f"sha256={digest}":
        raise OpError(REMOTE_COMMAND, f"{name} is not what its wheel's RECORD says")
    return content


def _target(name: str) -> str:
    """Return where a wheel's file goes below the site folder; empty: nowhere. Refuses one that would leave it."""
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise OpError(REMOTE_COMMAND, f"a wheel holds {name!r}, which would leave its folder")
    if parts[0].endswith(".data"):
        return "/".join(parts[2:]) if parts[1] in ("purelib", "platlib") else ""
    return name


def _place(site: str, target: str, content: bytes) -> None:
    if not target:
        return
    path = os.path.join(site, target)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755 if target.endswith(".so") else 0o644)


def _write_launcher(scratch: str, place: str, python: str) -> None:
    files.write_new(os.path.join(scratch, LAUNCHER), PROGRAM.encode("ascii"), 0o644)
    os.makedirs(os.path.join(scratch, "bin"), mode=0o755)
    text = COMMAND.format(python=python, launcher=os.path.join(place, LAUNCHER))
    files.write_new(os.path.join(scratch, "bin", "specctl-agent"), text.encode(), 0o755)


def _compiled(python: str, site: str) -> None:
    """Compile what will be imported: an ordinary user cannot write beside it, and would do so at every start."""
    folders = [each for each in _children(site) if not each.endswith((".dist-info", ".libs"))]
    done = commands.run([python, "-I", "-S", "-m", "compileall", "-q", "-x", "/specctl/lab/", *folders], COMPILE_S)
    if done.status != 0:
        raise OpError(REMOTE_COMMAND, f"{python} cannot compile the agent: {done.last_word()}", status=done.status)


def _children(folder: str) -> List[str]:
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def _tried(python: str, scratch: str) -> None:
    done = commands.run([python, "-I", "-S", os.path.join(scratch, LAUNCHER), "check"], TRIAL_S)
    if done.status != 0:
        raise OpError(
            REMOTE_COMMAND,
            f"the agent does not start under {python}: {done.last_word()}",
            status=done.status,
            output=done.stderr.decode("utf-8", "replace")[-4000:],
        )


def prune(prefix: str, keep: Iterable[str]) -> Tuple[str, ...]:
    """Remove versions other than those to keep, and what interrupted installs left; what another may have under way stays."""
    kept = set(keep)
    removed = []
    for path in _children(prefix):
        name = os.path.basename(path)
        built = os.path.exists(os.path.join(path, agent_place.NOTE))
        ours = built or name.startswith((files.TEMPORARY, INCOMING))
        begun = not built or not os.path.isdir(os.path.join(path, UNITS))
        if ours and name not in kept and not os.path.islink(path) and not (begun and _is_new(path)):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(name)
    return tuple(removed)


def _is_new(path: str) -> bool:
    """Claim that a folder was written in lately; a clock that was set back since makes nothing new for ever."""
    return abs(time.time() - os.stat(path).st_mtime) < UNDER_WAY_S
