"""Public clients against the lab's server, unchanged: the `openai` package, and `sglang-router` in front of two servers."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import openai
import pytest

from tests.labmodels import Folders
from tests.labserver import LabServer, free_port, wait_until

pytestmark = pytest.mark.slow

KEY = "k1"
ROUTER = "0.3.2"


@pytest.fixture(scope="module")
def guarded(folders: Folders, logs: Path) -> Iterator[LabServer]:
    """A server with an API key that speculates with a tree."""
    arguments = ("--api-key", KEY, "--speculative-algorithm", "DDTREE", "--served-model-name", "lab")
    with LabServer(folders, logs, *arguments) as server:
        yield server.ready()


@pytest.fixture
def client(guarded: LabServer) -> openai.OpenAI:
    """An OpenAI client of that server."""
    return openai.OpenAI(base_url=f"{guarded.url}/v1", api_key=KEY, max_retries=0)


class TestOpenAi:
    """The openai package works against the lab."""

    def test_models(self, client: openai.OpenAI) -> None:
        """The served model is listed under its name."""
        assert [model.id for model in client.models.list()] == ["lab"]

    def test_a_completion(self, client: openai.OpenAI) -> None:
        """A completion has a text, a finish reason and a usage that adds up."""
        answer = client.completions.create(model="lab", prompt="def f(", max_tokens=12, temperature=0)
        usage = answer.usage
        assert usage is not None
        assert (len(answer.choices), answer.choices[0].finish_reason in {"length", "stop"}) == (1, True)
        assert usage.prompt_tokens + usage.completion_tokens == usage.total_tokens

    def test_a_streamed_completion(self, client: openai.OpenAI) -> None:
        """A streamed completion adds up to the whole one."""
        whole = client.completions.create(model="lab", prompt="def f(", max_tokens=24, temperature=0).choices[0].text
        chunks = client.completions.create(model="lab", prompt="def f(", max_tokens=24, temperature=0, stream=True)
        assert "".join(chunk.choices[0].text for chunk in chunks) == whole

    def test_a_chat(self, client: openai.OpenAI) -> None:
        """A chat answers as the assistant."""
        answer = client.chat.completions.create(
            model="lab", messages=[{"role": "user", "content": "hello"}], max_tokens=12, temperature=0
        )
        assert answer.choices[0].message.role == "assistant"
        assert answer.choices[0].message.content is not None

    def test_a_streamed_chat_with_usage(self, client: openai.OpenAI) -> None:
        """A streamed chat begins with the role, adds up to the whole one and ends with its usage."""
        asked = {"model": "lab", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 24, "temperature": 0}
        whole = client.chat.completions.create(**asked)  # type: ignore[call-overload]  # one set of arguments for both calls
        chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))  # type: ignore[call-overload]  # as above
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert deltas[0].role == "assistant"
        assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
        assert chunks[-1].usage == whole.usage

    def test_stop_and_seed(self, client: openai.OpenAI) -> None:
        """A stop string ends the text before it, and a seed repeats a sampled answer."""
        text = (
            client.completions.create(model="lab", prompt="abc", max_tokens=40, temperature=1, seed=5).choices[0].text
        )
        again = (
            client.completions.create(model="lab", prompt="abc", max_tokens=40, temperature=1, seed=5).choices[0].text
        )
        stop = text[3:5]
        cut = client.completions.create(model="lab", prompt="abc", max_tokens=40, temperature=1, seed=5, stop=stop)
        assert again == text
        assert (cut.choices[0].text, cut.choices[0].finish_reason) == (text[: text.index(stop)], "stop")

    def test_refusals_are_the_packages_own_errors(self, client: openai.OpenAI, guarded: LabServer) -> None:
        """Log probabilities are a BadRequestError, a wrong key an AuthenticationError, an unknown model a NotFoundError."""
        with pytest.raises(openai.BadRequestError):
            client.completions.create(model="lab", prompt="abc", logprobs=3)
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{guarded.url}/v1", api_key="nope", max_retries=0).models.list()
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("nosuch")


def installed_router() -> str | None:
    """Return the installed version of the router."""
    try:
        return importlib.metadata.version("sglang-router")
    except importlib.metadata.PackageNotFoundError:
        return None


class Router:
    """A router in front of two servers, with what it printed."""

    def __init__(self, servers: list[LabServer], folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log_path = folder / "router.log"
        workers = [server.url for server in servers]
        argv = [
            *(
                sys.executable,
                "-m",
                "sglang_router.launch_router",
                "--host",
                "127.0.0.1",
                "--port",
                self.url.rsplit(":", 1)[1],
            ),
            *("--policy", "round_robin", "--prometheus-port", str(free_port()), "--worker-urls", *workers),
        ]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        wait_until(self.is_ready, limit_s=60, what="the router")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def is_ready(self) -> bool:
        """Tell whether the router serves."""
        assert self.process.poll() is None, self.log_path.read_text(encoding="utf-8")
        try:
            return httpx.get(self.url + "/readiness", timeout=2).status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def servers(folders: Folders, logs: Path) -> Iterator[list[LabServer]]:
    """Two servers with different algorithms and the same model."""
    algorithms = ((), ("--speculative-algorithm", "DFLASH"))
    shared = ("--enable-metrics", "--served-model-name", "lab")
    with ExitStack() as stack:
        yield [stack.enter_context(LabServer(folders, logs, *shared, *extra)).ready() for extra in algorithms]


@pytest.fixture(scope="module")
def router(servers: list[LabServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    """A router that sends requests to both in turn."""
    with Router(servers, tmp_path_factory.mktemp("router")) as started:
        yield started


@pytest.mark.skipif(installed_router() != ROUTER, reason=f"sglang-router {ROUTER} is not installed for this Python")
class TestRouter:
    """sglang-router serves two lab servers as it would two real ones."""

    def test_requests_reach_both(self, router: Router, servers: list[LabServer]) -> None:
        """Completions through the router are the servers' own, and both of them served some."""
        before = [server.metrics()["sglang:num_requests_total"] for server in servers]
        client = openai.OpenAI(base_url=f"{router.url}/v1", api_key="none", max_retries=0)
        texts = {
            client.completions.create(model="lab", prompt="def f(", max_tokens=8, temperature=0).choices[0].text
            for _ in range(6)
        }
        direct = servers[0].post("/v1/completions", {"prompt": "def f(", "max_tokens": 8, "temperature": 0}).json()
        assert texts == {direct["choices"][0]["text"]}
        after = [server.metrics()["sglang:num_requests_total"] for server in servers]
        assert [now - then for now, then in zip(after, before, strict=True)] == [4, 3]

    def test_native_and_streamed_requests(self, router: Router) -> None:
        """/generate and a streamed chat pass through the router."""
        body = {"text": "hello", "sampling_params": {"temperature": 0, "max_new_tokens": 5}}
        answer = httpx.post(router.url + "/generate", json=body, timeout=30)
        assert (answer.status_code, "output_ids" in answer.json()) == (200, True)
        client = openai.OpenAI(base_url=f"{router.url}/v1", api_key="none", max_retries=0)
        chunks = client.chat.completions.create(
            model="lab", messages=[{"role": "user", "content": "hello"}], max_tokens=8, temperature=0, stream=True
        )
        assert any(chunk.choices and chunk.choices[0].finish_reason for chunk in chunks)
