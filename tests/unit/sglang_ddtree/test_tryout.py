"""The ten minutes on a GPU: which settings are tried, where texts part, what is put back, and what cannot be tried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import sglang_ddtree
from sglang_ddtree import tryout
from sglang_ddtree.knobs import Knobs, Limits, Row, Setting, changed, state

LIMITS = Limits(block_size=8, max_budget=15, max_topk=4)
START = Knobs(setting=Setting(budget=3, topk=2), policy=(Row(start=1, setting=Setting(budget=15, topk=4)),))
KEY, ADMIN_KEY = "a-key", "an-admin-key"


@dataclass(slots=True, kw_only=True)
class Toy:
    """A server with the plugin's knobs that says what it is asked, one token a character; `parts` are trees that say otherwise."""

    parts: bool = False
    held: Knobs = START
    seen: list[Setting] = field(default_factory=list)

    def answer(self, path: str, body: dict[str, object]) -> object:
        """Return what the engine's route of that name would."""
        if path == "/server_info":
            return {"internal_states": [state(LIMITS, self.held)]}
        if path == "/set_internal_state":
            self.held = changed(self.held, LIMITS, body["server_args"])  # type: ignore[arg-type]  # JSON
            return [True]
        self.seen.append(self.held.at(1))
        tokens = [ord(one) for one in str(body["text"])][: body["sampling_params"]["max_new_tokens"]]  # type: ignore[index]  # JSON
        if self.parts and self.held.at(1).topk > 1:
            tokens = [0 if place == 2 else token for place, token in enumerate(tokens)]
        return {"output_ids": tokens, "meta_info": {"completion_tokens": len(tokens), "spec_verify_ct": len(tokens)}}


@contextmanager
def served(toy: Toy, admin_key: str = KEY) -> Iterator[str]:
    """Serve it on this machine; give its address. Knobs are turned with the admin key, and nothing else is asked with it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or "{}")
            key = admin_key if self.path == "/set_internal_state" else KEY
            allowed = self.headers.get("Authorization") == f"Bearer {key}"
            said = json.dumps(toy.answer(self.path, body) if allowed else {}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_POST = do_GET  # noqa: N815  # the base class looks for this name

        def log_message(self, *_values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tried(*words: str, key: str = KEY, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the script as its user does; `more` are variables beside the key."""
    argv = [sys.executable, "-m", "sglang_ddtree.tryout", *words]
    folder, environ = Path(sglang_ddtree.__file__).parents[1], os.environ | {"DDTREE_TRYOUT_KEY": key} | more
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_settings_stay_within_the_server() -> None:
    """Nothing drafted and the chain come first, then trees up to what the server allows, none twice."""
    assert tryout.settings(8, 31, 8) == [(0, 1), (7, 1), (7, 4), (15, 4), (31, 4)]
    assert tryout.settings(8, 7, 1) == [(0, 1), (7, 1)]


def test_texts_part_at_their_first_difference() -> None:
    """The first differing token counts; a text that is cut short parts nowhere."""
    assert tryout.divergence([1, 2, 3], [1, 5, 3]) == 1
    assert tryout.divergence([1, 2], [1, 2, 3]) is None


def test_server_is_tried_and_left_as_it_was() -> None:
    """Every setting is asked for texts and measured, each has a row, and then the knobs and the policy are what they were."""
    toy = Toy()
    with served(toy) as url:
        done = tried(url, "--tokens", "8", "--at-once", "1,2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("6 of 6 texts equal") == 1 + 2 * 3
    rows = [line.split() for line in done.stdout.split("accept\n")[1].splitlines()]
    wanted = [(0, 1), (7, 1), (7, 4), (15, 4)]
    assert [(int(row[0]), int(row[1])) for row in rows] == wanted * 2
    assert [(row[2], row[4]) for row in rows] == [("1", "1.00")] * 4 + [("2", "1.00")] * 4
    assert {(one.budget, one.topk) for one in toy.seen} == set(wanted)
    assert toy.held == START


def test_wrong_texts_are_told() -> None:
    """A tree that says something else is told with the place, and makes the exit status 1."""
    toy = Toy(parts=True)
    with served(toy) as url:
        done = tried(url, "--tokens", "8", "--at-once", "1")
    assert done.returncode == 1
    assert "budget  7 topk 1 x1: 6 of 6 texts equal\n" in done.stdout
    assert "budget 15 topk 4 x6: 0 of 6 texts equal, first at token 2\n" in done.stdout
    assert toy.held == START


def test_wrong_key_is_told_with_where_it_is_read() -> None:
    """A server that refuses the key is named with the variable."""
    with served(Toy()) as url:
        done = tried(url, key="another")
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {url}/server_info: HTTP Error 401: Unauthorized (DDTREE_TRYOUT_KEY holds the server's key)\n"
    )


def test_server_with_an_admin_key_is_tried() -> None:
    """Where knobs want a key of their own it is given for them alone; without it the variable is named."""
    toy = Toy()
    with served(toy, ADMIN_KEY) as url:
        done = tried(url, "--tokens", "4", "--at-once", "1", DDTREE_TRYOUT_ADMIN_KEY=ADMIN_KEY)
        refused = tried(url)
    assert (done.returncode, done.stderr, toy.held) == (0, "", START)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"error: {url}/set_internal_state: HTTP Error 401: Unauthorized "
        "(DDTREE_TRYOUT_ADMIN_KEY holds the server's admin key, where it has one)\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("http://127.0.0.1:9",), "error: http://127.0.0.1:9/server_info: <urlopen error"),
        (("nowhere",), "error: nowhere/server_info: unknown url type"),
        (("http://127.0.0.1:9", "--tokens", "0"), "--tokens: 0 is no whole number of at least 1"),
        (("http://127.0.0.1:9", "--at-once", "1,,2"), "--at-once:  is no whole number of at least 1"),
    ],
)
def test_what_cannot_be_tried_is_told_in_a_line(words: tuple[str, ...], said: str) -> None:
    """An address where nobody listens, one that is none, and numbers that are none give one line at the end, exit 2."""
    done = tried(*words)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
