"""Where test hosts cannot run, tests say so: skipped, or failed where they were required."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fleet.enclosure import CHECKOUT

NOWHERE = "/nonexistent"


@pytest.mark.parametrize(("required", "outcome", "status"), [("0", "1 skipped", 0), ("1", "1 error", 1)])
def test_a_machine_without_the_programs_skips_or_fails(required: str, outcome: str, status: int) -> None:
    """The reason names the packages to install; SPECCTL_REQUIRE_FLEET=1 turns it into an error."""
    test = "tests/fleet/test_hosts.py::test_hosts_count_and_limit_memory"

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
        cwd=CHECKOUT,
        env={"PATH": NOWHERE, "HOME": NOWHERE, "SPECCTL_REQUIRE_FLEET": required},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == status
    assert outcome in done.stdout
    assert (
        "programs are missing: apt-get install iproute2 mmdebstrap mount openssh-client systemd-container"
        in done.stdout
    )
