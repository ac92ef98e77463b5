"""Start the server, serve, leave: `python -m specctl.lab serve`. Exit codes are SGLang's (docs/lab-server.md)."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Sequence

from specctl.lab import blas
from specctl.lab.serve import log, options, phases, resolve, strikes


def run(argv: Sequence[str]) -> None:
    """Serve until told to leave; a refusal of the parent's checks leaves as an exception (exit code 1)."""
    began = time.monotonic()
    chosen = options.parse(argv, os.environ)
    log.start(chosen.log_level)
    launch = resolve.resolve(chosen)
    if chosen.faults.has("ignore-sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    blas.pin_one_thread()
    log.silence(silent=chosen.faults.has("silent-load"))
    try:
        loaded = phases.Start(launch, began).run()
    except Exception:  # noqa: BLE001  # any failure of the engine's start ends the process as SGLang's does
        log.silence(silent=False)
        strikes.die_while_starting(traceback.format_exc())
    log.silence(silent=False)
    time.sleep(chosen.faults.number("port-late") or 0.0)
    from specctl.lab.serve.serving import Serving

    Serving(launch, loaded).run()
