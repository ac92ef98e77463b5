"""Each injected fault on the real server: what whoever watches it gets to see."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.labmodels import Folders
from tests.labserver import ALLOW_FAULTS, LabServer, wait_until

Make = Callable[..., LabServer]


@pytest.fixture
def make(folders: Folders, logs: Path) -> Make:
    """Make a server with faults, not started."""

    def bent(*faults: str, arguments: tuple[str, ...] = ()) -> LabServer:
        injected = [word for fault in faults for word in ("--inject", fault)]
        return LabServer(folders, logs, "--enable-metrics", *arguments, *injected, env=ALLOW_FAULTS)

    return bent


pytestmark = pytest.mark.slow  # a start of a server for each fault

SPEC = {"DFLASH": ("--speculative-algorithm", "DFLASH"), "DDTREE": ("--speculative-algorithm", "DDTREE")}


@pytest.mark.parametrize("phase", ["init", "weights", "draft", "kv", "graph"])
def test_crash_while_loading(phase: str, make: Make) -> None:
    """A crash in a phase of the load ends with a traceback that names it, the SIGQUIT line and 137."""
    with make(f"crash:{phase}") as server:
        assert server.wait_exit() == 137
        assert f"InjectedCrashError: injected crash in phase {phase}" in server.log()
        assert "Received sigquit from a child process" in server.log()
        assert "Uvicorn running" not in server.log()


def test_crash_in_the_warm_up(make: Make) -> None:
    """A crash in the warm-up ends with SGLang's warm-up error and 137."""
    with make("crash:warmup") as server:
        assert server.wait_exit() == 137
        assert "Initialization failed. warmup error: Traceback" in server.log()


def test_crash_while_serving(make: Make) -> None:
    """A crash while serving resets the running request and ends with 137."""
    with make("crash:serving") as server:
        server.ready()
        with pytest.raises(httpx.TransportError):
            server.generate(tokens=50)
        assert server.wait_exit() == 137
        assert "SIGQUIT received. signum=None, frame=None. It usually means one child failed." in server.log()


def test_crash_after_a_while(make: Make) -> None:
    """A timed crash comes after the server was ready."""
    with make("crash-after:0.2") as server:
        server.wait_log("ready to roll")
        assert server.wait_exit() == 137


@pytest.mark.parametrize("phase", ["weights", "draft", "graph"])
def test_exit_without_a_word(phase: str, make: Make) -> None:
    """A kill in a phase leaves no traceback."""
    with make(f"exit137:{phase}") as server:
        assert server.wait_exit() == 137
        assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    ("phase", "words"), [("weights", "torch.OutOfMemoryError: CUDA out of memory."), ("graph", "Possible solutions:")]
)
def test_out_of_memory(phase: str, words: str, make: Make) -> None:
    """Torch's text is printed, in the graph phase with SGLang's advice, and the exit is 137."""
    with make(f"oom:{phase}") as server:
        assert server.wait_exit() == 137
        assert words in server.log()


@pytest.mark.parametrize(
    ("phase", "last"),
    [("weights", "Load weight begin"), ("draft", "Load weight begin"), ("graph", "Capture target verify")],
)
def test_hang_while_loading(phase: str, last: str, make: Make) -> None:
    """A hang stops the log in its phase, the port stays closed, and SIGTERM ends the process with 143."""
    with make(f"hang:{phase}") as server:
        server.wait_log(last)
        assert server.status("/ready") is None
        assert server.exit_code() is None
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 143
        assert "Uvicorn running" not in server.log()


