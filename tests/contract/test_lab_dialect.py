"""The lab's server against recordings of the real one: keys, types, status codes, families, log lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract import left_out, shapes
from tests.contract.recordings import RECORDED, lines, recorded, rows
from tests.labmodels import Folders
from tests.labserver import LabServer, wait_until

pytestmark = pytest.mark.slow

PREFIX = "sglang:"


class TestAnswers:
    """JSON bodies hold the recorded keys with the recorded types."""

    def test_model_info(self, dflash: LabServer) -> None:
        """/model_info has every recorded key but the listed ones."""
        answer = dflash.get("/model_info").json()
        assert set(shapes.missing(recorded("model_info.json"), answer)) == left_out.MODEL_INFO
        assert list(shapes.mistyped(recorded("model_info.json"), answer)) == []
        assert shapes.surplus(recorded("model_info.json"), answer) == set()

    def test_models(self, dflash: LabServer) -> None:
        """/v1/models has exactly the recorded keys and types."""
        answer = dflash.get("/v1/models").json()
        assert (
            set(shapes.missing(recorded("v1_models.json"), answer)) | shapes.surplus(recorded("v1_models.json"), answer)
            == set()
        )
        assert list(shapes.mistyped(recorded("v1_models.json"), answer)) == []

    def test_server_info(self, dflash: LabServer) -> None:
        """/server_info has every recorded key but the listed arguments, at the top and in the internal state."""
        answer = dflash.get("/server_info").json()
        listed = {f".{name}" for name in lines("left_out_server_args.txt") if name}
        absent = set(shapes.missing(recorded("server_info.json"), answer))
        top = {path for path in absent if not path.startswith(".internal_states[]")}
        assert top == listed | left_out.SERVER_INFO
        assert {path.removeprefix(".internal_states[]") for path in absent - top} <= listed
        assert list(shapes.mistyped(recorded("server_info.json"), answer)) == []

    def test_server_info_adds_only_the_labs_own_arguments(self, dflash: LabServer) -> None:
        """/server_info has no key of the lab's own but the tree's knobs."""
        own = shapes.surplus(recorded("server_info.json"), dflash.get("/server_info").json())
        assert {path.removeprefix(".internal_states[]") for path in own} == left_out.SERVER_INFO_OWN

    def test_loads_of_a_busy_speculator(self, dflash: LabServer) -> None:
        """/v1/loads has exactly the recorded keys and types once a decode line was logged."""
        self._same_loads("busy_dflash", dflash)

    def test_loads_before_any_decode_line(self, fresh: LabServer) -> None:
        """/v1/loads has no speculative section before the first decode line."""
        self._same_loads("warmup", fresh)

    def test_loads_after_a_reset(self, dflash: LabServer) -> None:
        """A flush takes the speculative section away until the next decode line."""
        assert dflash.post("/flush_cache").status_code == 200
        wait_until(lambda: "speculative" not in dflash.get("/v1/loads").json()["loads"][0], what="the reset")
        self._same_loads("after_reset", dflash)
        dflash.generate(tokens=160)

    def _same_loads(self, name: str, server: LabServer) -> None:
        """Compare a /v1/loads answer with a recorded one, both ways."""
        document = recorded("loads.json")
        assert isinstance(document, dict)
        answer = server.get("/v1/loads").json()
        assert set(shapes.missing(document[name], answer)) | shapes.surplus(document[name], answer) == set()
        assert list(shapes.mistyped(document[name], answer)) == []

    def test_loads_as_prometheus_text(self, fresh: LabServer) -> None:
        """/v1/loads?format=prometheus names the recorded series, in order."""
        names = [line.split("{")[0] for line in lines("loads.prom.txt") if line and not line.startswith("#")]
        text = fresh.get("/v1/loads?format=prometheus").text
        assert [line.split("{")[0] for line in text.splitlines() if not line.startswith("#")] == names

    @pytest.mark.parametrize("kind", ["dflash", "none"])
    def test_generate(self, kind: str, dflash: LabServer, folders: Folders, logs: Path) -> None:
        """/generate answers the recorded keys and types, with acceptance only where something speculates."""
        document = recorded("generate.json")
        assert isinstance(document, dict)
        if kind == "dflash":
            answer = dflash.generate(tokens=16).json()
        else:
            with LabServer(folders, logs, "--enable-metrics") as plain:
                answer = plain.ready().generate(tokens=16).json()
        meta = document[kind]["meta_info"]
        assert set(shapes.missing(meta, answer["meta_info"])) | shapes.surplus(meta, answer["meta_info"]) == set()
        assert list(shapes.mistyped(meta, answer["meta_info"])) == []
        assert set(answer) == {"text", "output_ids", "meta_info"}

    def test_keys_are_told_in_clear(self, folders: Folders, logs: Path) -> None:
        """/server_info tells the API key, also in launch_command and in the log, as the real one does."""
        document = recorded("server_info_api_key.json")
        assert isinstance(document, dict)
        assert document["api_key"] in document["launch_command"]
        with LabServer(folders, logs, "--api-key", "k1") as server:
            answer = server.ready().get("/server_info", Authorization="Bearer k1").json()
            assert answer["api_key"] == "k1"
            assert "--api-key k1" in answer["launch_command"]
            assert "'api_key': 'k1'" in server.log()


def families(text: str) -> dict[str, str]:
    """Return the type of each family of an exposition."""
    return {name.removeprefix(PREFIX): kind for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)}


def labels(text: str) -> dict[str, set[frozenset[str]]]:
    """Return the sets of label names that each series carries; `le` is left out."""
    found: dict[str, set[frozenset[str]]] = {}
    for name, inner in re.findall(r"^(sglang:\w+)\{(.*)\} \S+$", text, re.MULTILINE):
        names = frozenset(re.findall(r'(\w+)="', inner)) - {"le"}
        found.setdefault(name.removeprefix(PREFIX), set()).add(names)
    return found


class TestMetrics:
    """/metrics exposes the recorded families with their types and labels."""

    def test_families_and_types(self, dflash: LabServer) -> None:
        """Every recorded family is exposed with its type, but the listed ones."""
        real = families((RECORDED / "metrics_dflash.txt").read_text(encoding="utf-8"))
        ours = families(dflash.get("/metrics").text)
        assert set(real) - set(ours) == left_out.METRICS
        assert set(ours) - set(real) <= left_out.METRICS_OWN
        assert {name: kind for name, kind in real.items() if name in ours} == {
            name: kind for name, kind in ours.items() if name in real
        }

    def test_labels(self, dflash: LabServer) -> None:
        """Every series carries the recorded label names."""
        real = labels((RECORDED / "metrics_dflash.txt").read_text(encoding="utf-8"))
        ours = labels(dflash.get("/metrics").text)
        assert {name: ours[name] for name in ours if name in real} == {
            name: real[name] for name in ours if name in real
        }

    def test_histogram_edges(self, dflash: LabServer) -> None:
        """Every histogram has the recorded edges, written the same way."""
        real = self._edges((RECORDED / "metrics_dflash.txt").read_text(encoding="utf-8"))
        ours = self._edges(dflash.get("/metrics").text)
        assert ours == {name: real[name] for name in ours}

    def _edges(self, text: str) -> dict[str, set[str]]:
        """Return the upper edges of each histogram."""
        found: dict[str, set[str]] = {}
        for name, edge in re.findall(r'^(sglang:\w+)_bucket\{.*le="([^"]+)"', text, re.MULTILINE):
            found.setdefault(name, set()).add(edge)
        return found

    def test_before_the_first_request(self, fresh: LabServer) -> None:
        """Before the first request only the families of the start exist."""
        real = families((RECORDED / "metrics_warmup.txt").read_text(encoding="utf-8"))
        assert families(fresh.get("/metrics").text) == {
            name: kind for name, kind in real.items() if name not in left_out.METRICS
        }

    def test_without_speculation(self, folders: Folders, logs: Path) -> None:
        """Without speculation the verify counter is absent and the spec gauges are there with 0."""
        real = families((RECORDED / "metrics_none_types.txt").read_text(encoding="utf-8"))
        with LabServer(folders, logs, "--enable-metrics") as plain:
            plain.ready().generate(tokens=100)
            ours, numbers = families(plain.get("/metrics").text), plain.metrics()
        assert set(ours) == set(real) - left_out.METRICS
        assert [
            numbers[f"sglang:spec_{name}"] for name in ("accept_length", "accept_rate", "num_steps", "num_draft_tokens")
        ] == [0] * 4

    def test_draft_tokens_prove_the_block(self, dflash: LabServer) -> None:
        """The spec gauges hold block 8 and one step, as recorded."""
        numbers = dflash.metrics()
        assert numbers["sglang:spec_num_draft_tokens"] == 8
        assert numbers["sglang:spec_num_steps"] == 1


@pytest.fixture(scope="module", params=["none", "api", "admin", "both"])
def guarded(
    request: pytest.FixtureRequest, folders: Folders, logs: Path
) -> Iterator[tuple[list[dict[str, str]], LabServer]]:
    """A server for each combination of keys, with the recorded table."""
    arguments = {"none": (), "api": ("--api-key", "k1"), "admin": ("--admin-api-key", "k2")}
    keys = arguments.get(request.param, ("--api-key", "k1", "--admin-api-key", "k2"))
    metrics = () if request.param == "none" else ("--enable-metrics",)
    with LabServer(folders, logs, *keys, *metrics) as server:
        yield rows(f"auth_{request.param}.tsv"), server.ready()


BODIES = {
    "/generate": {"text": "hi", "sampling_params": {"max_new_tokens": 2}},
    "/v1/completions": {"model": "x", "prompt": "hi", "max_tokens": 2},
    "/v1/chat/completions": {"model": "x", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2},
    "/set_internal_state": {"server_args": {}},
    "/slow_down": {"forward_sleep_time": None},
}
NO_TEMPLATE = ("/v1/chat/completions", "400", 200)
"""The recorded model had no chat template, so chat was a 400; the lab has one."""


def test_every_route_by_every_key(guarded: tuple[list[dict[str, str]], LabServer]) -> None:
    """Each recorded route answers the recorded status for no key, a wrong key and each right one."""
    table, server = guarded
    keys = {"no key": None, "wrong key": "nope", "api key k1": "k1", "admin key k2": "k2"}
    wrong = []
    for row in table:
        path, method = row.pop("path"), row.pop("method")
        if path in left_out.ROUTES or path in {"/health", "/health_generate"}:
            continue  # /health takes a second by design and has its own tests
        for column, expected in row.items():
            headers = {"Authorization": f"Bearer {keys[column]}"} if keys[column] else {}
            answer = server.post(path, BODIES.get(path, {}), **headers) if method == "POST" else None
            if answer is None:
                answer = server.request(method, path, **headers)
            if str(answer.status_code) != expected and (path, expected, answer.status_code) != NO_TEMPLATE:
                wrong.append((method, path, column, expected, answer.status_code))
    assert wrong == []


class TestControl:
    """Control routes answer the recorded status and text and log the recorded line."""

    KEPT = (
        "/set_internal_state",
        "/flush_cache",
        "/abort_request",
        "/slow_down",
        "/continue_generation",
        "/get_load",
        "/v1/loads",
    )

    def test_replies(self, dflash: LabServer) -> None:
        """Every recorded exchange of an idle server is answered alike."""
        entries = recorded("control.json")
        assert isinstance(entries, list)
        idle = [entry for entry in entries if entry["path"].startswith(self.KEPT) and not self._needs_load(entry)]
        assert len(idle) >= 30
        assert [self._differs(entry, dflash) for entry in idle if self._differs(entry, dflash)] == []
        dflash.post("/slow_down", {"forward_sleep_time": None})

    def _needs_load(self, entry: dict[str, Any]) -> bool:
        """Tell whether the exchange was recorded while requests ran."""
        return (
            bool(re.search(r"running|while paused", entry["note"] or "")) or 'forward_sleep_time": 0.2' in entry["body"]
        )

    def _differs(self, entry: dict[str, Any], server: LabServer) -> str | None:
        """Send a recorded request and return what differs, None where nothing does."""
        before = len(server.log())
        answer = server.send(entry["method"], entry["path"], entry["body"])
        if answer.status_code != entry["status"]:
            return f"{entry['path']} {entry['body']}: {entry['status']} recorded, {answer.status_code} answered"
        plain = answer.status_code == 200 and not answer.text.startswith(("{", "#"))
        if plain and answer.text.replace("\n", "\\n") != entry["reply"]:
            return f"{entry['path']} {entry['body']}: {entry['reply']} recorded, {answer.text} answered"
        line = entry.get("log", "")
        kept = line.startswith(("Updating", "Config updated", "Ignore abort", "Cache flushed"))
        if kept and line not in server.log()[before:]:
            return f"{entry['path']} {entry['body']}: the log lacks {line!r}"
        return None

    def test_pause_of_an_unknown_mode(self, dflash: LabServer) -> None:
        """An unknown pause mode is a 400 of the recorded shape and pauses nothing."""
        answer = dflash.post("/pause_generation", {"mode": "nosuch"})
        assert (answer.status_code, set(answer.json())) == (400, {"object", "message", "type", "param", "code"})
        assert dflash.status("/ready") == 200


def test_refused_generations(dflash: LabServer) -> None:
    """What the real /generate refuses, the lab refuses with the recorded status and words."""
    entries = recorded("control.json")
    assert isinstance(entries, list)
    refused = [entry for entry in entries if entry["path"] == "/generate" and entry["body"].endswith("}")]
    assert len(refused) == 3
    for entry in refused:
        answer = dflash.send("POST", "/generate", entry["body"])
        assert answer.status_code == entry["status"]
        wanted = re.sub(r"2048|5000|5002", "#", entry["reply"].replace("\\'", "'"))[:80]
        assert wanted in re.sub(r"512|5000|5002", "#", answer.text)


class TestLog:
    """The log speaks in the recorded lines."""

    STAMP = r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] "
    DECODE = re.compile(
        STAMP + r"Decode batch, #running-req: \d+, #token: \d+, token usage: \d\.\d\d, "
        r"(accept len: \d+\.\d\d, accept rate: \d\.\d\d, )?cpu graph: False, "
        r"gen throughput \(token/s\): \d+\.\d\d, #queue-req: \d+$"
    )
    PREFILL = re.compile(
        STAMP + r"Prefill batch, #new-seq: \d+, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, "
        r"#running-req: \d+, #queue-req: \d+, #pending-token: \d+, cpu graph: False, "
        r"input throughput \(token/s\): \d+\.\d\d$"
    )

    def test_decode_and_prefill_lines(self, dflash: LabServer) -> None:
        """The patterns that match every recorded line match every line of the lab."""
        for text in (lines("decode_lines.txt"), dflash.log().split("\n")):
            batches = [line for line in text if "Decode batch" in line or "Prefill batch" in line]
            assert len(batches) >= 3
            assert [line for line in batches if not (self.DECODE.match(line) or self.PREFILL.match(line))] == []

    def test_start_up_order(self, dflash: LabServer) -> None:
        """The lab's start prints the recorded lines in the recorded order, and besides them only its graph capture."""
        assert self._phases(dflash.log().split("\n")) == self._phases(lines("startup_dflash.log"))

    def _phases(self, text: list[str]) -> list[str]:
        """Return the beginnings of the lines that mark phases, figures removed, up to the ready line."""
        marks = (
            *(
                "server_args=",
                "Init parallel",
                "Memory baseline",
                "Load weight",
                "Multi-thread loading shards",
                "Initialized DFLASH",
            ),
            *(
                "DFLASH draft runner",
                "KV Cache is allocated",
                "Memory pool end",
                "max_total_num_tokens",
                "Engine startup timings",
            ),
            *(
                "INFO:     Started",
                "INFO:     Waiting",
                "INFO:     Application",
                "INFO:     Uvicorn",
                "Prefill batch",
                "The server is fired",
            ),
        )
        found = []
        for line in text:
            plain = re.sub(r"^\[[^\]]*\] |^\r", "", line)
            if plain.startswith(marks):
                found.append(re.sub(r"[\d.]+.*", "", plain.split("=", 1)[0]))
            if plain.startswith("The server is fired"):
                break
        return found

    def test_a_bar_is_one_line(self, dflash: LabServer) -> None:
        """A progress bar is one line of carriage returns, as in the recording."""
        bars = [line for line in dflash.log().split("\n") if "Multi-thread loading shards" in line]
        assert len(bars) == 2
        assert all(line.startswith("\r") and line.count("\r") >= 2 and "100% Completed" in line for line in bars)

    def test_startup_timings_line(self, dflash: LabServer) -> None:
        """The timings line has the recorded names in the recorded order."""
        names = [
            re.findall(r"(\w+)=", next(line for line in text if "startup timings" in line))
            for text in (lines("startup_dflash.log"), dflash.log().split("\n"))
        ]
        assert names[0] == names[1]
