"""Probes and pauses of the real server, with a time limit of one second for /health."""

from __future__ import annotations

import time

import pytest

from tests.labserver import LabServer, wait_until

pytestmark = pytest.mark.slow  # /health takes a second by design


def test_health_takes_a_second(server: LabServer) -> None:
    """/health answers 200 after at least one second, and its request counts for nothing."""
    before = server.metrics()["sglang:num_requests_total"]
    began = time.monotonic()
    assert server.status("/health") == 200
    assert time.monotonic() - began >= 1.0
    assert server.metrics()["sglang:num_requests_total"] == before


@pytest.mark.parametrize("mode", ["retract", "in_place"])
def test_a_pause_and_its_trap(mode: str, server: LabServer) -> None:
    """A pause holds running and new requests; a /health during it leaves the server not ready until one succeeds."""
    wanted = server.generate(tokens=100).json()["output_ids"]
    server.post("/slow_down", {"forward_sleep_time": 0.005})
    with server.background_generate(tokens=100) as running:
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
        assert server.post("/pause_generation", {"mode": mode}).json() == {
            "message": "Generation paused successfully.",
            "status": "ok",
        }
        server.post("/slow_down", {"forward_sleep_time": None})
        with server.background_generate(text="late", tokens=3) as late:
            assert server.status("/ready") == 503
            assert server.status("/health") == 503
            assert (running.done(), late.done()) == (False, False)
            assert server.metrics()["sglang:num_queue_reqs"] == (1 if mode == "retract" else 0)
            assert server.post("/continue_generation", {}).status_code == 200
            assert running.result(timeout=10).json()["output_ids"] == wanted
            assert late.result(timeout=10).status_code == 200
    assert server.status("/ready") == 503
    assert server.status("/health") == 200
    assert server.status("/ready") == 200


def test_the_default_pause_ends_everything(server: LabServer) -> None:
    """A pause without a mode ends running requests with 200 and finish type abort."""
    server.post("/slow_down", {"forward_sleep_time": 0.01})
    with server.background_generate(tokens=300) as running:
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
        assert server.post("/pause_generation", {}).status_code == 200
        answer = running.result(timeout=10)
    assert answer.json()["meta_info"]["finish_reason"]["type"] == "abort"
    assert server.status("/ready") == 503
    server.post("/continue_generation", {})
    server.post("/slow_down", {"forward_sleep_time": None})
    assert server.status("/ready") == 200


def test_flush_while_running(server: LabServer) -> None:
    """A flush is refused while requests run, at once or after the time it was given, and done when idle."""
    server.post("/slow_down", {"forward_sleep_time": 0.01})
    with server.background_generate(tokens=300, rid="r") as running:
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
        refused = [server.post(path) for path in ("/flush_cache", "/flush_cache?timeout=0.1")]
        assert [(answer.status_code, answer.text) for answer in refused] == [
            (400, "Flush cache failed.\n"),
            (400, "Timed out waiting for idle state."),
        ]
        server.post("/abort_request", {"abort_all": True})
        running.result(timeout=10)
    server.post("/slow_down", {"forward_sleep_time": None})
    assert server.post("/flush_cache").status_code == 200


def test_snapshot_is_fresh_when_idle(server: LabServer) -> None:
    """An idle server's load is never older than half a second."""
    answer = server.get("/v1/loads").json()
    assert time.time() - answer["loads"][0]["timestamp"] < 0.5
