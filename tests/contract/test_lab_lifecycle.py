"""The lab's server against recordings of the real one: phases of a start, stops, starts that fail, exit codes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.contract.recordings import rows
from tests.labmodels import Folders
from tests.labserver import LabServer, wait_until

pytestmark = pytest.mark.slow  # whole lives of real servers


def test_phases_of_a_start(folders: Folders, logs: Path) -> None:
    """A start is refused, then 503 with answers on the info routes, then ready: the recorded sequence."""
    order: list[str] = []
    for row in rows("startup_timeline.tsv"):
        if row["endpoint"] == "/ready" and row["result"] not in order[-1:]:
            order.append(row["result"])
    assert order == ["refused", "503", "200"]
    seen: list[str] = []
    with LabServer(folders, logs, "--load-seconds", "2.5") as server:

        def ready() -> bool:
            status = server.status("/ready")
            result = "refused" if status is None else str(status)
            if result not in seen[-1:]:
                seen.append(result)
            return result == "200"

        wait_until(ready, what="/ready")
    assert seen == order


STOPS = {"sigterm-idle": signal.SIGTERM, "sigint-idle": signal.SIGINT}
LOADING_STOPS = {"sigterm-while-loading": signal.SIGTERM, "sigint-while-loading": signal.SIGINT}


@pytest.mark.parametrize("case", [*STOPS, *LOADING_STOPS])
def test_exit_code_of_a_stop(case: str, folders: Folders, logs: Path) -> None:
    """A stop ends with the recorded exit code, serving or loading."""
    expected = next(int(row["shell_exit_code"]) for row in rows("shutdown.tsv") if row["case"] == case)
    arguments = ("--load-seconds", "20") if case in LOADING_STOPS else ()
    with LabServer(folders, logs, *arguments) as server:
        if case in LOADING_STOPS:
            server.wait_log("Load weight begin")
        else:
            server.ready()
        server.signal({**STOPS, **LOADING_STOPS}[case])
        assert server.wait_exit() == expected


def test_drain_accepts_work_and_ends_with_0(folders: Folders, logs: Path) -> None:
    """After SIGTERM /ready is 503, running and new requests are answered, a second SIGTERM changes nothing, the exit is 0."""
    env = {"SPECCTL_LAB_DRAIN_POLL_SECONDS": "0.5"}
    with LabServer(folders, logs, env=env) as server:
        server.ready().post("/slow_down", {"forward_sleep_time": 0.01})
        with server.background_generate(tokens=100) as running:
            wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
            server.signal(signal.SIGTERM)
            wait_until(lambda: server.status("/ready") == 503, what="the drain")
            assert server.status("/health") == 503
            server.signal(signal.SIGTERM)
            assert server.generate(tokens=2).status_code == 200
            answer = running.result(timeout=30)
        assert (answer.status_code, answer.json()["meta_info"]["completion_tokens"]) == (200, 100)
        assert server.wait_exit() == 0
        assert "Gracefully exiting... Remaining number of requests 1." in server.log()


def test_sigint_closes_the_port_and_lets_requests_finish(folders: Folders, logs: Path) -> None:
    """After SIGINT nobody new is let in, the running request is answered whole, and the exit code is the recorded 1."""
    expected = next(int(row["shell_exit_code"]) for row in rows("shutdown.tsv") if row["case"] == "sigint-4-running")
    with LabServer(folders, logs) as server:
        server.ready().post("/slow_down", {"forward_sleep_time": 0.01})
        with server.background_generate(tokens=100) as running:
            wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
            server.signal(signal.SIGINT)
            wait_until(lambda: server.status("/ready") is None, what="the closed port")
            answer = running.result(timeout=30)
        assert (answer.status_code, answer.json()["meta_info"]["completion_tokens"]) == (200, 100)
        assert server.wait_exit() == expected
        assert server.log().rstrip().endswith("KeyboardInterrupt")


class TestFailedStarts:
    """A start that cannot succeed ends with the recorded exit code and last words."""

    def _recorded(self, case: str) -> tuple[int, str]:
        """Return the recorded exit code and last error line."""
        row = next(row for row in rows("failed_starts.tsv") if row["case"] == case)
        return int(row["shell_exit_code"]), row["last_error_line"]

    def _ends(self, server: LabServer) -> tuple[int, str]:
        """Return a server's exit code and log."""
        with server:
            return server.wait_exit(), server.log()

    def test_unknown_flag(self, folders: Folders, logs: Path) -> None:
        """An unknown flag is refused by the parser."""
        code, log = self._ends(LabServer(folders, logs, "--frobnicate", "1"))
        assert (code, log.splitlines()[-1]) == self._recorded("unknown-flag")

    def test_unknown_algorithm(self, folders: Folders, logs: Path) -> None:
        """An unknown algorithm passes the parser and dies after it."""
        code, log = self._ends(LabServer(folders, logs, "--speculative-algorithm", "nosuch"))
        expected, words = self._recorded("spec-algorithm-unknown-DDTREE")
        assert code == expected
        assert words.replace("DDTREE", "NOSUCH") in log.splitlines()[-1]

    def test_missing_model(self, folders: Folders, logs: Path) -> None:
        """A path that does not exist is a Hugging Face error in the parent."""
        code, log = self._ends(LabServer(Folders(target=folders.target / "absent", draft=folders.draft), logs))
        expected, words = self._recorded("model-path-missing")
        assert code == expected
        assert log.splitlines()[-1][:60] == words[:60]

    def test_context_too_long(self, folders: Folders, logs: Path) -> None:
        """A context longer than the model's is refused in the parent."""
        code, log = self._ends(LabServer(folders, logs, "--context-length", "100000"))
        expected, words = self._recorded("context-length-too-large")
        assert (code, log.splitlines()[-1][:64]) == (expected, words[:64])

    @pytest.mark.parametrize(
        ("case", "file"), [("corrupt-safetensors", "model.safetensors"), ("weights-file-absent", "")]
    )
    def test_bad_weights(self, case: str, file: str, folders: Folders, logs: Path, tmp_path: Path) -> None:
        """Weights that cannot be read end the scheduler: traceback, SIGQUIT line, 137."""
        copy = tmp_path / "target"
        copy.mkdir()
        for source in folders.target.iterdir():
            body = source.read_bytes()
            if source.name == file:
                body = body[: len(body) // 2]
            if source.name != "model.safetensors" or file:
                (copy / source.name).write_bytes(body)
        code, log = self._ends(LabServer(Folders(target=copy, draft=folders.draft), logs))
        expected, words = self._recorded(case)
        assert code == expected
        assert "Scheduler hit an exception: Traceback" in log
        assert words.split(" with ")[0] in log
        assert "Received sigquit from a child process. It usually means the child failed." in log
        assert "Load weight end" not in log

    def test_corrupt_configuration(self, folders: Folders, logs: Path, tmp_path: Path) -> None:
        """A configuration that is no JSON is refused in the parent."""
        copy = tmp_path / "target"
        copy.mkdir()
        for source in folders.target.iterdir():
            (copy / source.name).write_bytes(b"{" if source.name == "config.json" else source.read_bytes())
        code, log = self._ends(LabServer(Folders(target=copy, draft=folders.draft), logs))
        expected, words = self._recorded("corrupt-config-json")
        assert code == expected
        assert log.splitlines()[-1].startswith(words.split("'")[0])

    def test_missing_tokenizer(self, folders: Folders, logs: Path, tmp_path: Path) -> None:
        """A model without a tokenizer is refused in the parent."""
        copy = tmp_path / "target"
        copy.mkdir()
        for source in folders.target.iterdir():
            if source.name != "tokenizer.json":
                (copy / source.name).write_bytes(source.read_bytes())
        code, log = self._ends(LabServer(Folders(target=copy, draft=folders.draft), logs))
        expected, words = self._recorded("tokenizer-absent")
        assert code == expected
        assert words.strip() in log

    def test_port_held_by_another(self, folders: Folders, logs: Path) -> None:
        """A server whose port another server holds warms up against that one, says that it is ready, and exits 3."""
        with LabServer(folders, logs) as first:
            first.ready()
            second = LabServer(folders, logs, port=first.port)
            with second:
                assert second.wait_exit() == 3
                assert "address already in use" in second.log()
                assert "The server is fired up and ready to roll!" in second.log()
            assert first.status("/ready") == 200
