"""How fast a server's modes have been, by what this machine kept: its bench runs, and the calibration that the inventory names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from specctl.adapters import runs
from specctl.control import calibration
from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.doctor.evidence import Speed
from specctl.errors import SpecctlError
from specctl.fleet.types import Host, Server
from specctl.measure import bench
from specctl.measure.bench_wire import from_wire
from specctl.ops import agent_note

NEWEST = 32
CALIBRATION = "the calibration"


def known(host: Host, server: Server) -> tuple[Speed, ...]:
    """Return the figures of this very server, oldest first; a file that cannot be read tells nothing."""
    return (*_of_calibration(server), *_of_benches(host, server))


def _of_benches(host: Host, server: Server) -> Iterator[Speed]:
    for kept in runs.listing("bench").runs[-NEWEST:]:
        try:
            found = from_wire(kept.content)
        except ValueError:
            continue
        mode = _mode(found.subject.mode)
        if (found.subject.host, found.subject.server) != (host.name, server.name) or mode is None:
            continue
        source = f"bench of {found.setting.prompts_digest}, {found.setting.tokens} tokens"
        told = (_of_level(kept.id, mode, level) for level in found.levels)
        yield from (replace(speed, source=source) for speed in told if speed is not None)


def _of_level(run: str, mode: Mode, level: bench.Measured) -> Speed | None:
    """Return the medians of a closed loop's level; an open loop has no concurrency to compare at."""
    tokens_s = bench.middle(level, "tokens_s")
    if tokens_s is None or level.concurrency is None or tokens_s <= 0:
        return None
    return Speed(
        mode=mode,
        tokens_s=tokens_s,
        concurrency=float(level.concurrency),
        tokens_per_step=bench.middle(level, "accept_length"),
        steps_s=bench.middle(level, "verify_steps_s"),
        run=run,
    )


def _of_calibration(server: Server) -> Iterator[Speed]:
    try:
        text = agent_note.letter(server).calibration
        found = None if text is None else calibration.parse(json.loads(text))
    except (SpecctlError, ValueError, RecursionError):
        return
    if found is None:
        return
    for mode, levels in found.measured.items():
        rates = dict(found.table.points.get(mode, ()))
        for level in sorted(levels):
            if level in rates:
                yield Speed(mode=mode, tokens_s=rates[level], concurrency=level, run=CALIBRATION, source=CALIBRATION)


def _mode(text: str | None) -> Mode | None:
    try:
        return None if text is None else modes.parse(text)
    except ValueError:
        return None
