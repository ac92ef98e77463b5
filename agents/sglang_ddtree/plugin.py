"""The entry point: SGLang calls `load` in each of its processes before anything else is built.

What it raises the engine logs with a traceback ("Failed to execute general plugin: ddtree"), to die later of an unknown
algorithm; the one line here is the reason. Whatever may fail is imported within `load`, lest it fail before that.
"""

from __future__ import annotations

import logging
import os

logger = logging.getLogger(__name__)


def load() -> None:
    """Make DDTREE known to this process; what fails is said in one line and raised."""
    try:
        _register()
    except Exception as error:
        logger.error("DDTREE plugin not loaded: %s", _reason(error))  # the engine prints the traceback
        raise


def _register() -> None:
    from sglang.version import __version__ as installed  # type: ignore[import-not-found]  # the engine's own

    from sglang_ddtree import version

    version.check(installed, os.environ)
    from sglang_ddtree import algorithm, graphs, live, refusals, rows, settling

    for part in (graphs, live, refusals, rows, settling):
        part.register()
    # Last: where a part is missing, there shall be no DDTREE.
    algorithm.register()


def _reason(error: Exception) -> str:
    """Return an error in one line; the plugin's own speak for themselves."""
    said = " ".join(str(error).split())
    return said if type(error).__module__.startswith(f"{__package__}.") else f"{type(error).__name__}: {said}"
