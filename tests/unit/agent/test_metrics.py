"""The metrics page: held to a golden page, to Prometheus' own linter, and to saying nothing of what is not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specctl_agent import metrics
from specctl_agent.pictures import Picture
from tests import promtool
from tests.unit.agent.pictured import BLIND, FULL

GOLDEN = Path(__file__).parents[2] / "golden" / "agent_metrics.txt"


def samples(picture: Picture) -> list[str]:
    """Return the sample lines of a picture's page."""
    return [line for line in metrics.page(picture).decode().splitlines() if not line.startswith("#")]


def test_the_page_is_the_golden_one() -> None:
    """A picture with something of everything gives exactly the page that the documents and the dashboard are held to."""
    assert metrics.page(FULL).decode() == GOLDEN.read_text(encoding="utf-8")


def test_prometheus_own_linter_finds_nothing() -> None:
    """`promtool check metrics` is silent about the golden page."""
    done = promtool.run(["check", "metrics"], stdin=GOLDEN.read_text(encoding="utf-8"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_said_of_what_is_not_known() -> None:
    """A driver that hangs and an engine that never answered leave no figure, not even a zero."""
    found = samples(BLIND)
    assert 'specctl_collector_success{collector="nvml"} 0' in found
    assert 'specctl_nvml_trouble{problem="hung"} 1' in found
    silent = (
        "specctl_gpu_busy",
        "specctl_gpu_memory",
        "specctl_host_",
        "specctl_server_",
        "specctl_decision{",
        "specctl_unit_",
    )
    assert [line for line in found if line.startswith(silent)] == []
    assert [line for line in found if line.startswith("specctl_collector_success") and "engine_loads" in line] == []


def test_what_is_old_is_not_shown_as_if_it_were_now() -> None:
    """Samples older than a few seconds vanish; counts and the age itself stay."""
    server = replace(FULL.servers[0], sample_age_s=metrics.STALE_S + 1)
    found = samples(replace(FULL, nvml_age_s=60.0, host_age_s=None, servers=(server,)))
    gone = (
        "specctl_gpu_",
        "specctl_nvml_",
        "specctl_host_",
        "specctl_unit_",
        "specctl_server_running",
        "specctl_server_activity",
    )
    assert [line for line in found if line.startswith(gone)] == []
    assert 'specctl_collector_age_seconds{collector="engine_loads",server="k26"} 30' in found
    assert [line for line in found if line.startswith("specctl_switches_total")]
