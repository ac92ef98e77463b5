"""Act once on one server, as the agent does, in a process of its own: for tests that kill it in the middle.

`python -m tests.agentonce SERVERS STATE (live|restart)` goes from the tree to the chain; `mend MODE` mends, where the engine says
that it runs MODE. It prints what came of it.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from specctl.control import mode as modes
from specctl.fleet.types import AgentMode
from specctl.host import clock
from specctl_agent.actuators import Cost
from specctl_agent.hands import open_hands
from specctl_agent.intent import Intents
from specctl_agent.places import Places
from tests.agentworld import DDTREE, DFLASH


def main(servers: Path, state: Path, what: str, *more: str) -> None:
    """Do it and print each report in a line."""
    boot = clock.boot_id()
    place = Places(servers).look()[0]["lab"]
    intents = Intents(state / "intents.jsonl", boot=boot, wall=time.time)
    hands = open_hands(place, state=state, intents=intents, boot=boot, stopping=threading.Event())
    hands.live.confirm_s, hands.restart.quiet_s = 0.0, 0.05
    if what == "mend":
        reports = hands.mend(modes.parse(more[0]))
    else:
        reports = (hands.carry_out(Cost(what), DDTREE, DFLASH, "a test", conduct=AgentMode.ACT),)
    for report in reports:
        sys.stdout.write(f"{report.result} {report.mode} {report.reason}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
