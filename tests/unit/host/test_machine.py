"""The machine's own facts: paths that are not there yet, kinds of file systems, limits, and what /proc says here."""

from __future__ import annotations

import os
from pathlib import Path

from specctl.host import machine

MOUNTS = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:45 / /models rw - nfs4 store:/models rw
31 30 8:2 / /models/fast\\040ones rw - xfs /dev/sdb1 rw
"""


def test_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    """A path that a deploy would make is measured where it would lie; a name that is no path ends too."""
    assert machine.existing(str(tmp_path / "a" / "b")) == str(tmp_path)
    assert machine.existing("org/model") == ""


def test_the_innermost_mount_decides() -> None:
    """The longest mount point that a path lies under, and none by a common beginning alone."""
    assert machine.filesystem("/models/k26", MOUNTS) == "nfs4"
    assert machine.filesystem("/models/fast ones/k26", MOUNTS) == "xfs"
    assert machine.filesystem("/models2", MOUNTS) == "ext4"
    assert machine.filesystem("/x", "") is None


def test_a_disk_that_can_be_written(tmp_path: Path) -> None:
    """Free and total are bytes; a folder of ours can be written, one of the kernel's cannot."""
    found = machine.disk(str(tmp_path / "later"))
    assert found["path"] == str(tmp_path / "later")
    assert found["writable"] is True
    assert isinstance(found["free_bytes"], int)
    assert isinstance(found["total_bytes"], int)
    assert 0 < found["free_bytes"] <= found["total_bytes"]
    assert machine.disk("/proc/sys/kernel")["writable"] is (
        os.geteuid() == 0 and os.access("/proc/sys/kernel", os.W_OK)
    )


def test_hugepages_are_counted_in_bytes() -> None:
    """A kernel without hugepages has none; sizes are bytes, counts counts."""
    assert machine.hugepages({"MemTotal": 1}) is None
    found = machine.hugepages({"HugePages_Total": 3, "HugePages_Free": 2, "Hugepagesize": 2 << 20})
    assert found == {"total": 3, "free": 2, "size_bytes": 2 << 20}


def test_this_machine() -> None:
    """What Linux always tells is told."""
    assert (machine.memory()["MemTotal"] or 0) > 1 << 28
    assert machine.limits()["nr_open"]
    assert machine.versions()["kernel"] == os.uname().release
    assert machine.synchronised() in (True, False, None)
