"""The board: a terminal redraws, a pipe is never flooded, a program gets events."""

from __future__ import annotations

import io
import json
import re
import threading
from dataclasses import dataclass, field, replace

import pytest

from specctl.rollout import gate
from specctl.rollout.gate_types import GateState, Stalled
from specctl.rollout.observation import Port
from specctl.rollout.story import headline
from specctl.ui import theme
from specctl.ui.board import Board, Mode, mode_for
from tests.unit.rollout.replay import spec_for
from tests.unit.rollout.test_gate import look
from tests.unit.ui.test_gate import BEGIN, weights


@dataclass
class Clock:
    """A clock that stands until it is set."""

    now_s: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


@dataclass
class Screen:
    """A board on a stream that can be read back."""

    mode: Mode
    terminal: bool = False
    clock: Clock = field(default_factory=Clock)
    file: io.StringIO = field(default_factory=io.StringIO)

    def board(self, *hosts: str) -> Board:
        """Return a board on this screen."""
        console = theme.console(file=self.file, width=80, terminal=self.terminal)
        return Board(console, self.mode, hosts=hosts, clock=self.clock)

    @property
    def lines(self) -> list[str]:
        """Return the lines written so far."""
        return self.file.getvalue().splitlines()


def shown(written: str) -> list[str]:
    """Return what a terminal shows of a stream: rows after carriage returns, moves up and erased lines."""
    rows, at, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if piece == "\n":
            at, column = at + 1, 0
            rows.extend([""] * (at + 1 - len(rows)))
        elif piece == "\r":
            column = 0
        elif piece.endswith("A") and piece.startswith("\x1b"):
            at = max(at - int(piece[2:-1] or 1), 0)
        elif piece == "\x1b[2K":
            rows[at] = ""
        elif not piece.startswith("\x1b"):
            rows[at] = rows[at].ljust(column)[:column] + piece + rows[at][column + len(piece) :]
            column += len(piece)
    return [row.rstrip() for row in rows if row.strip()]


def load_states(seconds: int) -> list[GateState]:
    """Return a state for every second of a load that enters the weights after ten."""
    spec = spec_for(target_bytes=10**12)
    state = gate.begin(spec)
    states = []
    for at in range(seconds):
        state = gate.advance(spec, state, look(float(at), *([BEGIN] if at == 10 else []), gpu_bytes=at * 10**9))
        states.append(state)
    return states


def test_a_pipe_gets_a_line_at_a_change_and_every_half_minute() -> None:
    """Two minutes of looks, one a second, are five lines: the two phases, and one each thirty seconds."""
    screen = Screen(Mode.PLAIN)
    with screen.board("ct200") as board:
        for at, state in enumerate(load_states(120)):
            screen.clock.now_s = float(at)
            board.gate("ct200", state)
    assert [line.split()[1:3] for line in screen.lines] == [
        ["start", "0:00"],
        ["weights", "0:10,"],
        ["weights", "0:40,"],
        ["weights", "1:10,"],
        ["weights", "1:40,"],
    ]


def test_a_program_gets_an_event_a_second_at_most_and_none_where_nothing_changed() -> None:
    """Figures that change fast are thinned to one event a second; a load that stands still is silent."""
    screen = Screen(Mode.JSON)
    early = load_states(20)[-1]
    with screen.board("ct200") as board:
        for tenth in range(30):
            screen.clock.now_s = tenth / 10
            board.gate("ct200", early if tenth < 10 else weights())
        for second in range(10):
            screen.clock.now_s = 10.0 + second
            board.gate("ct200", weights())
    events = [json.loads(line) for line in screen.lines]
    assert [event["detail"] for event in events] == ["10 of 1000 GB", "412 of 590 GB"]


def test_what_stays_is_told_in_every_mode() -> None:
    """A final line is a line on a terminal and on a pipe, an event for a program."""
    for mode in (Mode.LIVE, Mode.PLAIN):
        screen = Screen(mode, terminal=mode is Mode.LIVE)
        with screen.board("ct200") as board:
            board.step("ct200", "drain", "2 running → 0")
            board.final("ct200", "deployed", "release 7, ddtree, 8:14")
        told = ["  ct200  deployed   release 7, ddtree, 8:14"]
        assert shown(screen.file.getvalue()) == (
            told if mode is Mode.LIVE else ["  ct200  drain      2 running → 0", *told]
        )
    screen = Screen(Mode.JSON)
    screen.board().final("ct200", "deployed", "release 7")
    assert json.loads(screen.lines[0]) == {"event": "final", "host": "ct200", "name": "deployed", "text": "release 7"}


def test_how_a_load_ended_is_one_line_on_a_pipe() -> None:
    """The verdict as it is seen is the first line of why; another host's line between the two has both told whole."""
    ended = replace(weights(), verdict=Stalled(for_s=31.0, watched=()))
    line = "  a  stalled    " + headline(ended)
    screen = Screen(Mode.PLAIN)
    with screen.board("a", "b") as board:
        board.gate("a", ended)
        board.final("a", "stalled", headline(ended))
        board.final("a", "log", "the same")
        board.final("a", "log", "the same")
    assert shown(screen.file.getvalue()) == [line, *2 * ["     log        the same"]]
    screen = Screen(Mode.PLAIN)
    with screen.board("a", "b") as board:
        board.gate("a", ended)
        board.final("b", "deployed", "release 7")
        board.final("a", "stalled", headline(ended))
        board.final("a", "log", "why")
    assert shown(screen.file.getvalue()) == [line, "  b  deployed   release 7", line, "     log        why"]


