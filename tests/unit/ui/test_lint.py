"""Findings as people read them: whole at every width, and a story that can be pasted."""

from __future__ import annotations

import io

import pytest

from specctl.lint.run import lint
from specctl.lint.types import Finding
from specctl.ui import lint as views
from specctl.ui.theme import console
from tests.unit.lint.subjects import Made, fleet, subject

BROKEN = Made(
    options={"--contxt-length": 32768, "--decode-log-interval": 100},
    env={"NCCL_P2P_LEVEL": "5"},
    server={"bind": "0.0.0.0"},
    secrets=(),
)


def shown(findings: tuple[Finding, ...], width: int) -> list[str]:
    """Return the lines that are printed at a width."""
    stream = io.StringIO()
    host = fleet().hosts[0]
    out = console(file=stream, width=width)
    out.print(views.view([(host, host.servers[0])], findings, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_finding_is_a_story() -> None:
    """What, where, why, and what to do; the gravest first; the count at the end."""
    found = [one for one in lint(subject(BROKEN)) if one.rule.id in ("E001", "W031")]
    assert shown(tuple(found), 100) == [
        "gpu1 · stock · sglang-0.5.23",
        "  E001  sglang-0.5.23 has no --contxt-length (did you mean --context-length?) [dflash]",
        "        at      options.--contxt-length",
        "        why     The parser of the engine ends with exit status 2 on a name that it does not have.",
        "        remedy  Use an exact name of the engine's --help, or take the flag out.",
        "  W031  port 30001 is open to the network (0.0.0.0) without an API key [dflash]",
        "        at      bind — built in",
        "        why     Whoever reaches the port can use the model, read the server's whole configuration,",
        "                and pause, abort and flush.",
        "        remedy  give secrets: {api_key: env:STOCK_API_KEY}, or bind: 127.0.0.1",
        "",
        "1 server · 1 error · 1 warning",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_and_nothing_is_lost(width: int) -> None:
    """At 40, 80 and 200 columns every line fits, and every word is there."""
    found = lint(subject(BROKEN))
    lines = shown(found, width)
    assert max(len(line) for line in lines) <= width
    words = "".join("".join(lines).split())
    assert len(found) >= 4
    for one in found:
        assert "".join(one.message.split()) in words
        assert "".join(one.remedy.split()) in words


def test_the_count_speaks_of_what_there_is() -> None:
    """Nothing found is clean; counts are named one by one."""
    assert views.summary(3, ()) == "3 servers · clean"
    assert views.summary(1, lint(subject(BROKEN))) == "1 server · 1 error · 2 warnings · 1 note"
