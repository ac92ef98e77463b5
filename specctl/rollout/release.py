"""A release: the immutable set of files that defines a server on a host, all its algos rendered; compared without its secrets.

Secret files enter a manifest only as an HMAC under a salt of that release, so that a manifest betrays nothing and yet two
releases can be compared by whoever holds the secrets.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One file of a release; the content of a secret one is never shown."""

    name: str
    content: str = field(repr=False)
    mode: int = 0o644
    secret: bool = False

    def digest(self) -> str:
        """Return the SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content.encode()).hexdigest()

    def sealed(self, salt: str) -> str:
        """Return the HMAC-SHA-256 of a secret's content under the release's salt."""
        return hmac.new(salt.encode(), self.content.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What one server should consist of on one host.

    `units` maps an algo to the name of its main file, `launches` to its argv and environment as they are compared and shown.
    `port` and `bind` are where it answers: what runs may be an older release than the inventory describes.
    """

    id: str
    server: str
    files: tuple[ReleaseFile, ...]
    units: Mapping[str, str]
    knobs: Mapping[str, Mapping[str, int]]
    profile: str
    port: int
    bind: str
    launches: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def file(self, name: str) -> ReleaseFile | None:
        """Return the file of that name, or None."""
        return next((file for file in self.files if file.name == name), None)

    def digests(self) -> Mapping[str, str]:
        """Return the digest of each file by name, secret ones left out."""
        return {file.name: file.digest() for file in self.files if not file.secret}

    def manifest(self, *, salt: str, who: str, when: str, version: str) -> Mapping[str, object]:
        """Return what is stored beside the files: digests, who, when; no secret."""
        return {
            "id": self.id,
            "server": self.server,
            "profile": self.profile,
            "port": self.port,
            "bind": self.bind,
            "units": dict(self.units),
            "knobs": {algo: dict(values) for algo, values in self.knobs.items()},
            "launches": {algo: dict(launch) for algo, launch in self.launches.items()},
            "files": dict(self.digests()),
            "secrets": {file.name: file.sealed(salt) for file in self.files if file.secret},
            "salt": salt,
            "who": who,
            "when": when,
            "specctl": version,
        }


def differing(release: Release, manifest: Mapping[str, object]) -> tuple[str, ...]:
    """Name the files by which a release differs from a manifest on the host; empty when they are the same.

    The release must have been rendered under the manifest's own id, since a unit names its release's secret files.
    """
    files = manifest.get("files")
    secrets = manifest.get("secrets")
    salt = manifest.get("salt")
    known = dict(files) if isinstance(files, Mapping) else {}
    sealed = dict(secrets) if isinstance(secrets, Mapping) else {}
    found = [
        file.name
        for file in release.files
        if (
            sealed.get(file.name) != file.sealed(salt if isinstance(salt, str) else "")
            if file.secret
            else known.get(file.name) != file.digest()
        )
    ]
    gone = [name for name in [*known, *sealed] if release.file(str(name)) is None]
    return (*found, *(str(name) for name in gone))


def next_id(existing: tuple[str, ...]) -> str:
    """Return the number that follows the highest of the host's releases."""
    numbers = [int(name) for name in existing if name.isascii() and name.isdigit()]
    return str(max(numbers, default=0) + 1)
