"""What people see of agents: readable at 80 columns, honest about what is unknown, harmless whatever a host answers."""

from __future__ import annotations

import io
from collections.abc import Mapping

from rich.console import RenderableType

from specctl.control import sight_words
from specctl.control.mode import parse
from specctl.rollout.agent_plan import AgentPlan, AgentRow
from specctl.rollout.wheel_tags import Interpreter
from specctl.ui import agent as views
from specctl.ui.theme import console

PYTHON = Interpreter(path="/usr/bin/python3", version=(3, 11), machine="x86_64", glibc=(2, 36))
TOLD: Mapping[str, object] = {
    "servers": [
        {
            "server": "k26",
            "conduct": "act",
            "mode": "ddtree:block_size=8,topk_cap=8,tree_budget=16",
            "running": 12,
            "concurrency": 12.34,
            "decision": {
                "reason": "dflash would have given each request 9.7 tokens more of late, 12 are wanted",
                "for_s": 75.0,
            },
        }
    ]
}
DECISION: Mapping[str, object] = {
    "at": "2026-11-29T14:02:11+00:00",
    "decision": "switch dflash",
    "conduct": "act",
    "rule": "gain",
    "reason": "dflash would have given each request 9.7 tokens more of late, and the change costs 9.5",
    "inputs": {"worth_now": 12.34567, "other": "dflash", "price": None},
    "otherwise": "a gathered gain of less than 9.5",
}


def shown(view: RenderableType, width: int = 80) -> str:
    """Return what a terminal of that width shows."""
    out = io.StringIO()
    screen = console(file=out, width=width, terminal=False)
    screen.print(view)
    return out.getvalue()


def test_the_table_fits_80_columns() -> None:
    """Mode, algo, load and the reason are readable on a narrow terminal; the reason wraps, nothing else is cut."""
    text = shown(views.table([AgentRow(host="ct200", version="0.1.0", state="active", told=TOLD)], 80))
    first = text.splitlines()[1].split()
    assert first[:8] == ["ct200", "active", "k26", "act", "ddtree", "8/16/8", "12.3", "dflash"]
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "12 are wanted" in " ".join(text.split())


def test_the_table_shows_a_mode_as_the_status_table_does() -> None:
    """A mode's knobs stand in their algo's order, as in `specctl status`; one that is not known here is shown as told."""
    mode = parse("ddtree:block_size=8,topk_cap=4,tree_budget=16")
    for told, there in ((str(mode), sight_words.mode_text(mode)), ("warp:speed=9", "warp:speed=9"), (None, "—")):
        row = AgentRow(host="ct200", state="active", told={"servers": [{"server": "k26", "mode": told}]})
        assert there in shown(views.table([row], 80))


def test_a_load_that_is_not_known_now_is_a_dash() -> None:
    """An engine that answers no more has no load, whatever its last minutes were."""
    frozen = {"server": "k26", "concurrency": 12.34, "running": None, "decision": {"reason": "frozen"}}
    text = shown(views.table([AgentRow(host="ct200", state="active", told={"servers": [frozen]})], 80))
    assert text.splitlines()[1].split() == ["ct200", "active", "k26", "—", "—", "—", "frozen"]


def test_what_troubles_an_agent_is_told_below_the_table() -> None:
    """Host, what it is about, and why, each a line; of agents without trouble nothing."""
    told = {"troubles": {"metrics address": "cannot be opened: Address already in use", "\x1b[2J": "x"}}
    rows = [AgentRow(host="ct200", state="active", told=told), AgentRow(host="ct201", state="active")]
    assert [line.plain for line in views.trouble_lines(rows)] == [
        "ct200  trouble with metrics address: cannot be opened: Address already in use",
        "ct200  trouble with \\x1b[2J: x",
    ]


def test_a_wide_table_has_age_and_version() -> None:
    """Where there is room, it says for how long the decision stands and which version runs."""
    text = shown(views.table([AgentRow(host="ct200", version="0.1.0-3d6f", state="active", told=TOLD)], 140), 140)
    assert "75 s" in text
    assert "0.1.0-3d6f" in text


def test_what_is_not_there_is_a_dash() -> None:
    """A host without an agent is a line, with what is known: nothing."""
    text = shown(views.table([AgentRow(host="ct200")], 80))
    assert text.splitlines()[1].split() == ["ct200", "not", "installed", "—", "—", "—", "—", "—"]


def test_a_decision_is_told_with_its_grounds() -> None:
    """When, what, because of which rule, the figures, and what would have had to differ; unknown figures are called so."""
    lines = [line.plain for line in views.decision_lines(DECISION)]
    assert lines == [
        "2026-11-29T14:02:11+00:00  switch dflash  (act)",
        "  because  dflash would have given each request 9.7 tokens more of late, and the change costs 9.5  [gain]",
        "  other = dflash",
        "  price = unknown",
        "  worth_now = 12.35",
        "  else if  a gathered gain of less than 9.5",
    ]


def test_the_present_decision_follows_the_journal() -> None:
    """After what was decided comes what stands now, with the figures of this moment; without an agent there is none."""
    text = "\n".join(
        line.plain for line in views.answer_lines("ct200", "k26", {"decisions": [DECISION], "now": DECISION})
    )
    assert text.count("switch dflash") == 2
    assert "now, with the figures of this moment:\n  since 2026-11-29T14:02:11+00:00" in text
    assert "now" not in "".join(
        line.plain for line in views.answer_lines("ct200", "k26", {"decisions": [], "now": None})
    )


def test_a_hostile_journal_steers_no_terminal() -> None:
    """Whatever lies in a host's journal is shown as text."""
    evil = {"decision": "\x1b[2J", "reason": "a\x07b", "inputs": {"\x1b": "\x9b31m"}, "otherwise": ["not", "a text"]}
    text = "".join(line.plain for line in views.answer_lines("ct200", "k26", {"decisions": [evil, "nonsense"]}))
    assert text.isprintable()


def test_the_plan_says_what_would_be_done() -> None:
    """Interpreter, wheels with their sums, units; why others will not do; and that there is nothing to do."""
    plan = AgentPlan(
        host="ct200", version="0.2", before="0.1", python=PYTHON, wheels={"psutil-7.whl": "a" * 64},
        units={"specctl-agent.service": ""}, config={"metrics": {"address": "::1", "port": 9470}},
        unfit=("/usr/bin/python3.9: it is older than 3.11",),
    )  # fmt: skip
    text = "\n".join(line.plain for line in views.plan_lines(plan))
    assert "0.1 → 0.2" in text
    assert "/usr/bin/python3 (3.11)" in text
    assert "not /usr/bin/python3.9: it is older than 3.11" in text
    assert "psutil-7.whl  sha256 aaaaaaaaaaaa…" in text
    assert "metrics  [::1]:9470" in text
