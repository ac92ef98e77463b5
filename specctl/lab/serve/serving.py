"""Wire the parts of a loaded engine together and run them: scheduler, HTTP, warm-up, drain, death."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import uvicorn

from specctl.lab.serve import app, log, phases, strikes
from specctl.lab.serve.drain import Drain
from specctl.lab.serve.resolve import Launch
from specctl.lab.serve.scheduler import Limits, Scheduler
from specctl.lab.serve.service import Service
from specctl.lab.serve.verifytrace import VerifyTrace
from specctl.lab.serve.warmup import Warmup

BLOCK_S = 3600.0
"""How long a dead scheduler's event loop sleeps; the process ends long before."""


class Serving:
    """One server from its open port to its end."""

    def __init__(self, launch: Launch, loaded: phases.Loaded) -> None:
        options = launch.options
        limits = Limits(
            max_queued=options.max_queued_requests,
            decode_log_interval=options.decode_log_interval,
            with_metrics=options.enable_metrics,
        )
        self._crash_after_s = options.faults.number("crash-after")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scheduler = Scheduler(
            loaded.engine,
            launch.speculation,
            limits,
            options.faults,
            decodes=launch.decodes,
            on_death=self._die,
            trace=None
            if options.verify_trace is None
            else VerifyTrace(options.verify_trace, options.verify_trace_bytes),
        )
        self._service = Service(
            launch=launch,
            tokenizer=loaded.models.tokenizer,
            scheduler=self._scheduler,
            footprint=loaded.footprint,
            startup=loaded.times,
        )
        self._warmup = Warmup(self._service, phases.SHARES["warmup"] * options.load_seconds, self._ready)
        config = uvicorn.Config(
            app.build(self._service, self._start, self._leave),
            host=options.host,
            port=options.port,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=log.uvicorn_config(options.log_level),
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Open the port and answer until told to leave."""
        self._server.run()

    def _start(self) -> None:
        """Begin to decode and to warm up, in the event loop and before the port opens."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGTERM, Drain(self._service, self._stop).begin)
        self._scheduler.start()
        self._warmup.start()

    def _stop(self) -> None:
        """Close the port and end."""
        self._server.should_exit = True

    async def _leave(self) -> None:
        """End the warm-up; the last thing that an ending server does."""
        self._warmup.leave(has_port=self._server.started)

    def _ready(self) -> None:
        """Serve clients from now on, faults included."""
        self._scheduler.serves_clients = True
        if self._crash_after_s is not None:
            timer = threading.Timer(self._crash_after_s, self._scheduler.crash)
            timer.daemon = True
            timer.start()

    def _die(self, trace: str) -> None:
        """Stop answering and end the process; called in the scheduler's thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(time.sleep, BLOCK_S)
        strikes.die_while_serving(trace)
