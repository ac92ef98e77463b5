"""The live way on a real lab server: it asks before it believes, reads back what it told, and proves by real traffic alone."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from specctl.control.mode import Mode
from specctl.ops import engine_live
from specctl.rollout.proof import Claimed, Proven, Refuted
from specctl_agent.actuators import Broken, Moved, Refused
from specctl_agent.actuators.live import Live
from tests import labmodels
from tests.agentworld import DDTREE, DFLASH, NONE, Marks, engine_of, live_of, server_of, tree
from tests.labserver import ALLOW_FAULTS, LabServer, wait_until

API_KEY, ADMIN_KEY = "sk-clients-0123456789", "sk-admins-0123456789"
TREE = (
    *("--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "16", "--speculative-ddtree-topk-cap", "8"),
    *("--speculative-dflash-block-size", "8", "--enable-metrics", "--decode-log-interval", "4"),
)

pytestmark = pytest.mark.slow  # real lab servers, started for it


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> labmodels.Folders:
    """Small models."""
    return labmodels.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def lab(folders: labmodels.Folders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A lab server with both keys that begins with a tree; tests leave it so."""
    folder = tmp_path_factory.mktemp("lab")
    with LabServer(folders, folder, *TREE, "--api-key", API_KEY, "--admin-api-key", ADMIN_KEY) as started:
        yield started.ready()


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    """The keys in files, as deploy leaves them."""
    found = {"api_key": tmp_path / "api_key", "admin_api_key": tmp_path / "admin_api_key"}
    for path, key in zip(found.values(), (API_KEY, ADMIN_KEY), strict=True):
        path.write_text(key)
        path.chmod(0o640)
    return found


@pytest.fixture
def live(lab: LabServer, keys: dict[str, Path]) -> Live:
    """The way to change it."""
    return live_of(lab, server_of(lab.port, keys=keys), threading.Event())


def speaking(lab: LabServer, tokens: int = 120) -> None:
    """Send one request to its end."""
    answer = lab.post(
        "/generate",
        {"text": "hello", "sampling_params": {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}},
        Authorization=f"Bearer {API_KEY}",
    )
    assert answer.status_code == 200


