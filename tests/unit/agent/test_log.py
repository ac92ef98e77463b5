"""The agent's log lines: one a fact, readable by people and by `key=value` parsers, harmless on a terminal."""

from __future__ import annotations

from specctl_agent import log


def test_a_line_names_level_event_and_fields() -> None:
    """The level that journald reads comes first; unknown fields are left out; figures are short; texts with spaces are quoted."""
    fields = {"server": "k26", "rule": None, "gain": 0.123456, "acts": True, "reason": 'the "gain" shows'}
    assert log.line(log.INFO, "decision", fields) == (
        '<6>event=decision server=k26 gain=0.1235 acts=yes reason="the \\"gain\\" shows"\n'
    )


def test_a_hostile_text_stays_one_printable_line() -> None:
    """What an engine put into a text neither breaks the line nor steers a terminal, and is bounded."""
    line = log.line(log.ERROR, "engine", {"said": "a\n<3>event=forged\x1b[2J" + "x" * 1000})
    assert line.count("\n") == 1
    assert line[:-1].isprintable()
    assert len(line) < 600
    assert "\\n<3>event=forged\\x1b[2J" in line.replace("\\\\", "\\")
