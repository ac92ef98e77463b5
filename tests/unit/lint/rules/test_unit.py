"""Rules on limits and the unit: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="W085",
        broken=Made(unit={"extra": (("ProtectSystem", "strict"),)}),
        says="ProtectSystem=strict: caches of compiled kernels cannot be written",
        kept=Made(unit={"extra": (("ProtectSystem", "full"),)}),
    ),
    Case(
        rule="W088",
        broken=Made(unit={"user": "sglang"}, target={"path": "/root/models/big"}),
        says="target is /root/models/big, which user sglang cannot read",
        kept=Made(unit={"user": "root"}, target={"path": "/root/models/big"}),
        key="target",
    ),
    Case(
        rule="W080",
        broken=Made(limits={"drain_s": 0.0}),
        says="limits.drain is 0",
        kept=Made(limits={"drain_s": 120.0}),
        key="limits.drain",
    ),
    Case(
        rule="W081",
        broken=Made(limits={"drain_s": 10.0}),
        says="limits.drain is 10 s, and an engine without requests takes up to 20 s to leave",
        kept=Made(limits={"drain_s": 20.0, "stop_s": 20.0}),
    ),
    Case(
        rule="N080",
        broken=Made(limits={"drain_s": 30.0}),
        says="limits.drain is 30 s and limits.stop 60 s",
        kept=Made(limits={"drain_s": 60.0}),
    ),
    Case(
        rule="W082",
        broken=Made(limits={"load_s": 400.0}),
        says="limits.load is 400 s, and 596.0 GB took about 485 s",
        kept=Made(limits={"load_s": 400.0}, target={"size_bytes": 49_000_000_000}),
    ),
    Case(
        rule="N081",
        broken=Made(limits={"stall_s": 1200.0}),
        says="limits.stall is 1200 s and limits.load 1200 s",
        kept=Made(limits={"stall_s": 1199.0}),
    ),
    Case(
        rule="W083",
        broken=Made(unit={"restart": False}),
        says="unit.restart is false",
        kept=Made(unit={"restart": True}),
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("TimeoutSec", "90"),)}),
        says="TimeoutSec=90 ends the load after that time",
        kept=Made(unit={"extra": (("LimitNOFILE", "1048576"),)}),
        key="unit.extra.TimeoutSec",
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("Type", "notify"),)}),
        says="Type=notify specctl needs exec",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("TimeoutStartSec", "90"),)}),
        says="TimeoutStartSec=90 ends a load",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("KillMode", "control-group"),)}),
        says="KillMode=control-group specctl needs mixed",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("Restart", "always"),)}),
        says="Restart=always is unit.restart's to say",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="E080",
        broken=Made(unit={"extra": (("KillSignal", "SIGKILL"),)}),
        says="KillSignal=SIGKILL is no SIGTERM",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="W085",
        broken=Made(unit={"extra": (("PrivateDevices", "yes"),)}),
        says="PrivateDevices=yes: the GPUs are hidden",
        kept=Made(unit={"extra": (("PrivateDevices", "no"),)}),
    ),
    Case(
        rule="W085",
        broken=Made(unit={"extra": (("ProtectHome", "read-only"),)}),
        says="ProtectHome=read-only",
        kept=Made(unit={"extra": (("ProtectHome", "no"),)}),
    ),
    Case(
        rule="W085",
        broken=Made(unit={"extra": (("PrivateTmp", "no"),)}),
        says="PrivateTmp=no: metric files",
        kept=Made(unit={"extra": (("PrivateTmp", "yes"),)}),
    ),
    Case(
        rule="W086",
        broken=Made(unit={"extra": (("LimitNOFILE", "1024"),)}),
        says="LimitNOFILE=1024 is less than",
        kept=Made(unit={"extra": (("LimitNOFILE", "infinity"),)}),
    ),
    Case(
        rule="W087",
        broken=Made(unit={"extra": (("Nice", "-5"),)}, supervisor=True),
        says="unit.extra holds under systemd alone (Nice)",
        kept=Made(unit={"extra": (("Nice", "-5"),)}),
    ),
    Case(
        rule="W087",
        broken=Made(unit={"memory_max": "700000000000"}, supervisor=True),
        says="unit.memory_max holds under systemd alone",
        kept=Made(supervisor=True),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_found(case: Case) -> None:
    """The launch that breaks the rule is said to, in words that name what breaks it, and nothing else is said of it."""
    check_broken(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_kept_rule_is_silent(case: Case) -> None:
    """A launch like it that keeps the rule is not blamed for it."""
    check_kept(case)
