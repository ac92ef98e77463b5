"""Waivers themselves: a rule that does not exist cannot be waived, and a waiver that nothing needs is noise."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.fleet.suggest import nearest
from specctl.lint.subject import Subject
from specctl.lint.types import Hit, Rule, RuleSet


def _unknown(subject: Subject) -> Iterator[Hit]:
    """Hold every waiver against the rules that there are, ours and others'."""
    if not subject.server.waivers:
        return
    from specctl.lint.catalogue import by_id  # the catalogue is made of this file too

    known = (*by_id(), *sorted(subject.elsewhere))
    for waiver in subject.server.waivers:
        if waiver.rule not in known:
            near = nearest(waiver.rule, known)
            guess = f" (did you mean {near}?)" if near else ""
            yield Hit(message=f"there is no rule {waiver.rule}{guess}", key=f"waivers.{waiver.rule}")


RULES = RuleSet(
    name="waivers",
    title="Waivers",
    rules=(
        Rule(
            id="E090",
            title="waiver of an unknown rule",
            reason="It silences nothing, and whoever wrote it believes that it does.",
            remedy="Correct the id, or take the waiver out.",
            check=_unknown,
        ),
        Rule(
            id="N090",
            title="waiver that nothing needs",
            reason="The rule has nothing to say any more; left standing, the waiver would hide it when it has.",
            remedy="Take the waiver out.",
            check=None,
        ),
    ),
)
