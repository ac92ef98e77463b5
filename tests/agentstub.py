"""A stand-in engine whose answers a test sets and whose calls it can hold, and a performer that answers as it is told."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from specctl.control.mode import Mode
from specctl.ops import engine_live
from specctl.rollout import server_note
from specctl_agent import inbox
from specctl_agent import request as requests
from specctl_agent.request import Request, Result
from tests.agentworld import ACT, DDTREE, KNOBS, note_of, server_of
from tests.labserver import wait_until

EVERY_FIELD = (
    "speculative_algorithm",
    "speculative_dflash_block_size",
    "speculative_ddtree_budget",
    "speculative_ddtree_topk_cap",
)


NOT_YET = "not ready"


@dataclass(slots=True)
class Stub:
    """An engine: what it says that it runs, how many requests it has, and whether it answers a change, and how."""

    state: dict[str, object] = field(default_factory=dict)
    running: int = 0
    up: bool = True
    takes: Callable[[Mapping[str, object]], list[bool]] = field(default=lambda _: [True])
    held: threading.Event = field(default_factory=threading.Event)
    told: list[Mapping[str, object]] = field(default_factory=list)
    port: int = 0

    def says(self, mode: Mode) -> None:
        """Let it say that it runs a mode."""
        profile = server_of(1).profile
        self.state = dict.fromkeys(EVERY_FIELD) | dict(engine_live.fields(profile, mode))

    def get(self, path: str) -> object:
        """Answer a question."""
        if path == "/ready":
            return None if self.up else NOT_YET
        if path == "/v1/loads":
            return {"loads": [{"num_running_reqs": self.running, "num_waiting_reqs": 0}]}
        return {"internal_states": [self.state]}

    def post(self, changes: Mapping[str, object]) -> object:
        """Answer a change; one that is held waits until it is let go."""
        self.told.append(changes)
        answer = self.takes(changes)
        if all(answer):
            self.state.update(changes)
        self.held.wait(20.0)
        return answer


@contextmanager
def engine(mode: Mode = DDTREE) -> Iterator[Stub]:
    """Run a stand-in engine on a free port."""
    stub = Stub()
    stub.says(mode)
    stub.held.set()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(stub.get(self.path))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(stub.post(json.loads(content)["server_args"]))

        def _answer(self, value: object) -> None:
            content = json.dumps(value).encode()
            self.send_response(503 if value is NOT_YET else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

        def handle(self) -> None:
            """Take a client that was killed in the middle as gone."""
            try:
                super().handle()
            except OSError:
                self.close_connection = True

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    stub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield stub
    finally:
        stub.held.set()
        server.shutdown()
        thread.join()
        server.server_close()


def deployed(servers: Path, stub_port: int, **agent: object) -> Path:
    """Lay a server's folder out as a deploy leaves it; `agent` are settings beside the usual ones. Returns the folder."""
    server = server_of(stub_port, agent=replace(ACT, **agent))  # type: ignore[arg-type]  # fields of AgentSettings
    folder = servers / server.name
    (folder / server_note.FOLDER / server_note.RESULTS).mkdir(parents=True)
    (folder / server_note.FOLDER / server_note.NOTE).write_text(note_of(server, servers, "1").text())
    (folder / "releases" / "1").mkdir(parents=True)
    for algo in KNOBS:
        (folder / "releases" / "1" / f"{algo}.service").write_text("")
    (folder / "current").symlink_to("releases/1/ddtree.service")
    return folder


@dataclass(slots=True)
class Performer:
    """Answers each request as `answer` says, as root's own program would; None: takes it up and says nothing more."""

    folder: Path
    state: Path
    answer: Callable[[Request], Result | None]
    asked: list[Request] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Work while the block lasts."""
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _work(self) -> None:
        place = self.state / requests.FOLDER
        while not self._over.wait(0.02):
            if not place.is_dir():
                continue
            with inbox.opened(place, place.stat().st_uid) as box:
                for name in box.names():
                    wanted = box.peek(name)
                    self.asked.append(wanted)
                    result = self.answer(wanted)
                    self._write(result or Result(id=wanted.id, outcome=requests.TAKEN_UP))
                    box.drop(name)

    def _write(self, result: Result) -> None:
        path = self.folder / server_note.FOLDER / server_note.RESULTS / f"{result.id}.json"
        scratch = path.with_suffix(".new")
        scratch.write_text(result.text())
        scratch.rename(path)


def done(wanted: Request) -> Result:
    """Answer that it serves, proven."""
    serving = (wanted.release, wanted.algo)
    return Result(id=wanted.id, outcome=requests.DONE, serving=serving, proof="proven", evidence=("a tree line",))


def steps_of(state: Path) -> list[str]:
    """Return the steps that an agent's journal has, in order."""
    path = state / "intents.jsonl"
    return [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []


def wait_for_step(state: Path, step: str) -> None:
    """Wait until the journal has a step."""
    wait_until(lambda: step in steps_of(state), what=f"the step {step}")
