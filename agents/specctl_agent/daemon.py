"""Put the agent together and run it: settings, the one lock, state, samplers, sockets, loop; and take it apart again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from specctl.rollout import agent_unit
from specctl_agent import config as configs
from specctl_agent import metrics
from specctl_agent.clock import Clock, HostClock
from specctl_agent.config import Config
from specctl_agent.control import ControlSocket
from specctl_agent.decisions import DecisionJournal
from specctl_agent.desk import Desk
from specctl_agent.doors import Doors
from specctl_agent.exporter import MetricsPage
from specctl_agent.hands import open_hands
from specctl_agent.intent import NAME as INTENTS
from specctl_agent.intent import Intents
from specctl_agent.keeping import Keeping
from specctl_agent.log import INFO, Log
from specctl_agent.loop import HostEyes, Loop
from specctl_agent.model import Models
from specctl_agent.notify import Notify
from specctl_agent.orders import FORMAT as ORDERS_FORMAT
from specctl_agent.orders import NAME as ORDERS
from specctl_agent.orders import Orders
from specctl_agent.places import Places
from specctl_agent.samplers.host import HostSampler
from specctl_agent.samplers.nvml import NvmlSampler
from specctl_agent.samplers.runner import Slot
from specctl_agent.storing import only_one
from specctl_agent.ward import Tools, Ward


def run(path: Path | None, version: str, stopping: threading.Event, log: Log) -> None:
    """Be the agent until somebody says stop; raises UsageError, UnsupportedError, AlreadyRunningError before it begins."""
    config = configs.load(path) if path is not None else configs.load()
    lock = only_one(config.state)
    notify = Notify()
    try:
        log(
            INFO,
            "started",
            version=version,
            servers=str(config.servers),
            metrics=agent_unit.joined(config.address, config.port),
        )
        loop, doors = assemble(config, HostClock(), version, log, stopping)
        doors.open()
        try:
            loop.run(stopping, notify)
        finally:
            notify.stopping()
            doors.close()
            loop.close()
    finally:
        os.close(lock)


def assemble(
    config: Config, clock: Clock, version: str, log: Log, stopping: threading.Event | None = None
) -> tuple[Loop, Doors]:
    """Make the loop and the sockets that speak for it; nothing runs yet. `stopping` ends errands that wait."""
    stop = stopping or threading.Event()
    keeping = Keeping(folder=config.state, log=log)
    orders = Orders(file=keeping.file(ORDERS, ORDERS_FORMAT), clock=clock)
    orders.load()
    journal = DecisionJournal(config.state, keeping.complaints)
    intents = Intents(config.state / INTENTS, boot=clock.now().boot, wall=lambda: clock.now().wall_s)
    if intents.unread is not None:
        keeping.complaints.trouble(INTENTS, intents.unread)
    places = Places(config.servers)
    models = Models(keeping.complaints)
    means = Tools(
        keeping=keeping,
        orders=orders,
        journal=journal,
        log=log,
        open_hands=lambda place: open_hands(
            place, state=config.state, intents=intents, boot=clock.now().boot, stopping=stop
        ),
        find=places.find,
        rates=models.rates,
    )
    loop = Loop(
        config=config,
        clock=clock,
        log=log,
        keeping=keeping,
        orders=orders,
        journal=journal,
        host_eyes=HostEyes(
            nvml=Slot(NvmlSampler),
            make_host=lambda units: Slot(lambda: HostSampler(state_dir=config.state, units=units)),
        ),
        places=places,
        make_ward=lambda place: Ward.of(place, means),
        version=version,
    )
    desk = Desk(lambda: loop.picture, orders, journal, log)
    doors = Doors(
        config=config,
        complaints=keeping.complaints,
        control=ControlSocket(desk.answer),
        page=MetricsPage(lambda: metrics.page(loop.picture)),
    )
    loop.doors = doors
    return loop, doors
