"""/generate on the real server: whole, streamed, in batches, stopped and aborted."""

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path

import httpx
import pytest

from specctl.lab.tokenizer import Tokenizer
from tests.labmodels import Folders
from tests.labserver import LabServer, wait_until

GREEDY = {"temperature": 0, "ignore_eos": True}


def ask(server: LabServer, **body: object) -> httpx.Response:
    """Send a /generate body."""
    return server.post("/generate", body)


def stream(server: LabServer, path: str, body: object) -> list[str]:
    """Return the events of a streamed answer."""
    with httpx.stream("POST", server.url + path, json=body, timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [line.removeprefix("data: ") for line in answer.iter_lines() if line]


def test_text_and_ids_are_the_same_prompt(server: LabServer, folders: Folders) -> None:
    """A text and its tokens give the same answer, and the answer's text is that of its tokens."""
    by_text = server.generate("hello", tokens=20).json()
    ids = Tokenizer.load(folders.target / "tokenizer.json").encode("hello")
    by_ids = ask(server, input_ids=ids, sampling_params={**GREEDY, "max_new_tokens": 20}).json()
    assert by_text["output_ids"] == by_ids["output_ids"]
    assert by_text["text"] == by_ids["text"]
    assert (
        by_text["meta_info"]["prompt_tokens"],
        by_text["meta_info"]["completion_tokens"],
        len(by_text["output_ids"]),
    ) == (5, 20, 20)


def test_a_batch_answers_in_order(server: LabServer) -> None:
    """A list of prompts is answered by a list, each as if it had been alone, with its own parameters and id."""
    params = [{**GREEDY, "max_new_tokens": count} for count in (3, 9)]
    both = ask(server, text=["ab", "xyz"], rid=["one", "two"], sampling_params=params).json()
    alone = [
        ask(server, text=text, sampling_params=given).json() for text, given in zip(("ab", "xyz"), params, strict=True)
    ]
    assert [answer["output_ids"] for answer in both] == [answer["output_ids"] for answer in alone]
    assert [answer["meta_info"]["id"] for answer in both] == ["one", "two"]


def test_a_stream_repeats_the_whole_text(server: LabServer) -> None:
    """Each event holds all text so far and grows; the last equals the whole answer, then comes [DONE]."""
    body = {"text": "hello", "sampling_params": {**GREEDY, "max_new_tokens": 30}, "stream": True}
    server.post("/slow_down", {"forward_sleep_time": 0.005})
    *events, done = stream(server, "/generate", body)
    server.post("/slow_down", {"forward_sleep_time": None})
    answers = [json.loads(event) for event in events]
    assert done == "[DONE]"
    assert len(answers) > 3
    assert all(later["text"].startswith(earlier["text"]) for earlier, later in itertools.pairwise(answers))
    assert answers[0]["meta_info"]["finish_reason"] is None
    assert answers[-1]["output_ids"] == server.generate("hello", tokens=30).json()["output_ids"]


def test_a_streamed_batch_tells_its_parts_apart(server: LabServer) -> None:
    """Events of a streamed batch carry the place of their prompt."""
    body = {"text": ["ab", "xyz"], "sampling_params": {**GREEDY, "max_new_tokens": 5}, "stream": True}
    last = {}
    for event in stream(server, "/generate", body)[:-1]:
        answer = json.loads(event)
        last[answer["index"]] = answer["output_ids"]
    assert last == {
        index: server.generate(text, tokens=5).json()["output_ids"] for index, text in enumerate(("ab", "xyz"))
    }


def test_a_stop_string(server: LabServer) -> None:
    """The answer ends before a stop string and names it; the token that completed it is counted."""
    free = server.generate("hello", tokens=60).json()
    stop = free["text"][20:22]
    at = free["text"].index(stop)
    answer = server.generate("hello", tokens=60, stop=[stop]).json()
    assert (answer["text"], answer["meta_info"]["finish_reason"]) == (
        free["text"][:at],
        {"type": "stop", "matched": stop},
    )
    assert free["output_ids"][: len(answer["output_ids"])] == answer["output_ids"]


def test_a_stop_token(server: LabServer) -> None:
    """The answer ends with a stop token, which has no text."""
    free = server.generate("hello", tokens=30).json()["output_ids"]
    answer = server.generate("hello", tokens=30, stop_token_ids=[free[9]], ignore_eos=False).json()
    end = free.index(free[9]) + 1
    assert (answer["output_ids"], answer["meta_info"]["finish_reason"]) == (
        free[:end],
        {"type": "stop", "matched": free[9]},
    )


def test_a_seed_repeats(server: LabServer) -> None:
    """Sampling with one seed repeats itself, with another it differs."""
    asked = [
        server.generate("hello", tokens=40, temperature=1.0, sampling_seed=seed).json()["output_ids"]
        for seed in (1, 1, 2)
    ]
    assert asked[0] == asked[1] != asked[2]


def test_a_client_that_hangs_up_is_forgotten(server: LabServer) -> None:
    """When a client goes, streamed or not, its request leaves the batch."""
    server.post("/slow_down", {"forward_sleep_time": 0.02})
    body = {"text": "x", "sampling_params": {**GREEDY, "max_new_tokens": 400}}
    for streaming in (True, False):
        if streaming:
            with httpx.stream("POST", server.url + "/generate", json={**body, "stream": True}, timeout=30) as answer:
                next(answer.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(server.url + "/generate", json=body, timeout=0.3)
        wait_until(
            lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 0,
            limit_s=5,
            what="an empty batch",
        )
    server.post("/slow_down", {"forward_sleep_time": None})


def test_abort_by_id(server: LabServer) -> None:
    """An aborted request is answered 200 with what it had and finish type abort."""
    server.post("/slow_down", {"forward_sleep_time": 0.02})
    with server.background_generate(tokens=400, rid="abort-me") as running:
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
        assert server.post("/abort_request", {"rid": "abort-me"}).status_code == 200
        answer = running.result(timeout=10)
    server.post("/slow_down", {"forward_sleep_time": None})
    reason = answer.json()["meta_info"]["finish_reason"]
    assert (answer.status_code, reason) == (
        200,
        {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None},
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Either text, input_ids or input_embeds should be provided."),
        ({"text": "a", "input_ids": [5]}, "Only one of"),
        ({"text": ""}, "The input is empty."),
        ({"input_ids": [99999]}, "input_ids must lie in"),
        ({"input_ids": [5] * 600}, "is longer than the model's context length (512 tokens)."),
        (
            {"text": "a", "sampling_params": {"max_new_tokens": 5000}},
            "exceeds the model's maximum context length of 512 tokens",
        ),
        ({"text": "a", "sampling_params": [1]}, "sampling_params must be an object"),
        ({"text": ["a", "b"], "sampling_params": [{}]}, "sampling_params has 1 entries for 2 prompts."),
        ({"text": "a", "return_logprob": True}, "return_logprob is not supported"),
        ({"text": "a", "rid": ["a"]}, "rid must be unique."),
        ({"text": "a", "rid": 5}, "rid must be a string"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_refusals(body: dict[str, object], words: str, streaming: bool, server: LabServer) -> None:
    """What cannot be served is a 400 with a reason, streamed or not."""
    answer = ask(server, **body, stream=streaming)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", ["{", '{"text": "\\ud800"}', '{"text": "a\\uDBFF"}', "[" * 200_000], ids=["cut", "half", "HALF", "deep"]
)
def test_no_json(body: str, server: LabServer) -> None:
    """A body that is no JSON is a 400, and one whose text is none, or that nobody can read to its end."""
    assert server.send("POST", "/generate", body).status_code == 400


def test_a_pair_of_surrogates_is_a_character(server: LabServer) -> None:
    """What JSON writes as two halves of a character is served."""
    assert server.send("POST", "/generate", '{"text": "\\ud83d\\ude00"}').status_code == 200


def test_full_queue(folders: Folders, logs: Path) -> None:
    """Requests beyond the queue's limit are answered 503 with the recorded body while /ready stays 200."""
    with LabServer(folders, logs, "--max-running-requests", "1", "--max-queued-requests", "1") as small:
        small.ready().post("/slow_down", {"forward_sleep_time": 0.02})
        with small.background_generate(tokens=200) as first, contextlib.ExitStack() as stack:
            wait_until(
                lambda: small.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="a running request"
            )
            second = stack.enter_context(small.background_generate(tokens=2))
            wait_until(lambda: small.get("/v1/loads").json()["loads"][0]["num_waiting_reqs"] == 1, what="a full queue")
            answer = small.generate(tokens=2)
            assert (answer.status_code, small.status("/ready")) == (503, 200)
            small.post("/abort_request", {"abort_all": True})
            assert [first.result(timeout=10).status_code, second.result(timeout=10).status_code] == [200, 200]
    assert answer.json() == {
        "object": "error",
        "message": "The request queue is full.",
        "type": "503",
        "param": None,
        "code": 503,
    }
