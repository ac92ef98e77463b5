"""The doctor's report as people read it: the gravest first, folded where it must be, nothing lost, the count last."""

from __future__ import annotations

import io

from specctl.doctor.types import Confidence, Finding, Passed, Report, Unknown
from specctl.lint.types import Severity
from specctl.ui.doctor import view
from specctl.ui.theme import console

LIES = Finding(
    id="M003",
    title="the depth metric lies",
    message="accepted depth 5.00 with 2.00 drafts; on any path depth = drafts",
    meaning="A path holds one node a depth.",
    evidence=("412 of 412 tree lines", "DDTREE metrics: bs=1 budget=7"),
    effect="none on tokens",
    remedy="Ignore it.",
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
)
LOST = Finding(
    id="M026",
    title="accepted tokens are thrown away",
    message="half of them",
    meaning="w",
    evidence=(),
    effect="48 % is lost",
    remedy="Replay it.",
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
)
PARTLY = Unknown(id="M021", title="the commit lies", reason="about 2.285 a step", decide="measure", partly=True)
REPORT = Report(
    findings=(LOST, LIES),
    passed=(Passed(id="C001", title="the host has drifted", note="as it should be"),),
    unknown=(
        PARTLY,
        Unknown(id="S005", title="clocks", reason="no GPU", decide="ask the GPUs"),
        Unknown(id="S008", title="memory", reason="no GPU", decide="ask the GPUs"),
    ),
)


def shown(report: Report, width: int | None, *, whole: bool = False, terminal: bool = False) -> list[str]:
    """Return the lines of a report for ct200."""
    out = console(file=io.StringIO(), width=width or 200, terminal=terminal)
    out.print(view(["ct200", "k26", "up 3 h"], report, width=width, whole=whole), soft_wrap=width is None)
    file = out.file
    assert isinstance(file, io.StringIO)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_report_reads_like_the_sketch() -> None:
    """Heading, findings with evidence, effect and remedy, what goes some of the way, what would decide the rest, the count."""
    assert shown(REPORT, None) == [
        "ct200 · k26 · up 3 h",
        "  M026  accepted tokens are thrown away: half of them",
        "        effect    48 % is lost (likely)",
        "        remedy    Replay it.",
        "  M003  the depth metric lies: accepted depth 5.00 with 2.00 drafts; on any path depth = drafts",
        "        evidence  412 of 412 tree lines",
        "                  DDTREE metrics: bs=1 budget=7",
        "        effect    none on tokens",
        "        remedy    Ignore it.",
        "  M021  not decided: the commit lies",
        "        so far    about 2.285 a step",
        "        decide    measure",
        "  unknown   S005, S008 — ask the GPUs",
        "  unknown   M021 — measure",
        "2 findings, 1 check passed, 3 unknown",
    ]


def test_verbose_shows_what_passed_and_every_reason() -> None:
    """Nothing is left out with -v, and nothing is said twice."""
    lines = shown(REPORT, None, whole=True)
    assert "  C001  passed: no sign that the host has drifted (as it should be)" in lines
    assert "        lacks     no GPU" in lines
    assert not [line for line in lines if line.startswith("  unknown")]
    assert lines[-1] == "2 findings, 1 check passed, 3 unknown"


def test_narrow_terminals_lose_no_word() -> None:
    """At 60 columns no line is longer, and the same words stand there in the same order."""
    narrow, wide = shown(REPORT, 60), shown(REPORT, None)
    assert max(map(len, narrow)) <= 60
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(wide).split())


def test_nothing_found_is_one_line() -> None:
    """A healthy server is its heading and the count."""
    assert shown(Report(passed=REPORT.passed), None) == [
        "ct200 · k26 · up 3 h",
        "0 findings, 1 check passed, 0 unknown",
    ]


def test_text_of_an_engine_cannot_steer_the_terminal() -> None:
    """Escapes in a log line or a heading are spelled out, with colour and without."""
    bad = Finding(
        id="C001",
        title="t",
        message="\x1b[2J",
        meaning="w",
        evidence=("\x1b]0;x\x07",),
        effect="e",
        remedy="r",
        severity=Severity.NOTE,
        confidence=Confidence.CERTAIN,
    )
    text = "\n".join(shown(Report(findings=(bad,)), None))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert "\x1b[2J" not in "\n".join(shown(Report(findings=(bad,)), 80, terminal=True))
