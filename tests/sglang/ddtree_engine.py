"""A real SGLang on this machine, with the plugin or without: started, asked over HTTP, ended.

No test host and no specctl: what is asked here is whether the decoding is right.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.waiting import until
from tests.sglang import environment

PLUGIN = Path(__file__).parents[2] / "agents" / "sglang_ddtree"
MUTANTS = Path(__file__).with_name("mutants")
BLOCK = 8
# On two busy cores a start, mostly imports, took five minutes.
START_WITHIN_S = 900.0
ANSWER_WITHIN_S = 300.0
NICENESS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What /generate said: the tokens, and everything else it told."""

    tokens: list[int]
    meta: Mapping[str, object]

    @property
    def accept_length(self) -> float:
        """Return tokens a verify pass, as the engine counts both."""
        return int(str(self.meta["completion_tokens"])) / int(str(self.meta["spec_verify_ct"]))


class Refused(Exception):  # noqa: N818  # an answer, not a failure
    """The engine's answer to a request that it does not serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A running engine."""

    port: int
    log_path: Path
    mutant_path: Path

    def post(self, path: str, body: Mapping[str, object]) -> object:
        """Send a JSON body, return the JSON answer; `Refused` for a 400."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:
                said = answer.read()
                return json.loads(said) if said else None
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode()) from error

    def read(self, path: str) -> str:
        """Return the text of a page."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=ANSWER_WITHIN_S) as answer:
            return str(answer.read().decode())

    def ask(self, body: Mapping[str, object]) -> Answer:
        """Generate."""
        said = self.post("/generate", body)
        assert isinstance(said, dict)
        return Answer(tokens=said["output_ids"], meta=said["meta_info"])

    def ask_all(self, bodies: Sequence[Mapping[str, object]], *, at_once: int = 1) -> list[Answer]:
        """Generate for all, so many at a time; answers in the order of the bodies."""
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(self.ask, bodies))

    def stream(self, body: Mapping[str, object]) -> Iterator[Answer]:
        """Generate, and give what was told so far whenever more is told; whoever stops listening hangs up."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/generate",
            json.dumps({**body, "stream": True}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    said = json.loads(line[6:])
                    yield Answer(tokens=said["output_ids"], meta=said["meta_info"])

    def load(self) -> tuple[int, int]:
        """Return how many requests are being served, and how many tokens the cache holds for them."""
        told = json.loads(self.read("/v1/loads"))["loads"][0]
        return int(told["num_running_reqs"]), int(told["num_used_tokens"])

    def turn(self, **knobs: float) -> bool:
        """Change knobs of the running engine; return whether it took them."""
        return self.post("/set_internal_state", {"server_args": knobs}) == [True]

    def state(self) -> dict[str, object]:
        """Return what the plugin tells of itself."""
        told = json.loads(self.read("/server_info"))["internal_states"][0]
        return {name: value for name, value in told.items() if name.startswith("ddtree_")}

    def count(self, name: str) -> float:
        """Return one of the plugin's series."""
        lines = [line for line in self.read("/metrics").splitlines() if line.startswith(f"{name}{{")]
        assert len(lines) == 1, name
        return float(lines[0].rsplit(" ", 1)[1])

    def flush(self) -> None:
        """Forget all prompts; the engine waits until its last step is settled, and refuses where that does not come."""
        self.read("/flush_cache?timeout=30")

    def log(self) -> str:
        """Return all that the engine printed."""
        return self.log_path.read_text(errors="replace")

    def mutate(self, name: str) -> None:
        """Let one of the mutants work; none with an empty name."""
        self.mutant_path.write_text(name)


def lay_out(folder: Path) -> Path:
    """Put plugin and mutants where SGLang finds them by PYTHONPATH alone."""
    path = folder / "path"
    for source in (PLUGIN, MUTANTS):
        name = source.name if source is PLUGIN else "ddtree_mutants"
        shutil.copytree(source, path / name, ignore=shutil.ignore_patterns("__pycache__", "dist-info"))
        shutil.copytree(source / "dist-info", path / f"{name}-0.1.0.dist-info")
    return path


def environ(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an engine on a CPU, with the plugin to be found but not chosen."""
    path = folder / "path"
    return os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "SGLANG_USE_CPU_ENGINE": "1",
        "OMP_NUM_THREADS": "1",
        # The copy of a kernel for GPUs, in torch.
        "SGLANG_NATIVE_MOVE_KV_CACHE": "1",
        "PYTHONPATH": f"{path if path.exists() else lay_out(folder)}:{environment.STANDIN_PATH}",
        "SGLANG_PLUGINS": "ddtree,ddtree_mutants",
        "DDTREE_MUTANT": str(folder / "mutant"),
        **extra,
    }


def arguments(port: int, algo: str | None, dtype: str) -> list[str]:
    """Return the command line of a small engine."""
    models = environment.models()
    flags: dict[str, object] = {
        "model-path": models / "target",
        "device": "cpu",
        "host": "127.0.0.1",
        "port": port,
        "dtype": dtype,
        "attention-backend": "torch_native",
        "mem-fraction-static": 0.3,
        "max-total-tokens": 32768,
        "max-running-requests": 8,
        "random-seed": 11,
    }
    if algo is not None:
        flags |= {
            "speculative-algorithm": algo,
            "speculative-draft-model-path": models / "draft",
            "speculative-draft-attention-backend": "torch_native",
            "speculative-dflash-block-size": BLOCK,
        }
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    return [str(environment.python()), "-m", "sglang.launch_server", *words, "--enable-metrics"]


@contextlib.contextmanager
def started(
    folder: Path,
    algo: str | None,
    *,
    dtype: str = "float32",
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> Iterator[Engine]:
    """Start an engine, wait until it serves, end it with all its processes."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    engine = Engine(port=port, log_path=folder / "log", mutant_path=folder / "mutant")
    engine.mutate("")
    with engine.log_path.open("wb") as log:
        process = subprocess.Popen(
            ["nice", f"-n{NICENESS}", *arguments(port, algo, dtype), *options],
            env=environ(folder, env or {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(lambda: serves(process, engine), what="the engine serves", within_s=START_WITHIN_S)
        yield engine
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def serves(process: subprocess.Popen[bytes], engine: Engine) -> bool:
    """Return whether it does; fail with the end of its log when it ended."""
    assert process.poll() is None, engine.log()[-3000:]
    return "The server is fired up and ready to roll!" in engine.log()
