"""The entry point: SGLang calls `load` in each of its processes before anything else is built."""

from __future__ import annotations

import os

from sglang_ddtree import version


def load() -> None:
    """Make DDTREE known to this process.

    What it raises the engine only logs ("Failed to execute general plugin: ddtree"), to die later of an unknown algorithm; the
    message here is the real reason.
    """
    from sglang.version import __version__ as installed  # type: ignore[import-not-found]  # the engine's own

    version.check(installed, os.environ)
    from sglang_ddtree import algorithm, graphs, live, refusals, settling

    algorithm.register()
    graphs.register()
    live.register()
    refusals.register()
    settling.register()
