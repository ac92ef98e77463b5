"""Findings are ordered, waived, merged over algos, and a waiver that nothing needs is noted."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.fleet.types import Host, Origin, Server, Waiver
from specctl.lint.run import lint, merged, unused
from specctl.lint.types import Finding, Severity
from tests.unit.lint.subjects import Made, subject

MANY = {
    "--contxt-length": 1,
    "--speculative-eagle-topk": 4,
    "--decode-log-interval": 100,
    "--num-continuous-decode-steps": 8,
}


def waived(*rules: str, algo: str = "dflash") -> Made:
    """Return a launch that breaks four rules, some of them waived."""
    return Made(
        algo=algo, options=MANY, server={"waivers": tuple(Waiver(rule=rule, reason=f"why {rule}") for rule in rules)}
    )


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str | None]]:
    """Return ids with the reasons of waivers."""
    return [(one.rule.id, one.waived) for one in findings]


def test_the_gravest_comes_first() -> None:
    """Errors, warnings, notes, and by id among these."""
    found = lint(subject(waived()))
    assert told(found) == [("E001", None), ("W012", None), ("W033", None), ("N072", None)]
    assert [one.severity for one in found] == [Severity.ERROR, Severity.WARNING, Severity.WARNING, Severity.NOTE]


def test_a_waiver_silences_its_rule_and_says_why() -> None:
    """What is waived is no error and no warning, comes last, and carries the reason."""
    found = lint(subject(waived("E001", "W033")))
    assert told(found) == [("W012", None), ("N072", None), ("E001", "why E001"), ("W033", "why W033")]
    assert [(one.is_error, one.is_warning) for one in found] == [
        (False, True),
        (False, False),
        (False, False),
        (False, False),
    ]


def test_one_finding_of_several_algos_stands_once() -> None:
    """What holds for every launch is said once, with the algos; what holds for one names that one."""
    both = [*lint(subject(waived())), *lint(subject(waived(algo="none")))]
    assert [(one.rule.id, one.algos) for one in merged(both)] == [
        ("E001", ("dflash", "none")),
        ("W012", ("dflash",)),
        ("W033", ("dflash", "none")),
        ("N072", ("dflash", "none")),
    ]


def report(made: Made, name: str = "gpu1", layer: str = "server:stock") -> tuple[Host, Server, tuple[Finding, ...]]:
    """Return what ops hands in for a server whose waivers come from a layer."""
    judged = subject(made)
    origin = Origin(layer=layer, file="inventory.yaml", line=1, column=1)
    places = {f"waivers.{waiver.rule}": origin for waiver in judged.server.waivers}
    server = dataclasses.replace(judged.server, provenance=places)
    return dataclasses.replace(judged.host, name=name), server, lint(judged)


def test_a_waiver_that_nothing_needs_is_noted() -> None:
    """The note names the rule and stands where the waiver stands."""
    (note,) = unused([report(waived("W033", "W031"))], whole=True)
    assert (note.rule.id, note.key, note.algos) == ("N090", "waivers.W031", ())
    assert note.message == "W031 (open to the network without an API key) is waived, and nothing here breaks it"
    assert note.origin == Origin(layer="server:stock", file="inventory.yaml", line=1, column=1)


def test_a_shared_waiver_is_used_where_one_server_needs_it() -> None:
    """Of two servers under one waiver, one that needs it is enough."""
    needs, does_not = (
        report(waived("W033")),
        report(Made(server={"waivers": (Waiver(rule="W033", reason="x"),)}), "gpu2"),
    )
    assert unused([needs, does_not], whole=True) == ()
    assert [note.host for note in unused([does_not], whole=True)] == ["gpu2"]


@pytest.mark.parametrize(("layer", "noted"), [("defaults", 0), ("group:x", 0), ("server:stock", 0), ("host:gpu1", 1)])
def test_a_part_judges_its_own_waivers_alone(layer: str, noted: int) -> None:
    """When some servers are linted, a waiver that others may need is not called useless."""
    reports = [report(waived("W031"), layer=layer)]
    assert len(unused(reports, whole=False)) == noted
    assert len(unused(reports, whole=True)) == 1


def test_a_waiver_of_an_unknown_rule_is_not_noted_too() -> None:
    """E090 says it already."""
    assert unused([report(waived("W999"))], whole=True) == ()


def test_a_finding_as_json() -> None:
    """Everything a program needs: id, severity, words, place, algos, and the waiver's reason."""
    found = {one.rule.id: one for one in lint(subject(waived("W033")))}
    assert found["W033"].as_json() == {
        "id": "W033",
        "severity": "warning",
        "title": "flag without effect",
        "message": "--num-continuous-decode-steps has no effect: declared in 0.5.23, and nothing in the wheel reads it",
        "reason": found["W033"].rule.reason,
        "remedy": "take --num-continuous-decode-steps out",
        "host": "gpu1",
        "server": "stock",
        "algos": ["dflash"],
        "key": "options.--num-continuous-decode-steps",
        "origin": None,
        "waived": "why W033",
    }
