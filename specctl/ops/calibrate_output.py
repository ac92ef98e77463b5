"""Where a calibration goes: its file, its plot, and the line of the inventory that makes a deploy carry it to the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from specctl.adapters import lasting
from specctl.errors import UsageError
from specctl.fleet.types import Host, Server
from specctl.measure import calibrate_figure, calibrate_file
from specctl.measure.calibrate import Study
from specctl.ops.agent_note import ORIGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The file to write. `named`: the inventory names it already; `line`: what to add to the inventory where it does not."""

    path: Path
    named: bool
    line: str


def place(host: Host, server: Server, given: str | None) -> Output:
    """Return where the file goes: as said, else where the inventory names it, else beside the inventory. Raises UsageError."""
    told = server.agent.calibration
    path = (
        Path(given) if given is not None else _beside(server) / (told or f"calibration-{host.name}-{server.name}.json")
    )
    lasting.refuse_place(path)
    named = told is not None and (_beside(server) / Path(told).expanduser()).resolve() == path.resolve()
    return Output(path=path, named=named, line=line(host, server, path))


def _beside(server: Server) -> Path:
    """Return the folder of the inventory's file: the one that names a calibration, else any that says something of the server."""
    named = server.provenance.get(ORIGIN)
    if named is not None and named.file is not None:
        return Path(named.file).parent
    files = [origin.file for origin in server.provenance.values() if origin.file is not None]
    return Path(files[0]).parent if files else Path()


def line(host: Host, server: Server, path: Path) -> str:
    """Return the line for the inventory, in YAML's short form: the host's own, for another host's figures are not these."""
    folder = _beside(server).resolve()
    name = path.resolve()
    shown = name.relative_to(folder) if name.is_relative_to(folder) else name
    return f"hosts: {{{host.name}: {{launch: {{agent: {{calibration: {shown}}}}}}}}}"


def write(study: Study, path: Path) -> None:
    """Write the calibration file whole, or not at all; raises UsageError where nothing was measured or it cannot be written."""
    try:
        content = calibrate_file.content(study)
    except ValueError as error:
        raise UsageError(f"{error}: no file is written", hint=f"specctl calibrate --resume {study.id}") from error
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    lasting.write(path, text.encode(), hint="--output another file")


def draw(study: Study, path: Path) -> None:
    """Draw the plot; raises UsageError where it cannot be written."""
    from specctl.adapters import figures

    figures.draw(calibrate_figure.figure(study), path)


def refuse_plot(path: Path) -> None:
    """Raise UsageError for a plot that cannot be drawn, before anything is measured for it."""
    from specctl.adapters import figures

    figures.refuse_other(path)
