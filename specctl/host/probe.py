"""Ask an engine's own interpreter a question (what it knows of an algo), away from every GPU, and remember the answer by digest."""

from __future__ import annotations

import json
import os
import re
import tempfile
from typing import Dict, List, Mapping, Optional

from specctl.host import commands, files, releases
from specctl.host.wire import REMOTE_COMMAND, UNSUPPORTED, USAGE, Args, Call, OpError

TIMEOUT_S = 120.0
OUTPUT_BYTES = 256 << 10
KEPT = 32
DIGEST = re.compile(r"[A-Za-z0-9_-]{4,128}\Z")
SUFFIX = ".json"
SEARCH_PATH = "PYTHONPATH"
PLUGIN_FOLDER = "plugins"  # as in a release


def cached(folder: str, digest: str) -> Optional[Mapping[str, object]]:
    """Return what was answered under that digest."""
    return files.read_object(os.path.join(folder, digest + SUFFIX))


def known(folder: str) -> Dict[str, object]:
    """Return the answers that are remembered in a folder, by digest."""
    try:
        names = [name for name in sorted(os.listdir(folder)) if name.endswith(SUFFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    digests = [name[: -len(SUFFIX)] for name in names]
    return {digest: cached(folder, digest) for digest in digests if DIGEST.match(digest)}


def _keep(folder: str, digest: str, answer: Mapping[str, object]) -> None:
    os.makedirs(folder, mode=0o755, exist_ok=True)
    files.replace(os.path.join(folder, digest + SUFFIX), json.dumps(answer).encode("ascii"), 0o644)
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(SUFFIX)]
    for path in sorted(paths, key=os.path.getmtime)[:-KEPT]:
        files.remove(path)


def _environment(args: Args, plugins: Optional[str]) -> Dict[str, str]:
    extra = {str(key): str(value) for key, value in args.part("env").fields.items()}
    if plugins is not None:
        extra[SEARCH_PATH] = ":".join(filter(None, (plugins, extra.get(SEARCH_PATH))))
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return commands.environment({**threads, **extra, "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"})


def _run(args: Args, argv: List[str], timeout_s: float) -> commands.Finished:
    """Run it, with the plugins that came along in a folder for as long as it takes."""
    rows = args.parts("plugin")
    if not rows:
        return commands.run(argv, timeout_s, env=_environment(args, None), limit=OUTPUT_BYTES)
    folder = tempfile.mkdtemp(prefix="specctl-probe-")
    try:
        releases.fill(folder, rows)
        found = os.path.join(folder, PLUGIN_FOLDER)
        return commands.run(argv, timeout_s, env=_environment(args, found), limit=OUTPUT_BYTES)
    finally:
        files.remove_tree(folder)


def probe(call: Call) -> Mapping[str, object]:
    """Run the code that the operator sent with the engine's interpreter; only a run that ended well is remembered."""
    args = call.args
    python, code = args.path("python"), args.text("code")
    digest, folder = args.text("digest"), args.path("cache_dir")
    if not DIGEST.match(digest):
        raise OpError(USAGE, f"{digest!r} is no digest")
    words = args.texts("args")
    found = None if args.flag("fresh") else cached(folder, digest)
    if found is not None and found.get("args") == words:
        return {**found, "cached": True}
    timeout_s = args.number("timeout_s", TIMEOUT_S)
    argv: List[str] = ["nice", "-n", "19", python, "-c", code, *words]
    done = _run(args, argv, timeout_s)
    if done.status is None:
        raise OpError(
            REMOTE_COMMAND,
            f"{python} did not answer the probe within {timeout_s:.0f} s",
            hint="try again when the host is less busy",
        )
    if not os.path.exists(python):
        raise OpError(
            UNSUPPORTED,
            f"there is no interpreter {python}",
            hint="set python: in the inventory to the engine's interpreter",
        )
    answer: Dict[str, object] = {
        "args": words,
        "status": done.status,
        "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": done.stderr.decode("utf-8", "replace")[-4000:],
    }
    if done.status == 0:
        _keep(folder, digest, answer)
    return {**answer, "cached": False}
