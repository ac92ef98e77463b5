"""The OpenAI routes on the real server (the client package itself is in the contract tests)."""

from __future__ import annotations

import json

import pytest

from specctl.lab.tokenizer import Tokenizer
from tests.labmodels import Folders
from tests.labserver import LabServer
from tests.unit.lab.serve.test_generate import stream

PROMPT = {"model": "m", "prompt": "hello", "temperature": 0, "ignore_eos": True, "max_tokens": 20}
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}],
    "temperature": 0,
    "ignore_eos": True,
    "max_tokens": 20,
}


def test_a_completion(server: LabServer) -> None:
    """A completion is the text of /generate with its usage."""
    answer = server.post("/v1/completions", PROMPT).json()
    assert answer["choices"][0]["text"] == server.generate("hello", tokens=20).json()["text"]
    assert (answer["object"], answer["model"], answer["choices"][0]["finish_reason"]) == (
        "text_completion",
        "m",
        "length",
    )
    assert [answer["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")] == [5, 20, 25]


def test_several_prompts(server: LabServer) -> None:
    """A list of prompts gives one choice each, in order, with summed usage."""
    answer = server.post("/v1/completions", {**PROMPT, "prompt": ["hello", "abc"], "max_tokens": 4}).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert [choice["text"] for choice in answer["choices"]] == [
        server.generate(text, tokens=4).json()["text"] for text in ("hello", "abc")
    ]
    assert answer["usage"]["total_tokens"] == 5 + 3 + 8


def test_token_prompts(server: LabServer, folders: Folders) -> None:
    """Token ids are a prompt too."""
    ids = Tokenizer.load(folders.target / "tokenizer.json").encode("hello")
    text = server.post("/v1/completions", PROMPT).json()["choices"][0]["text"]
    for prompt in (ids, [ids]):
        assert server.post("/v1/completions", {**PROMPT, "prompt": prompt}).json()["choices"][0]["text"] == text


def test_a_chat(server: LabServer) -> None:
    """A chat is the completion of the lab's template."""
    answer = server.post("/v1/chat/completions", CHAT).json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert (
        answer["choices"][0]["message"]["content"]
        == server.generate("user: hello\nassistant:", tokens=20).json()["text"]
    )


@pytest.mark.parametrize(
    ("path", "body", "part"), [("/v1/completions", PROMPT, "text"), ("/v1/chat/completions", CHAT, "delta")]
)
def test_streams_add_up(path: str, body: dict[str, object], part: str, server: LabServer) -> None:
    """The chunks of a stream add up to the whole answer; the last before [DONE] holds the usage that was asked for."""
    whole = server.post(path, body).json()
    text = whole["choices"][0]["text"] if part == "text" else whole["choices"][0]["message"]["content"]
    *events, usage, done = stream(server, path, {**body, "stream": True, "stream_options": {"include_usage": True}})
    chunks = [json.loads(event) for event in events]
    pieces = [chunk["choices"][0][part] for chunk in chunks]
    assert "".join(piece if isinstance(piece, str) else piece["content"] for piece in pieces) == text
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert (json.loads(usage)["choices"], json.loads(usage)["usage"], done) == ([], whole["usage"], "[DONE]")


def test_a_stop_string_is_named(server: LabServer) -> None:
    """A stop string ends a choice with finish reason stop and is named."""
    stop = server.generate("hello", tokens=20).json()["text"][8:10]
    choice = server.post("/v1/completions", {**PROMPT, "stop": stop}).json()["choices"][0]
    assert (choice["finish_reason"], choice["matched_stop"], stop in choice["text"]) == ("stop", stop, False)


def test_a_chat_without_a_limit_fills_the_context(server: LabServer) -> None:
    """Without a limit a chat may go on to the end of the context."""
    body = {key: value for key, value in CHAT.items() if key != "max_tokens"}
    assert server.post("/v1/chat/completions", body).json()["usage"]["total_tokens"] == 512


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/v1/completions", {"logprobs": 3}),
        ("/v1/completions", {"n": 2}),
        ("/v1/completions", {"echo": True}),
        ("/v1/completions", {"prompt": []}),
        ("/v1/completions", {"max_tokens": 100000}),
        ("/v1/chat/completions", {"logprobs": True}),
        ("/v1/chat/completions", {"messages": []}),
        ("/v1/chat/completions", {"messages": ["hi"]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        ("/v1/chat/completions", {"tools": [{"type": "function"}]}),
    ],
)
def test_refusals(path: str, wrong: dict[str, object], server: LabServer) -> None:
    """What the lab lacks or cannot serve is a 400 in OpenAI's shape."""
    answer = server.post(path, {**(PROMPT if path == "/v1/completions" else CHAT), **wrong})
    assert (answer.status_code, answer.json()["object"], answer.json()["code"]) == (400, "error", 400)


def test_models_by_name(server: LabServer) -> None:
    """The served model is found by its name, another is a 404."""
    name = server.get("/v1/models").json()["data"][0]["id"]
    assert server.get(f"/v1/models/{name}").json()["id"] == name
    assert server.get("/v1/models/nosuch").status_code == 404
