"""docs/gate.md says of phases and verdicts, and docs/troubleshooting.md of known texts, what the code says."""

from __future__ import annotations

from specctl.engines._log_types import Phase, TextKind
from specctl.rollout import gate, gate_types
from specctl.rollout.smoke import NEEDED_STEPS
from tests.unit.engines.known_texts import DOCUMENT, rendered, table

KNOWN = DOCUMENT.read_text("utf-8")
TEXT = DOCUMENT.with_name("gate.md").read_text("utf-8")


def test_the_tables_of_known_texts_are_current() -> None:
    """Every known text is in the document with its title and remedy; `python -m tests.unit.engines.known_texts` renews them."""
    assert rendered(KNOWN) == KNOWN
    for kind in TextKind:
        assert table(kind) in KNOWN


def test_every_phase_and_verdict_is_described() -> None:
    """Each phase's word and each verdict's class is in the document, with the limits that the code has."""
    for phase in Phase:
        assert f"| {phase.label} |" in TEXT
    for verdict in ("loading", "slow", "ready", "dead", "failed", "stalled", "timed-out"):
        assert f"| {verdict} |" in TEXT
    for verdict in ("slow", "dead", "failed", "stalled", "timed-out"):
        assert f"| {verdict} |" in KNOWN
    assert f"{gate_types.GRACE_S:.0f} s" in TEXT
    assert f"{gate_types.SETTLE_S} s" in TEXT
    assert f"{NEEDED_STEPS} verify steps" in TEXT
    assert gate.UNLISTED in TEXT