@contextmanager
def traffic(lab: LabServer) -> Iterator[None]:
    """Keep the server busy, one request after the other."""
    over = threading.Event()

    def ask_on() -> None:
        while not over.is_set():
            speaking(lab)

    thread = threading.Thread(target=ask_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def claimed(lab: LabServer) -> object:
    """Return the algorithm that the scheduler says it runs."""
    return lab.get("/server_info", Authorization=f"Bearer {API_KEY}").json()["internal_states"][0][
        "speculative_algorithm"
    ]


def test_every_mode_is_reached_and_proven_by_traffic(lab: LabServer, live: Live) -> None:
    """From the tree to the chain, to no speculation and back, each under traffic: taken at once, then proven, nothing lost."""
    with traffic(lab):
        for old, new in ((DDTREE, DFLASH), (DFLASH, NONE), (NONE, DDTREE), (DDTREE, tree(4)), (tree(4), DDTREE)):
            marks = Marks()
            assert live.can(old, new) is None
            outcome = live.switch(old, new, marks.errand())
            assert isinstance(outcome, Moved), outcome
            assert outcome.took_s < 5.0
            assert marks.names == ["telling"]
            assert isinstance(proof := live.confirm(new), Proven), proof
    assert claimed(lab) == "DDTREE"


def test_without_traffic_a_switch_is_only_claimed(lab: LabServer, keys: dict[str, Path]) -> None:
    """Nobody asks the server anything: the engine's word is all there is, and that is no proof."""
    live = live_of(lab, server_of(lab.port, keys=keys), threading.Event(), confirm_s=0.3)
    assert isinstance(live.switch(DDTREE, DFLASH, Marks().errand()), Moved)
    proof = live.confirm(DFLASH)
    assert isinstance(live.revert(DDTREE, Marks().errand()), Moved)
    assert isinstance(proof, Claimed)
    assert "no smoke generation was made" in proof.missing


def test_the_mark_is_made_before_the_engine_is_told(lab: LabServer, live: Live) -> None:
    """What fails to be written down is not done."""

    class DiskFullError(Exception):
        pass

    def refuse(step: str, facts: object) -> None:
        raise DiskFullError

    errand = replace(Marks().errand(), mark=refuse)
    with pytest.raises(DiskFullError):
        live.switch(DDTREE, DFLASH, errand)
    assert claimed(lab) == "DDTREE"


def test_no_key_shows_anywhere(live: Live, keys: dict[str, Path]) -> None:
    """Neither the actuator nor its engine prints a key; they know where it lies."""
    assert ADMIN_KEY not in repr(live)
    assert API_KEY not in repr(live)
    assert str(keys["admin_api_key"]) in repr(live)


def test_a_wrong_key_is_refused_in_words(lab: LabServer, keys: dict[str, Path]) -> None:
    """With the wrong admin key nothing is changed, and the reason names the key, not its value."""
    keys["admin_api_key"].write_text("sk-wrong-9876543210")
    live = live_of(lab, server_of(lab.port, keys=keys), threading.Event())
    assert live.can(DDTREE, DFLASH) == "the engine refuses the key (status 401)"
    assert live.switch(DDTREE, DFLASH, Marks().errand()) == Refused(reason="the engine refuses the key (status 401)")
    assert claimed(lab) == "DDTREE"


def test_what_the_engine_rejects_is_no_switch(lab: LabServer, live: Live) -> None:
    """A budget beyond what the drafter can fill is answered [false]: refused, and the tree is as it was."""
    wanted = Mode("ddtree", (("block_size", 64), ("topk_cap", 8), ("tree_budget", 16)))
    assert live.switch(DDTREE, wanted, Marks().errand()) == Refused(reason="the engine answers [false]")
    assert claimed(lab) == "DDTREE"


def test_an_engine_that_lies_is_refuted(folders: labmodels.Folders, tmp_path: Path) -> None:
    """It says DDTREE and decodes the chain: without its tree lines the claim is never proven."""
    chain = ("--speculative-algorithm", "DFLASH", "--speculative-dflash-block-size", "8", "--enable-metrics")
    lie = ("--inject", "claims-ddtree-runs-linear", "--decode-log-interval", "4")
    with LabServer(folders, tmp_path, *chain, *lie, env=ALLOW_FAULTS) as lab:
        live = live_of(lab.ready(), server_of(lab.port), threading.Event(), confirm_s=1.5)
        assert isinstance(live.switch(DFLASH, DDTREE, Marks().errand()), Moved)
        lab.generate(tokens=200)
        proof = live.confirm(DDTREE)
    assert not isinstance(proof, Proven)
    assert isinstance(proof, Claimed)
    assert any("DDTREE metrics" in missing for missing in proof.missing)


def test_an_engine_that_was_set_otherwise_is_refuted(lab: LabServer, live: Live) -> None:
    """Somebody set the chain after us: the tree that we told is refuted by the engine's own word."""
    assert isinstance(live.switch(DDTREE, tree(8), Marks().errand()), Moved)
    changed = {"server_args": {"speculative_ddtree_budget": 5}}
    assert lab.post("/set_internal_state", changed, Authorization=f"Bearer {ADMIN_KEY}").json() == [True]
    proof = live.confirm(tree(8))
    assert isinstance(live.revert(DDTREE, Marks().errand()), Moved)
    assert proof == Refuted(reasons=("speculative_ddtree_budget is 5, not 8",))


def test_a_dead_engine_is_broken_not_moved(folders: labmodels.Folders, tmp_path: Path) -> None:
    """It dies while it is told: nothing is known of it, so nothing is claimed."""
    with LabServer(folders, tmp_path, *TREE) as lab:
        live = live_of(lab.ready(), server_of(lab.port), threading.Event())
        assert live.can(DDTREE, DFLASH) is None
        assert lab.process is not None
        lab.process.kill()
        wait_until(lambda: lab.exit_code() is not None, what="its death")
        outcome = live.switch(DDTREE, DFLASH, Marks().errand())
    assert isinstance(outcome, Broken)
    assert outcome.reason == "the engine gave no answer: refused"


class Stock(http.server.BaseHTTPRequestHandler):
    """Answers as SGLang 0.5.23 does (recordings): states without what it cannot set, [false] for what nobody can."""

    told: ClassVar[list[object]] = []
    states: ClassVar[list[object]] = []

    def do_GET(self) -> None:
        """Answer /server_info."""
        self._answer(json.dumps({"internal_states": self.states}).encode())

    def do_POST(self) -> None:
        """Answer /set_internal_state: a name is refused as no number, another argument is answered [false]."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append(body["server_args"])
        numbers = all(isinstance(value, int | float) for value in body["server_args"].values())
        self._answer(b"[false]" if numbers else b'{"object":"error"}', 200 if numbers else 400)

    def _answer(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """Say nothing."""


@pytest.fixture
def stock() -> Iterator[int]:
    """The port of an engine that takes nothing live."""
    Stock.told.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stock)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_stock_engine_cannot_whatever_its_profile_says(stock: int) -> None:
    """The profile claims live knobs, the engine answers [false] to the value that it has: it cannot, and is asked once."""
    Stock.states[:] = [{"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": 16}]
    server = server_of(stock)
    live = Live(server, engine_of(server), None, threading.Event())  # type: ignore[arg-type]  # it never comes to be watched
    assert live.can(DDTREE, tree(8)) == "the engine answers [false]"
    assert live.can(DDTREE, tree(32)) == "the engine answers [false]"
    assert Stock.told == [{"speculative_ddtree_budget": 16}]
    live.forget()
    assert live.can(DDTREE, tree(8)) is not None
    assert len(Stock.told) == 2


def test_an_engine_that_does_not_tell_is_not_told(stock: int) -> None:
    """No internal state, or one without the argument: there is no way to confirm, so nothing is asked."""
    server = server_of(stock)
    live = Live(server, engine_of(server), None, threading.Event())  # type: ignore[arg-type]  # likewise
    Stock.states[:] = []
    assert live.can(DDTREE, DFLASH) == "/server_info tells no internal state"
    live.forget()
    Stock.states[:] = [{"speculative_algorithm": None}]
    assert "/server_info does not tell" in str(live.can(DDTREE, DFLASH))
    assert Stock.told == []


def test_the_profile_is_heard_before_the_engine(stock: int) -> None:
    """What the profile takes only at a start is not asked for; nor is an algo that it lacks, nor no change at all."""
    server = server_of(stock)
    bare = {name: replace(algo, live_knobs=()) for name, algo in server.profile.algos.items()}
    cold = replace(server, profile=replace(server.profile, algos=bare))
    live = Live(cold, engine_of(cold), None, threading.Event())  # type: ignore[arg-type]  # likewise
    assert live.can(DDTREE, tree(8)) == "lab takes tree_budget of ddtree only at its start"
    assert live.can(NONE, DFLASH) == "lab takes algo, block_size of dflash only at its start"
    assert live.can(DFLASH, DFLASH) == "there is nothing to change between dflash:block_size=8 and dflash:block_size=8"
    del bare["dflash"]
    without = replace(server, profile=replace(server.profile, algos=bare))
    assert Live(without, engine_of(without), None, threading.Event()).can(NONE, DFLASH) == "lab has no dflash"  # type: ignore[arg-type]  # likewise
    assert Stock.told == []


def test_ranks_that_disagree_are_said() -> None:
    """One rank took the change and another did not: both of its words are in the reason."""
    info = {"internal_states": [{"speculative_algorithm": "DFLASH"}, {"speculative_algorithm": "DDTREE"}]}
    assert engine_live.differing(info, {"speculative_algorithm": "DFLASH"}) == (
        "speculative_algorithm is 'DDTREE', not 'DFLASH'",
    )
    assert engine_live.differing({"internal_states": []}, {"speculative_algorithm": "DFLASH"}) is None
    assert engine_live.differing(None, {}) is None
