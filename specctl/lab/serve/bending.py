"""The seam that the injected faults make of the right one; without such a fault it is the right one itself."""

from __future__ import annotations

from specctl.lab import bends
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.serve.faults import Faults


def seam(faults: Faults) -> Seam:
    """Return what the engine is handed."""
    wanted = [bend for name, bend in bends.BENDS.items() if faults.has(name)]
    early = faults.number("early-stop")
    if early is not None:
        wanted.append(bends.ends_after(int(early)))
    return bends.bent(wanted) if wanted else RIGHT
