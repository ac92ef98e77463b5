"""What every request passes through, on the real server."""

from __future__ import annotations

from tests.labserver import LabServer


def test_known_paths_are_counted(server: LabServer) -> None:
    """A request to a known path is counted with its method and status."""
    before = server.get("/metrics").text
    server.status("/ping")
    text = server.get("/metrics").text
    line = 'sglang:http_responses_total{endpoint="/ping",method="GET",status_code="200"}'
    assert line not in before
    assert f"{line} 1.0" in text


def test_unknown_paths_are_not_counted(server: LabServer) -> None:
    """A scan of paths that do not exist leaves no series behind."""
    assert [server.status(f"/scan-{index}") for index in range(3)] == [404, 404, 404]
    assert "scan" not in server.get("/metrics").text


def test_active_requests(server: LabServer) -> None:
    """The request that asks is itself active."""
    assert 'sglang:http_requests_active{endpoint="/metrics",method="GET"} 1.0' in server.get("/metrics").text