def test_a_long_line_is_not_broken_on_a_pipe() -> None:
    """What is longer than 80 columns stays one line, so that it can be searched."""
    screen = Screen(Mode.PLAIN)
    screen.board("h").final("h", "because", "x" * 300)
    assert screen.lines == ["  h  because    " + "x" * 300]


def test_a_terminal_shows_one_row_a_host_below_what_stays() -> None:
    """Rows redraw in place; a final line moves above them and takes its host's row away."""
    screen = Screen(Mode.LIVE, terminal=True)
    with screen.board("a", "b") as board:
        for count in (3, 2, 1):
            board.step("a", "drain", f"{count} running")
            board.step("b", "drain", f"{count} running")
        assert shown(screen.file.getvalue()) == ["  a  drain      1 running", "  b  drain      1 running"]
        board.final("a", "failed", "weights")
        assert shown(screen.file.getvalue()) == ["  a  failed     weights", "  b  drain      1 running"]
        board.final("b", "deployed", "release 7")
        board.final("a", "because", "pid 4121")
        board.final("a", "log", "the line")
    assert shown(screen.file.getvalue()) == [
        "  a  failed     weights",
        "  b  deployed   release 7",
        "  a  because    pid 4121",
        "     log        the line",
    ]


def test_rows_that_nobody_ended_stay_when_the_board_closes() -> None:
    """An interrupted act leaves its last state on the terminal."""
    screen = Screen(Mode.LIVE, terminal=True)
    board = screen.board("ct200")
    board.gate("ct200", weights())
    board.close()
    rows = shown(screen.file.getvalue())
    assert len(rows) == 1
    assert "412 of 590 GB" in rows[0]


def test_hosts_are_aligned_by_the_longest_name() -> None:
    """The phase stands in one column whatever the hosts are called."""
    screen = Screen(Mode.PLAIN)
    board = screen.board("a", "long-name")
    board.final("a", "ready", "after 0:01")
    board.final("long-name", "ready", "after 0:02")
    assert [line.index("ready") for line in screen.lines] == [13, 13]


def test_no_color_means_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR takes the colours away and leaves every word."""
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen(Mode.LIVE, terminal=True)
    with screen.board("ct200") as board:
        board.gate("ct200", weights())
        board.final("ct200", "failed", "weights")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.file.getvalue())
    assert "failed" in screen.file.getvalue()


def test_the_mode_follows_the_stream() -> None:
    """A terminal is live, a pipe plain, and `--json` is JSON whatever the stream is."""
    assert mode_for(theme.console(file=io.StringIO(), terminal=True)) is Mode.LIVE
    assert mode_for(theme.console(file=io.StringIO())) is Mode.PLAIN
    assert mode_for(theme.console(file=io.StringIO(), terminal=True), json_asked=True) is Mode.JSON


def test_eight_hosts_may_speak_at_once() -> None:
    """Threads that report at the same time lose no event and tear no line."""
    screen = Screen(Mode.JSON)
    board = screen.board()

    def speak(host: str) -> None:
        for number in range(50):
            board.step(host, f"step {number}", "x")

    threads = [threading.Thread(target=speak, args=(f"h{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30.0)
    events = [json.loads(line) for line in screen.lines]
    assert sorted({event["host"] for event in events}) == [f"h{n}" for n in range(8)]
    assert len(events) == 400


def test_a_ready_load_is_told_once() -> None:
    """The verdict is a change and is told at once, even a moment after the last line."""
    spec = spec_for()
    screen = Screen(Mode.PLAIN)
    board = screen.board("h")
    board.gate("h", gate.advance(spec, gate.begin(spec), look(1.0)))
    ready = gate.advance(spec, gate.begin(spec), look(1.2, port=Port.OWN, ready=200))
    board.gate("h", ready)
    board.gate("h", ready)
    assert screen.lines == ["  h  start      0:01", "  h  ready      after 0:01"]


def test_an_audience_that_left_ends_nothing() -> None:
    """Told on a stream that nobody reads any more, the board falls silent; what it was told of goes on."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    board = Board(theme.console(file=Gone()), Mode.PLAIN)
    board.step("gpu1", "stop", "asked to stop")
    board.final("gpu1", "deployed", "release 1")
    board.close()


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.LIVE])
def test_hosts_words_do_not_steer_the_terminal(mode: Mode) -> None:
    """What a host says is spelled out where it would move the cursor, set the title or turn the writing round."""
    screen = Screen(mode=mode)
    with screen.board("gpu1") as board:
        board.final("gpu1", "failed", "\x1b]0;owned\x07 \u202egnp.exe")
    said = screen.file.getvalue()
    assert "\\x1b]0;owned\\x07 \\u202egnp.exe" in said
    assert "\x1b]" not in said
