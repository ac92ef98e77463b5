"""Take requests out of a folder of the agent's user, as root: no link is followed, nothing but small plain files is read.

Names are removed before anything is done for them, so that a request is never carried out twice.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from specctl_agent.request import REQUEST_BYTES, Request, RequestError, read_request

NAME = re.compile(r"[0-9a-f]{32}\.json\Z")
MOST = 16


class Inbox:
    """An open folder of requests. Raises OSError where it is no folder, or is a link; RequestError where it is another user's."""

    def __init__(self, folder: Path, owner: int) -> None:
        self._owner = owner
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        found = os.fstat(self._descriptor)
        if found.st_uid != owner:
            self.close()
            raise RequestError(f"{folder} belongs to user {found.st_uid}, not to the agent's {owner}")

    def close(self) -> None:
        """Close the folder."""
        os.close(self._descriptor)

    def names(self) -> tuple[str, ...]:
        """Return the names of what looks like requests, a bounded number, those that were written first before the others."""
        names = os.listdir(self._descriptor)  # noqa: PTH208  # by the descriptor: a path could be another folder by now
        return tuple(sorted((name for name in names if name.endswith(".json")), key=self._written)[:MOST])

    def _written(self, name: str) -> tuple[int, str]:
        """Return when a name's file was written: an order by name alone would be none, for ids are random."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mtime_ns, name
        except OSError:
            return 0, name

    def peek(self, name: str) -> Request:
        """Read one request; raises RequestError, with the name, for whatever is none of the agent's."""
        if not NAME.match(name):
            raise RequestError(f"{name[:80]!r} is no name of a request")
        try:
            descriptor = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._descriptor
            )
        except OSError as error:
            raise RequestError(f"{name} cannot be opened: {error.strerror}") from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise RequestError(f"{name} is no plain file of its own")
            if found.st_uid != self._owner:
                raise RequestError(f"{name} belongs to user {found.st_uid}, not to the agent's {self._owner}")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(REQUEST_BYTES + 1)
        finally:
            os.close(descriptor)
        request = read_request(content)
        if f"{request.id}.json" != name:
            raise RequestError(f"{name} names another request")
        return request

    def drop(self, name: str) -> None:
        """Remove a name, whatever stands behind it: a plain file, a link, an empty folder."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except IsADirectoryError:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return


@contextlib.contextmanager
def opened(folder: Path, owner: int) -> Iterator[Inbox]:
    """Open the folder for a while."""
    inbox = Inbox(folder, owner)
    try:
        yield inbox
    finally:
        inbox.close()
