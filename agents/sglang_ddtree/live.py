"""Knobs of a running server: POST /set_internal_state {"server_args": {"ddtree_budget": 16}}.

The engine's route, key and broadcast to all ranks; the plugin only answers for its own names. A change holds from the next step
on; what is in flight is verified by the same target and loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sglang_ddtree import knobs

logger = logging.getLogger(__name__)

CONTROLLER = "sglang.srt.managers.scheduler_components.internal_state.SchedulerInternalStateController"


class Dial:
    """The knobs of this process: read each step, turned over HTTP."""

    def __init__(self, limits: knobs.Limits, start: knobs.Knobs) -> None:
        self.limits = limits
        self.knobs = start

    def turn(self, wanted: dict[str, float]) -> None:
        """Change the knobs, all of `wanted` or, with KnobError, none."""
        self.knobs = knobs.changed(self.knobs, self.limits, wanted)


def register() -> None:
    """Have the scheduler answer for the plugin's knobs, and tell of them."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    HookRegistry.register(f"{CONTROLLER}.set_internal_state", _set, HookType.AROUND)
    HookRegistry.register(f"{CONTROLLER}.get_internal_state", _tell, HookType.AFTER)


def _dial(controller: object) -> Dial | None:
    found = getattr(controller.scheduler.draft_worker, "dial", None)  # type: ignore[attr-defined]  # the engine's scheduler
    return found if isinstance(found, Dial) else None


def _set(original: Callable[..., object], controller: object, request: object) -> object:
    wanted = dict(request.server_args)  # type: ignore[attr-defined]  # the engine's request
    dial = _dial(controller)
    if dial is None or not any(knobs.is_ours(name) for name in wanted):
        return original(controller, request)
    from sglang.srt.managers.io_struct import SetInternalStateReqOutput  # type: ignore[import-not-found]  # the engine's

    try:
        dial.turn(wanted)
    except knobs.KnobError as error:
        logger.warning("DDTREE knobs not changed: %s", error)
        return SetInternalStateReqOutput(updated=False)
    logger.info("DDTREE knobs changed: %s", knobs.told(dial.limits, dial.knobs))
    return SetInternalStateReqOutput(updated=True)


def _tell(result: object, controller: object, *_rest: object, **_named: object) -> None:
    dial = _dial(controller)
    if dial is not None:
        result.internal_state.update(knobs.state(dial.limits, dial.knobs))  # type: ignore[attr-defined]  # the engine's answer
