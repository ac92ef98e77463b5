"""Watching units: systemd is asked seldom, and at once when something of a unit changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specctl.control.sample.host import UnitSample
from specctl_agent.samplers.host_units import ASK_AGAIN_S, ASK_S, UnitWatch, ask_systemd

UNIT = "specctl-chat.service"
GROUP = f"system.slice/{UNIT}"


@dataclass
class Host:
    """Folders in the places of the control groups and of systemd's links, and a systemd that counts its questions."""

    root: Path
    asked: list[tuple[str, ...]] = field(default_factory=list)
    mute: bool = False
    active: str = "active"
    invocation: str = "a1"
    restarts: int = 0

    def ask(self, units: Sequence[str]) -> str | None:
        self.asked.append(tuple(units))
        if self.mute:
            return None
        group = f"/{GROUP}" if self.active == "active" else ""
        return "\n".join(
            f"Id={unit}\nLoadState=loaded\nActiveState={self.active}\nSubState=running\nResult=success\nMainPID=42\n"
            f"NRestarts={self.restarts}\nInvocationID={self.invocation}\nControlGroup={group}\n"
            for unit in units
        )

    def begin(self, invocation: str) -> None:
        """Start the unit: a link with the id of the start, and a control group."""
        self.invocation, self.active = invocation, "active"
        link = self.root / "units" / f"invocation:{UNIT}"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(invocation)
        group = self.root / GROUP
        group.mkdir(parents=True, exist_ok=True)
        (group / "memory.current").write_text("1048576\n")
        (group / "memory.max").write_text("max\n")
        (group / "memory.events").write_text("oom 0\noom_kill 1\n")
        (group / "pids.current").write_text("17\n")

    def end(self) -> None:
        """Stop the unit."""
        self.active = "failed"
        for file in (self.root / GROUP).iterdir():
            file.unlink()
        (self.root / GROUP).rmdir()
        (self.root / "units" / f"invocation:{UNIT}").unlink()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.begin("a1")
    return made


@pytest.fixture
def watch(host: Host) -> UnitWatch:
    return UnitWatch([UNIT], ask=host.ask, cgroups=host.root, invocations=host.root / "units")


def test_a_unit_is_seen_whole(host: Host, watch: UnitWatch) -> None:
    """State and restarts come from systemd, memory, kills and processes from the control group."""
    assert watch.sample(100.0) == (
        UnitSample(
            unit=UNIT,
            asked_at_s=100.0,
            load="loaded",
            active="active",
            sub="running",
            result="success",
            main_pid=42,
            restarts=0,
            invocation="a1",
            memory_bytes=1_048_576,
            limit_bytes=None,
            oom_kills=1,
            processes=17,
        ),
    )


def test_an_older_layout_is_read_too(host: Host, watch: UnitWatch) -> None:
    """Where each controller has its own folder (cgroup v1), the same figures come from there."""
    host.end()
    host.active = "active"
    for controller, files in {
        "memory": {
            "memory.usage_in_bytes": "4096\n",
            "memory.limit_in_bytes": "8192\n",
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        },
        "pids": {"pids.current": "3\n"},
    }.items():
        folder = host.root / controller / GROUP
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    (sample,) = watch.sample(0.0)
    assert (sample.memory_bytes, sample.limit_bytes, sample.oom_kills, sample.processes) == (4096, 8192, 2, 3)


def test_no_control_group_is_no_news(host: Host, watch: UnitWatch) -> None:
    """On a host whose control groups cannot be seen, systemd is asked no more often for that."""
    host.end()
    host.active = "active"
    for now_s in range(int(ASK_S)):
        (sample,) = watch.sample(float(now_s))
    assert (sample.active, sample.memory_bytes, len(host.asked)) == ("active", None, 1)


def test_systemd_is_asked_seldom(host: Host, watch: UnitWatch) -> None:
    """While nothing changes, systemd is asked once a period, and control groups are read each time."""
    for now_s in range(int(ASK_S)):
        watch.sample(float(now_s))
    (host.root / GROUP / "memory.current").write_text("2097152\n")
    assert watch.sample(ASK_S - 0.5)[0].memory_bytes == 2_097_152
    assert len(host.asked) == 1
    watch.sample(ASK_S)
    assert len(host.asked) == 2


def test_a_new_start_is_seen_at_once(host: Host, watch: UnitWatch) -> None:
    """Another invocation shows in the same look, with what systemd says of it now."""
    watch.sample(0.0)
    host.begin("b2")
    host.restarts = 1
    (sample,) = watch.sample(ASK_AGAIN_S)
    assert (sample.invocation, sample.restarts, sample.asked_at_s) == ("b2", 1, ASK_AGAIN_S)


def test_a_death_is_seen_at_once(host: Host, watch: UnitWatch) -> None:
    """A control group that went away makes the watch ask, and then there is nothing to read."""
    watch.sample(0.0)
    host.end()
    (sample,) = watch.sample(ASK_AGAIN_S)
    assert (sample.active, sample.memory_bytes, sample.processes) == ("failed", None, None)
    watch.sample(ASK_AGAIN_S + 3.0)
    assert len(host.asked) == 2


def test_a_crash_loop_asks_no_more_than_it_may(host: Host, watch: UnitWatch) -> None:
    """A unit that starts anew at each look costs one question each two seconds, and its id is always of now."""
    for tick in range(40):
        host.begin(f"start-{tick}")
        assert watch.sample(tick * 0.25)[0].invocation == f"start-{tick}"
    assert len(host.asked) == 5


def test_a_mute_systemd_leaves_all_unknown(host: Host, watch: UnitWatch) -> None:
    """Without an answer the unit's state is None, not what it was; it is asked again after the period."""
    watch.sample(0.0)
    host.mute = True
    (sample,) = watch.sample(ASK_S)
    assert (sample.asked_at_s, sample.active, sample.restarts, sample.memory_bytes) == (None, None, None, None)
    watch.sample(ASK_S + 5.0)
    assert len(host.asked) == 2
    host.mute = False
    assert watch.sample(2 * ASK_S)[0].active == "active"


def test_without_units_nobody_is_asked(host: Host) -> None:
    """A host whose service manager is no systemd has no units to watch."""
    assert UnitWatch([], ask=host.ask).sample(0.0) == ()
    assert host.asked == []


def test_a_host_without_systemctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No systemctl is no answer, no error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_systemd([UNIT]) is None
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    (tmp_path / "systemctl").chmod(0o755)
    assert ask_systemd([UNIT]) is None
    (tmp_path / "systemctl").write_text('#!/bin/sh\necho "Id=$4"\n')
    assert ask_systemd([UNIT]) == f"Id={UNIT}\n"
