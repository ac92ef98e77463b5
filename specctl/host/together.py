"""Ask several things at once, each in a thread of its own: what fails or is late is missing, and takes nothing else with it."""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, List, Mapping, Optional, TypeVar

from specctl.host.wire import OpError

_T = TypeVar("_T")


def or_none(ask: Callable[[], _T], warnings: List[str]) -> Optional[_T]:
    """Ask for one thing; a failure becomes a warning, said once, and None (this is the fallback that the facts promise)."""
    try:
        return ask()
    except OpError as error:
        said = error.message
    except OSError as error:
        said = words(error)
    except ValueError as error:
        said = str(error)
    if said not in warnings:
        warnings.append(said)
    return None


def words(error: OSError) -> str:
    """Say what the system refused, and where."""
    place = f": {error.filename}" if error.filename else ""
    return f"{(error.strerror or str(error)).lower()}{place}"


def answers(asks: Mapping[str, Callable[[], object]], deadline_s: float, warnings: List[str]) -> Dict[str, object]:
    """Return the answers by name, None for what failed or did not come by the deadline (CLOCK_MONOTONIC)."""
    found: Dict[str, object] = dict.fromkeys(asks)

    def one(name: str) -> None:
        found[name] = or_none(asks[name], warnings)

    threads = {name: threading.Thread(target=one, args=(name,), name=name, daemon=True) for name in asks}
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, deadline_s - time.monotonic()))
    late = [name.rstrip("_").replace("_", " ") for name, thread in threads.items() if thread.is_alive()]
    if late:
        warnings.append(f"not known in time: {', '.join(late)}")
    return dict(found)
