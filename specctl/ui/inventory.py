"""The inventory as people read it: a line a server, or everything that holds for one host with where each value came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from specctl.fleet import units, wire
from specctl.fleet.types import Host, Origin, Server
from specctl.fleet.wire import Value
from specctl.ui.text import UNKNOWN

GAP = 2
COLUMNS = ("HOST", "SERVER", "ALGO", "ENGINE", "TARGET", "PORT", "GPUS", "CONNECT", "GROUPS")
# A narrow terminal loses these, the first one first; host, server and algo always stay.
DISPENSABLE = ("GROUPS", "TARGET", "CONNECT", "GPUS", "ENGINE", "PORT")
_SHOWN_OTHERWISE = frozenset(("name", "algos", "target.name", "draft.name", "target.target", "draft.target"))
# Where a value is built from another key, that key's origin is its own.
_ORIGIN_KEYS: Mapping[str, str] = {
    "target.path": "target",
    "target.size_bytes": "target",
    "target.block_size": "target",
    "draft.path": "draft",
    "draft.size_bytes": "draft",
    "draft.block_size": "draft",
    "hardware.name": "hardware",
    "hardware.gpu_model": "hardware",
    "hardware.gpu_count": "hardware",
    "hardware.gpu_memory_bytes": "hardware",
    "hardware.interconnect": "hardware",
    "hardware.verify_cliff_tokens": "hardware",
    "hardware.note": "hardware",
}


def fleet_table(hosts: Sequence[Host], *, width: int) -> Table:
    """Return a line for each server of each host; a host without servers has one too."""
    rows = [row for host in hosts for row in _rows(host)]
    shown = list(COLUMNS)
    for column in DISPENSABLE:
        if _needed(rows, shown) <= width:
            break
        shown.remove(column)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="column")
    for column in shown:
        table.add_column(column, style="host" if column == "HOST" else None, overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[column]) for column in shown))
    return table


def host_view(host: Host, servers: Sequence[Server], *, provenance: bool) -> Group:
    """Return a host and its servers with every value that is known, and where it came from."""
    values = wire.host_values(host)
    parts: list[Text | Padding] = [Text(host_headline(host), style="host")]
    parts.append(_values(values, host.provenance, provenance=provenance))
    for server in servers:
        parts.append(Text())
        parts.append(Text(server_headline(server), style="host"))
        parts.append(_values(wire.server_values(server), server.provenance, provenance=provenance))
    return Group(*parts)


def host_headline(host: Host) -> str:
    """Say in a line what a host is."""
    gpus = None
    if host.hardware is not None and host.hardware.gpu_count is not None:
        gpus = f"{host.hardware.gpu_count}× {host.hardware.gpu_model or 'GPU'}"
    return " · ".join(part for part in (host.name, _connection(host), gpus, host.manager.value) if part)


def server_headline(server: Server) -> str:
    """Say in a line what a server is."""
    knobs = server.knobs.get(server.algo, {})
    algo = " ".join((server.algo, *(f"{name} {value}" for name, value in knobs.items())))
    return f"{server.name} · {server.profile.name} · {algo} · {server.bind}:{server.port}"


def _rows(host: Host) -> list[Mapping[str, str]]:
    common = {"HOST": host.name, "CONNECT": _connection(host), "GROUPS": ", ".join(host.groups) or UNKNOWN}
    if not host.servers:
        return [{**dict.fromkeys(COLUMNS, UNKNOWN), **common}]
    return [
        {
            **common,
            "SERVER": server.name,
            "ALGO": server.algo,
            "ENGINE": server.profile.name,
            "TARGET": server.target.name,
            "PORT": str(server.port),
            "GPUS": _ranges(server.gpus) or UNKNOWN,
        }
        for server in host.servers
    ]


def _connection(host: Host) -> str:
    if host.via.value == "local":
        return "local"
    user = f"{host.user}@" if host.user else ""
    port = f":{host.port}" if host.port is not None else ""
    return f"{user}{host.address or host.name}{port}"


def _needed(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> int:
    return (
        sum(max(cell_len(text) for text in (column, *(row[column] for row in rows))) + GAP for column in columns) - GAP
    )


def _values(values: Mapping[str, Value], provenance_of: Mapping[str, Origin], *, provenance: bool) -> Padding:
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(style="column", overflow="fold")
    table.add_column(overflow="fold")
    if provenance:
        table.add_column(style="quiet", overflow="fold")
    for path, value in wire.flat(values).items():
        if path in _SHOWN_OTHERWISE or value is None or value == []:
            continue
        cells = [Text(path), Text(_text(path, value))]
        if provenance:
            cells.append(Text(str(_origin(path, provenance_of) or UNKNOWN)))
        table.add_row(*cells)
    return Padding(table, (0, 0, 0, GAP), expand=False)


def _origin(path: str, provenance: Mapping[str, Origin]) -> Origin | None:
    plain = path.removesuffix("_s") if path.startswith(("limits.", "agent.")) else path
    return provenance.get(_ORIGIN_KEYS.get(plain, plain))


def _text(path: str, value: Value) -> str:
    if path == "gpus" and isinstance(value, list):
        return _ranges([index for index in value if isinstance(index, int)])
    if path.endswith("_s") and isinstance(value, float):
        return f"{value:g} s"
    if path.endswith(("_bytes", "memory_max")) and isinstance(value, int | str):
        return units.size_text(int(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value)


def _ranges(indices: Sequence[int]) -> str:
    """Return 0-3,6 for 0, 1, 2, 3, 6."""
    spans: list[list[int]] = []
    for index in indices:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
