"""Start the server, serve, leave: `python -m specctl.lab serve`. Exit codes are SGLang's (docs/lab-server.md)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence

from specctl.lab import blas
from specctl.lab.serve import log, options, phases, resolve, strikes

BLOCK_S = 3600.0
"""How long a dead scheduler's event loop sleeps; the process ends long before."""


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
    _serve(launch, loaded)


def _serve(launch: resolve.Launch, loaded: phases.Loaded) -> None:
    """Open the port and answer until told to leave."""
    import uvicorn

    from specctl.lab.serve import app, drain, warmup
    from specctl.lab.serve.scheduler import Limits, Scheduler
    from specctl.lab.serve.service import Service

    chosen = launch.options
    loops: list[asyncio.AbstractEventLoop] = []

    def die(trace: str) -> None:
        for loop in loops:
            loop.call_soon_threadsafe(time.sleep, BLOCK_S)
        strikes.die_while_serving(trace)

    limits = Limits(
        max_queued=chosen.max_queued_requests,
        decode_log_interval=chosen.decode_log_interval,
        with_metrics=chosen.enable_metrics,
    )
    scheduler = Scheduler(
        loaded.engine, launch.speculation, limits, chosen.faults, decodes=launch.decodes, on_death=die
    )
    service = Service(
        launch=launch,
        tokenizer=loaded.models.tokenizer,
        scheduler=scheduler,
        footprint=loaded.footprint,
        startup=loaded.times,
    )

    def ready() -> None:
        scheduler.serves_clients = True
        delay = chosen.faults.number("crash-after")
        if delay is not None:
            timer = threading.Timer(delay, scheduler.crash)
            timer.daemon = True
            timer.start()

    warming = warmup.Warmup(service, phases.SHARES["warmup"] * chosen.load_seconds, ready)

    def start() -> None:
        loop = asyncio.get_running_loop()
        loops.append(loop)
        leaving = drain.Drain(service, stop)
        loop.add_signal_handler(signal.SIGTERM, leaving.begin)
        scheduler.start()
        warming.start()

    def stop() -> None:
        server.should_exit = True

    async def leave() -> None:
        warming.leave(has_port=server.started)

    server = uvicorn.Server(
        uvicorn.Config(
            app.build(service, start, leave),
            host=chosen.host,
            port=chosen.port,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=log.uvicorn_config(chosen.log_level),
        )
    )
    server.run()
