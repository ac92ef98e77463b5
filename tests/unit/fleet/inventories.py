"""Small inventories as text, and what loads them; for the tests of this folder."""

from __future__ import annotations

import textwrap

from specctl.adapters.inventory_files import BuiltInProfiles, read_bytes
from specctl.fleet.resolve import Resolved, resolve
from specctl.fleet.types import Host, Server

MODELS = """
models:
  big: {path: /srv/big}
  small: {path: /srv/small, kind: draft, target: big}
"""


def resolved(*texts: str) -> Resolved:
    """Resolve one file for each text: a.yaml, b.yaml and so on."""
    readings = [read_bytes(f"{chr(97 + n)}.yaml", textwrap.dedent(text).encode()) for n, text in enumerate(texts)]
    return resolve(readings, BuiltInProfiles())


def host(text: str, name: str = "gpu1") -> Host:
    """Return one host of an inventory."""
    found = resolved(MODELS + textwrap.dedent(text)).fleet.host(name)
    assert found is not None
    return found


def server(text: str, name: str = "gpu1") -> Server:
    """Return the first server of a host."""
    return host(text, name).servers[0]
