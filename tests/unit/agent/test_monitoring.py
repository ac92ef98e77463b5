"""The dashboard and the alert rules speak of metrics that exist, and Prometheus itself takes the rules and their tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import promtool

ROOT = Path(__file__).parents[3]
RULES, TESTS = ROOT / "docs" / "alerts" / "specctl.yaml", ROOT / "docs" / "alerts" / "specctl_test.yaml"
DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "specctl.json").read_text(encoding="utf-8"))
GOLDEN = (ROOT / "tests" / "golden" / "agent_metrics.txt").read_text(encoding="utf-8")
KNOWN = frozenset(re.findall(r"^# TYPE (\w+)", GOLDEN, re.MULTILINE))
NAME = re.compile(r"\bspecctl_\w+\b")


def labels() -> dict[str, frozenset[str]]:
    """Return the labels that each metric of the golden page has."""
    found: dict[str, frozenset[str]] = {}
    for name, text in re.findall(r"^(specctl_\w+)(?:\{(.*)\})? ", GOLDEN, re.MULTILINE):
        found[name] = found.get(name, frozenset()) | frozenset(re.findall(r'(\w+)="', text))
    return found


def expressions() -> Iterator[str]:
    """Yield every expression of the dashboard."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (each["query"]["query"] for each in DASHBOARD["templating"]["list"] if isinstance(each["query"], dict))
    yield from (each["expr"] for each in DASHBOARD["annotations"]["list"])


def alerts() -> list[dict[str, object]]:
    """Return the rules."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("expression", sorted(expressions()))
def test_the_dashboard_shows_what_exists(expression: str) -> None:
    """Each metric that a panel names is on the golden page, and so are the labels that it selects and sums by."""
    names = NAME.findall(expression)
    assert names
    assert set(names) <= KNOWN
    used = set(re.findall(r"(\w+)=~?\"", expression)) | {
        label for part in re.findall(r"by \(([^)]*)\)", expression) for label in part.split(", ")
    }
    assert used - {"instance"} <= set().union(*(labels()[name] for name in names))


def test_every_panel_fits_the_grid_and_has_a_number_of_its_own() -> None:
    """Panels lie within Grafana's 24 columns, none over another, each with its own id."""
    panels = DASHBOARD["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_alerts_ask_for_what_exists() -> None:
    """Each metric of a rule is on the golden page; `up` is Prometheus' own."""
    for rule in alerts():
        assert set(NAME.findall(str(rule["expr"]))) <= KNOWN, rule["alert"]


def test_every_alert_is_tried() -> None:
    """No rule is left out of the rules' own tests."""
    text = TESTS.read_text(encoding="utf-8")
    fired = {
        case["alertname"]
        for test in yaml.safe_load(text)["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in alerts()}


def test_prometheus_takes_the_rules() -> None:
    """`promtool` checks the rules, and its unit tests of them pass."""
    assert promtool.run(["check", "rules", str(RULES)]).returncode == 0
    done = promtool.run(["test", "rules", str(TESTS)])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_lists_every_metric() -> None:
    """docs/exporter.md has each metric of the golden page with its type, its labels and its help, and no other."""
    page = (ROOT / "docs" / "exporter.md").read_text(encoding="utf-8")
    table = page.partition("<!-- metrics -->")[2].partition("<!-- end metrics -->")[0]
    told = re.findall(r"^\| `(specctl_\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", table, re.MULTILINE)
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)", GOLDEN, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", GOLDEN, re.MULTILINE))
    assert {name: (kind, frozenset(re.findall(r"`(\w+)`", shown)), text) for name, kind, shown, text in told} == {
        name: (kinds[name], labels()[name], helps[name]) for name in KNOWN
    }
