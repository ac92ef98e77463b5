"""The watcher over a real supervisord: what it says, and how soon it says it."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from specctl.rollout.observation import Observation, Port
from tests.unit.host.conftest import Looks, Opener, Server, interpreter, until

pytestmark = pytest.mark.slow  # whole lives of servers under supervisor


def _ready(look: Observation) -> bool:
    return look.ready == 200


def test_ready_is_told_within_half_a_second(server: Server) -> None:
    """The flip of /ready from 503 to 200 is an event within 0.5 s, and a port of its own was seen before."""
    server.deploy("1", "none", "--ready-after", "1.0")
    with server.watch().going() as looks:
        looks.when(lambda look: look.ready == 503, "not ready yet")
        at = looks.when(_ready, "ready")
        flips = [look for _, look in looks.seen if look.ready == 503]
    first = next(time_s for time_s, look in looks.seen if look.ready == 503)  # the engine was up by then
    assert {look.port for look in flips} == {Port.OWN}
    assert at - first < 1.0 + 0.5


def test_death_is_told_within_half_a_second(server: Server) -> None:
    """A killed engine is an event within 0.5 s; its exit status follows within 1 s."""
    pid = server.deploy("1")["main_pid"]
    assert isinstance(pid, int)
    with server.watch().going() as looks:
        looks.when(_ready, "ready")
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        gone = looks.when(lambda look: look.unit.main_pid is None, "the death")
        told = looks.when(lambda look: look.unit.active == "failed" and look.unit.exit_status == 137, "the status")
    assert gone - killed < 0.5
    assert told - killed < 1.0


def test_death_is_told_without_pidfd(server: Server, open_session: Opener) -> None:
    """Python 3.8 has no pidfd: the end is seen by a look at /proc, still within half a second."""
    server.session = open_session(interpreter("3.8"))
    server.token = _int(server.call("lease.acquire", owner="tester", ttl_s=60, steal=True)["token"])
    pid = _int(server.deploy("1")["main_pid"])
    with server.watch().going() as looks:
        looks.when(_ready, "ready")
        killed = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        gone = looks.when(lambda look: look.unit.main_pid is None, "the death")
    assert gone - killed < 0.5


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def test_a_restart_is_another_invocation(server: Server) -> None:
    """When the manager starts it again, the watcher shows a new invocation and a higher count."""
    first = server.deploy("1", "none", restart="unexpected")
    pid = first["main_pid"]
    assert isinstance(pid, int)
    with server.watch(invocation=first["invocation"]).going() as looks:
        looks.when(_ready, "ready")
        os.kill(pid, signal.SIGKILL)
        looks.when(lambda look: look.unit.restarts == 1 and look.unit.invocation != first["invocation"], "the restart")
        looks.when(lambda look: look.unit.restarts == 1 and look.ready == 200, "ready again")


def test_lines_of_this_start_come_split_at_carriage_returns(server: Server) -> None:
    """Lines come from the beginning of this start, none of an earlier one, each update of a progress bar by itself."""
    server.deploy("1", "none", "--text", "first start")
    until(lambda: "first start" in (server.folder / "log").read_text(), "the first start says its line")
    server.call("unit.stop", timeout_s=10)
    server.write("2", none=server.conf("--text", "second start"))
    server.call("release.activate", id="2", algo="none")
    server.started()
    with server.watch().going() as looks:
        looks.when(lambda look: "second start" in look.lines, "the last line")
    assert looks.lines() == ["Load weight begin.", "shards: 0%", "shards: 50%", "shards: 100%", "second start"]


def test_since_now_leaves_out_what_was_said(server: Server) -> None:
    """`since` now begins with new lines: the log of a server that runs for weeks is not sent again."""
    server.deploy("1", "none", "--text", "old")
    until(lambda: "old" in (server.folder / "log").read_text(), "the old line is in the log")
    with server.watch(since="now").going() as looks:
        looks.when(_ready, "ready")
        with (server.folder / "log").open("a") as log:
            log.write("new\n")
        looks.when(lambda look: "new" in look.lines, "the new line")
    assert looks.lines() == ["new"]


def test_a_stranger_on_the_port_is_foreign(server: Server, stranger: int) -> None:
    """A listener that is none of the server's processes is FOREIGN, and its /ready is nobody's answer."""
    server.deploy("1", "none", "--ready-after", "600")
    events: list[object] = []
    done = threading.Event()
    args = {**server.args, "bind": "127.0.0.2"}

    def take(event: object) -> None:
        events.append(event)
        if isinstance(event, dict) and event["port"] == "foreign":
            done.set()

    server.session.call("watch", args, on_event=take, cancel=done, timeout_s=20)
    last = next(event for event in events if isinstance(event, dict) and event["port"] == "foreign")
    assert last["ready"] is None
    assert f"(pid {stranger})" in last["port_owner"]


def test_figures_of_all_processes_are_summed(server: Server) -> None:
    """Memory and processor time cover the main process and its children."""
    server.deploy("1", "none", "--child")
    with server.watch().going() as looks:
        looks.when(
            lambda look: look.processes == 2 and look.rss_bytes is not None and look.rss_bytes > 1 << 20, "figures"
        )
        looks.when(lambda look: look.cpu_s is not None and look.cpu_s > 0, "processor time")


def test_watching_costs_little_and_is_never_silent(server: Server) -> None:
    """Watching a server that is ready takes under 3 % of a core; an observation comes each second though nothing changes."""
    server.deploy("1")
    pid = server.session.hello["pid"]
    assert isinstance(pid, int)
    with server.watch().going() as looks:
        at = looks.when(_ready, "ready")
        count, began, before = len(looks.seen), time.monotonic(), _cpu_s(pid)
        until(lambda: len(looks.seen) >= count + 3, "three more looks", limit_s=8)
        share = (_cpu_s(pid) - before) / (time.monotonic() - began)
    times = [time_s for time_s, _ in looks.seen if time_s >= at]
    assert share < 0.03
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 1.5


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_engine_that_does_not_answer_holds_nothing_up(server: Server) -> None:
    """A stopped engine (SIGSTOP) leaves /ready unanswered; observations go on and a cancel ends the watch at once."""
    pid = server.deploy("1")["main_pid"]
    assert isinstance(pid, int)
    looks: Looks
    with server.watch().going() as looks:
        looks.when(_ready, "ready")
        os.kill(pid, signal.SIGSTOP)
        at = time.monotonic()
        looks.when(lambda look: look.ready is None and look.port is Port.OWN, "no answer", limit_s=8)
        between = [time_s for time_s, _ in looks.seen if time_s > at]
        os.kill(pid, signal.SIGCONT)
    assert len(between) >= 2


def test_first_lines_of_a_start_are_found_behind_a_long_log(server: Server) -> None:
    """`logs` with `first` gives what this start said at its beginning, however much came after it."""
    server.deploy("1", "none", "--text", "said at the start")
    until(lambda: "said at the start" in (server.folder / "log").read_text(), "the line is in the log")
    with (server.folder / "log").open("a") as log:
        log.writelines(f"line {number}\n" for number in range(50_000))
    events: list[Mapping[str, object]] = []
    server.session.call("logs", {**server.args, "first": 5}, on_event=events.append, timeout_s=5)
    assert [event["lines"] for event in events] == [
        ["Load weight begin.", "shards: 0%", "shards: 50%", "shards: 100%", "said at the start"]
    ]