def test_hang_while_serving(folders: Folders, logs: Path) -> None:
    """A hung scheduler freezes /v1/loads and fails /health, while /ready, /metrics and /model_info go on answering 200."""
    env = {**ALLOW_FAULTS, "SGLANG_HEALTH_CHECK_TIMEOUT": "1"}
    with LabServer(folders, logs, "--enable-metrics", "--inject", "hang:serving", env=env) as server:
        server.ready()
        with server.background_generate(tokens=50) as hung:
            wait_until(lambda: "#new-token: 5," in server.log(), what="the prefill")
            frozen = server.get("/v1/loads").json()["loads"][0]["timestamp"]
            assert server.status("/ready") == 200
            assert server.status("/health") == 503
            assert [server.status(path) for path in ("/ready", "/metrics", "/model_info")] == [503, 200, 200]
            assert server.get("/v1/loads").json()["loads"][0]["timestamp"] == frozen
            with pytest.raises(httpx.ReadTimeout):
                httpx.get(server.url + "/server_info", timeout=0.3)
            assert not hung.done()
            server.signal(signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                hung.result(timeout=10)


def test_never_ready(make: Make) -> None:
    """The port opens and answers, but /ready and /health stay 503, and the log never says ready."""
    with make("never-ready") as server:
        wait_until(lambda: server.status("/model_info") == 200, what="the port")
        assert server.generate(tokens=3).status_code == 200
        assert [server.status(path) for path in ("/ready", "/health", "/ready")] == [503, 503, 503]
        assert [server.status(path) for path in ("/v1/models", "/v1/loads", "/metrics")] == [200, 200, 200]
        assert server.get("/server_info").json()["status"] == "ready"
        assert "ready to roll" not in server.log()


def test_tree_claimed_and_chain_run(make: Make) -> None:
    """DDTREE is claimed everywhere, but the log has a chain's lines and no verify has more than a chain's nodes."""
    with make("claims-ddtree-runs-linear", arguments=SPEC["DDTREE"]) as server:
        info = server.ready().generate(tokens=120).json()["meta_info"]
        assert server.get("/server_info").json()["internal_states"][0]["speculative_algorithm"] == "DDTREE"
        assert info["spec_num_proposed_drafts"] == 7 * info["spec_verify_ct"]
        assert server.metrics()["sglang:spec_num_draft_tokens"] == 17
        assert "Initialized DFLASH draft runner" in server.log()
        assert not re.search(r"DDTREE (verifier|metrics)", server.log())


def test_chain_claimed_and_nothing_run(make: Make) -> None:
    """DFLASH is claimed everywhere, also at start, but no request was ever verified."""
    with make("claims-dflash-runs-none", arguments=SPEC["DFLASH"]) as server:
        info = server.ready().generate(tokens=120).json()["meta_info"]
        assert server.get("/server_info").json()["speculative_algorithm"] == "DFLASH"
        assert "Initialized DFLASH draft runner" in server.log()
        assert "spec_verify_ct" not in info
        assert "accept len" not in server.log()
        assert server.metrics()["sglang:spec_verify_calls_total"] == 0


def test_half_an_answer(make: Make) -> None:
    """A client's answer breaks off in the middle; probes and the warm-up are spared."""
    with make("half-answer") as server:
        with pytest.raises(httpx.RemoteProtocolError):
            server.ready().generate(tokens=20)
        assert server.status("/ready") == 200


def test_stale_gauges(make: Make) -> None:
    """Gauges keep the first line's values after the load has gone, while /v1/loads tells the truth."""
    with make("stale-gauges") as server:
        server.ready().generate(tokens=100)
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 0, what="an idle server")
        assert server.metrics()["sglang:num_running_reqs"] == 1


def test_wrong_tokens_show_against_none(make: Make) -> None:
    """With the fault a speculative greedy answer differs from the plain one, without speculation it does not."""
    with make("wrong-token:5", arguments=SPEC["DFLASH"]) as server:
        bent = server.ready().generate(tokens=40).json()["output_ids"]
        server.post("/set_internal_state", {"server_args": {"speculative_algorithm": None}})
        plain = [server.generate(tokens=40).json()["output_ids"] for _ in range(2)]
    assert plain[0] == plain[1]
    assert [index for index, (one, other) in enumerate(zip(bent, plain[0], strict=True)) if one != other] != []


@pytest.fixture(scope="module")
def bent(folders: Folders, logs: Path) -> Iterator[LabServer]:
    """A server with several faults at once."""
    faults = ("garbage-metrics", "ignore-sigterm", "silent-load", "slow-steps:0.05")
    injected = [word for fault in faults for word in ("--inject", fault)]
    with LabServer(folders, logs, "--enable-metrics", *injected, env=ALLOW_FAULTS) as server:
        yield server.ready()


def test_garbage_metrics(bent: LabServer) -> None:
    """/metrics answers 200 with something that does not parse."""
    answer = bent.get("/metrics")
    assert answer.status_code == 200
    with pytest.raises(ValueError, match="could not convert string to float"):
        bent.metrics()


def test_ignored_sigterm(bent: LabServer) -> None:
    """SIGTERM changes nothing: the server stays ready and serves."""
    bent.signal(signal.SIGTERM)
    assert bent.generate(tokens=3).status_code == 200
    assert (bent.status("/ready"), bent.exit_code()) == (200, None)


def test_silent_load(bent: LabServer) -> None:
    """Nothing is printed while loading, neither lines nor bars; later lines are there."""
    bent.wait_log("ready to roll")
    assert not re.search(r"Load weight|shards|Capture|server_args", bent.log())


def test_slow_steps(bent: LabServer) -> None:
    """Each step is slow from the start."""
    assert bent.generate(tokens=6).json()["meta_info"]["e2e_latency"] >= 6 * 0.05


def test_late_port(make: Make) -> None:
    """The port opens late, long after the log says that everything is loaded."""
    with make("port-late:1") as server:
        server.wait_log("Engine startup timings")
        assert server.status("/ready") is None
        server.ready()


def test_faults_are_refused_without_permission(folders: Folders, logs: Path) -> None:
    """Without the environment variable a fault ends the start with exit code 2."""
    with LabServer(folders, logs, "--inject", "never-ready", env={"SPECCTL_LAB_ALLOW_FAULTS": "0"}) as server:
        assert server.wait_exit() == 2
        assert "faults are refused unless SPECCTL_LAB_ALLOW_FAULTS=1" in server.log()
