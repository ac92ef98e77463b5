"""What preflight found, on the screen: counts and reasons in a plan, every check by its id on its own."""

from __future__ import annotations

import io

from specctl.rollout.preflight.types import Finding, Level, Report
from specctl.ui import checks
from specctl.ui.theme import console


def finding(number: str, level: Level, reason: str = "why", waived: str | None = None) -> Finding:
    """Return a finding."""
    return Finding(
        id=number, title=f"title of {number}", level=level, reason=reason, remedy=f"mend {number}", waived=waived
    )


def shown(report: Report, width: int | None = None) -> str:
    """Return what `specctl preflight` prints of a server."""
    out = io.StringIO()
    console(file=out, width=width or 200).print(checks.view("gpu1", "chat", report, width=width))
    return out.getvalue()


def test_one_warning_stands_beside_the_counts() -> None:
    """A plan with one thing to know stays as short as it can be."""
    report = Report(findings=(finding("P001", Level.PASS), finding("P008", Level.WARN, "the clock is off")))
    assert list(checks.plan_rows(report)) == [("checks", "1 pass, 1 warn   P008 the clock is off")]


def test_failures_stand_first_and_with_their_remedy() -> None:
    """What refuses the act is told with what to do; what passes and what is unknown is only counted."""
    report = Report(
        findings=(
            finding("P001", Level.PASS),
            finding("P004", Level.UNKNOWN),
            finding("P008", Level.WARN, "the clock is off"),
            finding("P030", Level.FAIL, "they do not fit"),
        )
    )
    assert list(checks.plan_rows(report)) == [
        ("checks", "1 pass, 1 warn, 1 fail, 1 unknown"),
        ("fail", "P030 they do not fit"),
        ("", "try: mend P030"),
        ("warn", "P008 the clock is off"),
    ]


def test_the_whole_list() -> None:
    """Every check has its line; warnings and failures their remedy, a waived one the reason of whoever waived it."""
    report = Report(
        findings=(
            finding("P001", Level.PASS, "systemd 252"),
            finding("P004", Level.UNKNOWN, "not known"),
            finding("P023", Level.FAIL, "a stranger", waived="a drill"),
            finding("P030", Level.FAIL, "they do not fit"),
        )
    )
    assert shown(report).splitlines() == [
        "gpu1 · chat",
        "  P001  pass     title of P001: systemd 252",
        "  P004  unknown  not known",
        "  P023  waived   a stranger",
        "                 because: a drill",
        "  P030  fail     they do not fit",
        "                 try: mend P030",
        "  1 pass, 1 fail, 1 unknown, 1 waived",
    ]


def test_narrow_terminals_fold_and_lose_nothing() -> None:
    """At 60 columns every word is still there, and no line is longer."""
    reason = "weights 68.8 GiB + draft 1.0 GiB on each GPU, of 81.6 GiB (96.0 GiB × 0.85): they do not fit"
    lines = shown(Report(findings=(finding("P030", Level.FAIL, reason),)), width=60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert reason in " ".join(line[17:] for line in lines if line.startswith(("  P030", "       ")))
