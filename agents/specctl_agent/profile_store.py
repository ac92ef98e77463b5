"""Keep the concurrency profile in a file that survives restarts and power cuts; never larger than the codec's bound.

A file that cannot be read as a profile is renamed and kept aside, the newest three of them, and a clean profile begun. A disk that
is full or read-only is reported, and the profile goes on in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from specctl.control import profile_codec
from specctl.control.profile import ConcurrencyProfile

KEPT_ASIDE = 3
_ASIDE = ".aside-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The profile to go on with; `said`: what was wrong with the file, one sentence, None where nothing was."""

    profile: ConcurrencyProfile
    said: str | None = None


class ProfileStore:
    """One profile's file. `save` and `load` are called by one thread; its folder exists."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Loaded:
        """Return what the file holds, or a clean profile: where there is none, and, said, where it is not a profile."""
        clean = ConcurrencyProfile()
        try:
            with self._path.open("rb") as file:
                body = file.read(profile_codec.MAX_BYTES + 1)
        except FileNotFoundError:
            return Loaded(profile=clean)
        except OSError as error:
            return Loaded(profile=clean, said=f"the profile cannot be read ({error.strerror}); a clean one was begun")
        try:
            if len(body) > profile_codec.MAX_BYTES:
                raise profile_codec.ProfileFormatError(f"it is larger than {profile_codec.MAX_BYTES} bytes")
            return Loaded(profile=profile_codec.from_json(json.loads(body)))
        except (ValueError, RecursionError) as error:
            return Loaded(profile=clean, said=self._put_aside(str(error) or type(error).__name__))

    def _put_aside(self, what: str) -> str:
        """Rename the file behind the newest of those aside; remove the oldest beyond KEPT_ASIDE."""
        aside = self._aside()
        number = 1 + max((number for number, _ in aside), default=0)
        target = self._path.with_name(f"{self._path.name}{_ASIDE}{number}")
        try:
            self._path.rename(target)
        except OSError as error:
            return (
                f"the profile is no profile ({what}), and cannot be renamed ({error.strerror}); a clean one was begun"
            )
        for _, old in sorted(aside)[: max(len(aside) + 1 - KEPT_ASIDE, 0)]:
            with contextlib.suppress(OSError):
                old.unlink()
        return f"the profile is no profile ({what}); it is kept as {target.name}, and a clean one was begun"

    def _aside(self) -> list[tuple[int, Path]]:
        prefix = self._path.name + _ASIDE
        found = []
        with contextlib.suppress(OSError):
            for entry in self._path.parent.iterdir():
                number = entry.name.removeprefix(prefix)
                if entry.name.startswith(prefix) and number.isascii() and number.isdigit():
                    found.append((int(number[:18]), entry))
        return found

    def save(self, profile: ConcurrencyProfile) -> str | None:
        """Write the file in one step; returns why it could not be written, None where it was."""
        body = json.dumps(profile_codec.to_json(profile), separators=(",", ":")).encode()
        if len(body) > profile_codec.MAX_BYTES:
            return f"the profile would be {len(body)} bytes, over {profile_codec.MAX_BYTES}: not written"
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            self._write(temporary, body)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            return f"the profile cannot be written ({error.strerror or error}); it goes on in memory"
        return None

    def _write(self, temporary: Path, body: bytes) -> None:
        with temporary.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
