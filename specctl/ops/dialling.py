"""Connections that are begun while a command still loads what it needs for them: one waits for hosts, the other for this CPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from specctl.errors import SpecctlError
from specctl.fleet.types import Host, Via
from specctl.ops.contact import Contact, contact


class Dialling:
    """Dials all hosts at once when it is built; called with a host, it hands its connection over."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._found: dict[str, Contact | SpecctlError] = {}
        wanted = {host.name: host for host in hosts}
        if any(host.via is Via.SSH for host in wanted.values()):
            import specctl.adapters.ssh  # noqa: F401  # once, before threads would wait for each other to import it
        self._threads = {
            name: threading.Thread(target=self._dial, args=(host,), daemon=True, name="specctl-dial")
            for name, host in wanted.items()
        }
        for thread in self._threads.values():
            thread.start()

    def __call__(self, host: Host) -> Contact:
        """Return the host's connection, waiting for it; one that was handed over already is dialled anew. Raises its error."""
        thread = self._threads.pop(host.name, None)
        if thread is None:
            return contact(host)
        thread.join()
        found = self._found[host.name]
        if isinstance(found, SpecctlError):
            raise found
        return found

    def _dial(self, host: Host) -> None:
        try:
            self._found[host.name] = contact(host)
        except SpecctlError as error:
            self._found[host.name] = error
