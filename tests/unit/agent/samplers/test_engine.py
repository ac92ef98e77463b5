"""The engine's samplers against a small server of recorded answers: what each asks, and what it raises when it is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specctl.engines._sglang_metrics import METRICS
from specctl_agent.samplers.engine import READY_EACH, Endpoint, EngineInfos, EngineLoads, EngineMetrics
from specctl_agent.samplers.engine_http import NoAnswerError

DATA = Path(__file__).parents[3] / "data" / "sglang-0.5.23"
LOADS = "/v1/loads?include=core,spec"


class Recorded(BaseHTTPRequestHandler):
    """Answers by path from the server's own table; notes what was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a GET."""
        assert isinstance(self.server, Server)
        self.server.asked.append(self.path)
        status, body = self.server.answers.get(self.path, (404, b'{"detail":"Not Found"}'))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """A server of recorded answers on a free port of the loopback."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Recorded)
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {"/ready": (200, b"")}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hang up on ten megabytes."""

    @property
    def endpoint(self) -> Endpoint:
        """Return where it listens."""
        return Endpoint(host="127.0.0.1", port=self.server_address[1])


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a running server."""
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join(10)


def recorded(name: str) -> bytes:
    """Return a recorded body."""
    return (DATA / name).read_bytes()


def test_a_load_is_asked_each_time_and_readiness_seldom(server: Server) -> None:
    """Eleven looks at a busy, ready engine ask for the load eleven times, and for readiness at each fifth."""
    server.answers[LOADS] = (200, recorded("loads/busy-4.json"))
    sampler = EngineLoads(server.endpoint, METRICS)
    looks = [sampler.sample() for _ in range(11)]
    sampler.close()
    assert {(look.load.running, look.ready) for look in looks} == {(4, True)}
    assert (server.asked.count(LOADS), server.asked.count("/ready")) == (11, 1 + 10 // READY_EACH)


@pytest.mark.parametrize("name", ["frozen-12s", "paused-in-place"])
def test_an_old_publication_asks_readiness_at_once(server: Server, name: str) -> None:
    """A load that is older than a busy one gets, or that is not ready, is checked at every look."""
    server.answers[LOADS] = (200, recorded("loads/busy-4.json"))
    sampler = EngineLoads(server.endpoint, METRICS)
    assert sampler.sample().ready is True
    server.answers |= {LOADS: (200, recorded(f"loads/{name}.json")), "/ready": (503, b"")}
    readings = [sampler.sample().ready for _ in range(READY_EACH)]
    sampler.close()
    # The pause is a second old, so that only the fifth look since the first asks; the frozen one is asked at once.
    assert readings[-1] is False
    assert readings[0] is (name == "paused-in-place")


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_another_status_is_no_load(server: Server, status: int) -> None:
    """A refused key, an unknown section (500) and a full queue are no answer, with the status in the reason."""
    server.answers[LOADS] = (status, recorded("loads/busy-4.json"))
    with pytest.raises(NoAnswerError, match=str(status)):
        EngineLoads(server.endpoint, METRICS).sample()


def test_what_is_no_load_is_refused(server: Server) -> None:
    """Another service on the port that answers 200 is no engine."""
    server.answers[LOADS] = (200, b"<html></html>")
    with pytest.raises(NoAnswerError, match="no load"):
        EngineLoads(server.endpoint, METRICS).sample()


def test_a_page_is_read_to_its_wanted_figures(server: Server) -> None:
    """A whole recorded page gives the counters."""
    server.answers["/metrics"] = (200, recorded("metrics/dflash-busy-4-whole.txt"))
    page = EngineMetrics(server.endpoint, METRICS).sample()
    assert (page.counters.decode_tokens, page.counters.draft_tokens, page.counters.running) == (2673, 8, 4)


def test_an_engine_without_metrics_is_unknown(server: Server) -> None:
    """Without --enable-metrics the page is a 404: no counters, and the flag is named."""
    with pytest.raises(NoAnswerError) as caught:
        EngineMetrics(server.endpoint, METRICS).sample()
    assert caught.value.hint == "start it with --enable-metrics"


def test_a_page_of_garbage_or_of_ten_megabytes_is_refused(server: Server) -> None:
    """Text that is no exposition, and a page over the limit, are no counters."""
    sampler = EngineMetrics(server.endpoint, METRICS)
    server.answers["/metrics"] = (200, b"lorem ipsum\n" * 100)
    with pytest.raises(NoAnswerError, match="no page of metrics"):
        sampler.sample()
    server.answers["/metrics"] = (200, b"# TYPE x gauge\n" * 700_000)
    with pytest.raises(NoAnswerError, match="over the limit"):
        sampler.sample()


def test_claims_are_read(server: Server) -> None:
    """A recorded /server_info gives version and the claimed algorithm."""
    server.answers["/server_info"] = (200, recorded("dialect/server_info.json"))
    info = EngineInfos(server.endpoint, METRICS).sample()
    assert (info.version, info.said["speculative_algorithm"]) == ("0.5.23", "DFLASH")


def test_claims_that_are_none_are_refused(server: Server) -> None:
    """A 200 of something else tells no server."""
    server.answers["/server_info"] = (200, b"{}")
    with pytest.raises(NoAnswerError, match="tells no server"):
        EngineInfos(server.endpoint, METRICS).sample()


def test_samplers_have_names_and_limits_of_their_own(server: Server) -> None:
    """Each sampler gives up before the runner calls it hung."""
    samplers = [kind(server.endpoint, METRICS) for kind in (EngineLoads, EngineMetrics, EngineInfos)]
    assert [one.name for one in samplers] == ["engine_loads", "engine_metrics", "engine_info"]
    assert [one.period_s for one in samplers] == [1.0, 10.0, 60.0]
    assert all(one.deadline_s > 3.0 for one in samplers)
