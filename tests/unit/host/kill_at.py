"""Write and activate releases in children that die by SIGKILL at their Nth change to the file system.

Each line of standard input is a job {"changes": N, "write": {…}, "activate": {…}}; each line of output is a child's exit status,
0 when it came to its end (there are fewer than N changes), -9 when it was killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from specctl.host import activate, releases
from specctl.host.wire import UNSUPPORTED, Args, Call, OpError

CHANGES = {"os.rename", "os.symlink", "os.mkdir", "os.remove", "os.rmdir", "os.chmod"}


def die_at(changes: int) -> None:
    """Die at the Nth change; a file opened for writing is one."""
    left = changes

    def count(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(args[2], int) and bool(args[2] & (os.O_WRONLY | os.O_RDWR))
        if event in CHANGES or writes:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def work(job: Mapping[str, object]) -> int:
    """Do one job to its end."""
    write, then, changes = job["write"], job["activate"], job["changes"]
    assert isinstance(write, dict)
    assert isinstance(then, dict)
    assert isinstance(changes, int)
    die_at(changes)
    releases.write(Call(1, Args(write), print))
    try:
        activate.activate(Call(2, Args(then), print))
    except OpError as error:
        # Only the very last step, telling a systemd that does not run here, may fail.
        return 0 if error.kind == UNSUPPORTED else 1
    return 0


def main() -> None:
    """Fork a child a job."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(work(json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
