"""The facts of a server on this host that a calibration must agree with: from its note, its engine's word and its GPUs' own."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.control.calibration_facts import Facts
from specctl_agent.places import Place
from specctl_agent.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphics:
    """The GPUs of a server as their driver names them; None: not known."""

    model: str | None = None
    count: int | None = None
    driver: str | None = None


UNSEEN = Graphics()


def facts(place: Place, watch: Watch, graphics: Graphics) -> Facts:
    """Return what is known here. Which prompts come, and what is installed, the agent does not know."""
    server = place.note.server
    return Facts(
        gpu=graphics.model,
        gpu_count=graphics.count,
        driver=graphics.driver,
        profile=server.profile.name,
        engine_version=None if watch.info is None else watch.info.version,
        target=server.target.name,
        draft=None if server.draft is None else server.draft.name,
        tensor_parallel=server.tp,
        context_tokens=server.agent.context_tokens,
    )
