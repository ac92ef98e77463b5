"""Whether a host's key is the one that somebody vouched for: OpenSSH's known_hosts files, read and judged; never written.

The judging is pure; `read_known_hosts` is the one that opens files. ssh.py asks for every hop before any secret is offered.
"""

from __future__ import annotations

import base64
import enum
import fnmatch
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class Marker(enum.Enum):
    """What a line says beyond "this is the host's key"."""

    NONE = ""
    REVOKED = "@revoked"
    CERT_AUTHORITY = "@cert-authority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One usable line of a known_hosts file; `patterns` is its host field as written."""

    file: str
    line: int
    marker: Marker
    patterns: str
    key_type: str
    blob: bytes

    @property
    def place(self) -> str:
        """Return `file:line`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """A line holds this very key for this host."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """A line says that this key must never be believed."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Lines hold another key of the same type for this host."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unvouched:
    """No line holds this host's key of this type; `others` hold keys of other types, `authorities` would sign a certificate."""

    others: tuple[Entry, ...] = ()
    authorities: tuple[Entry, ...] = ()


Verdict = Trusted | Revoked | Changed | Unvouched


def fingerprint(blob: bytes) -> str:
    """Return a key's SHA256 fingerprint as `ssh-keygen -l` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def read_known_hosts(files: Iterable[str]) -> tuple[Entry, ...]:
    """Read the files that exist, in order; an OSError other than "not there" is the caller's to tell."""
    entries: list[Entry] = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        entries += parse_known_hosts(text, file=file)
    return tuple(entries)


def parse_known_hosts(text: str, *, file: str) -> tuple[Entry, ...]:
    """Read every line that is understood; comments and broken lines vouch for nobody and are passed over, as OpenSSH does."""
    entries = (_entry(line, number=number, file=file) for number, line in enumerate(text.split("\n"), start=1))
    return tuple(entry for entry in entries if entry is not None)


def judge(entries: Sequence[Entry], *, names: Sequence[str], key_type: str, blob: bytes) -> Verdict:
    """Judge a key offered by a host known by any of `names`, the most exact first (`[host]:port`, then `host`).

    As in OpenSSH, a later name can only vouch: that a plain `host` line holds another key says nothing of another port.
    """
    mine = _matching(entries, names[0])
    every = [entry for name in names for entry in _matching(entries, name)]
    for entry in every:
        if entry.marker is Marker.REVOKED and entry.blob == blob:
            return Revoked(entry=entry)
    for entry in every:
        if entry.marker is Marker.NONE and entry.blob == blob:
            return Trusted(entry=entry)
    plain = tuple(entry for entry in mine if entry.marker is Marker.NONE)
    same_type = tuple(entry for entry in plain if entry.key_type == key_type)
    if same_type:
        return Changed(entries=same_type)
    return Unvouched(others=plain, authorities=tuple(entry for entry in mine if entry.marker is Marker.CERT_AUTHORITY))


def known_key_types(entries: Sequence[Entry], *, names: Sequence[str]) -> tuple[str, ...]:
    """Return the types of key held for a host, so that the host can be asked for one of them first."""
    types = [entry.key_type for name in names for entry in _matching(entries, name) if entry.marker is Marker.NONE]
    return tuple(dict.fromkeys(types))


def _matching(entries: Sequence[Entry], name: str) -> list[Entry]:
    return [entry for entry in entries if _names_host(entry.patterns, name.lower())]


def _names_host(patterns: str, name: str) -> bool:
    if patterns.startswith("|"):
        return _hash_matches(patterns, name)
    found = False
    for pattern in patterns.lower().split(","):
        if pattern.startswith("!"):
            if _glob_matches(pattern[1:], name):
                return False
        elif _glob_matches(pattern, name):
            found = True
    return found


def _glob_matches(pattern: str, name: str) -> bool:
    """Match with * and ? alone: the brackets of `[host]:port` are letters here, not a class of characters."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    return re.match(fnmatch.translate(pattern.replace("[", "[[]")), name) is not None


def _hash_matches(patterns: str, name: str) -> bool:
    parts = patterns.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return False
    try:
        salt, digest = base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except ValueError:  # also what is not ASCII
        return False
    # SHA-1 is the format's choice (HashKnownHosts); it hides names here and proves nothing.
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _entry(line: str, *, number: int, file: str) -> Entry | None:
    fields = line.split()
    if not fields or fields[0].startswith("#"):
        return None
    marker = Marker.NONE
    if fields[0].startswith("@"):
        try:
            marker = Marker(fields.pop(0).lower())
        except ValueError:
            return None
    if len(fields) < 3:
        return None
    patterns, key_type, encoded = fields[:3]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except ValueError:  # also what is not ASCII
        return None
    if not _is_of_type(blob, key_type):
        return None
    return Entry(file=file, line=number, marker=marker, patterns=patterns, key_type=key_type, blob=blob)


def _is_of_type(blob: bytes, key_type: str) -> bool:
    """Tell whether the key itself agrees with the type that its line states."""
    name = key_type.encode()
    return blob[:4] == len(name).to_bytes(4, "big") and blob[4 : 4 + len(name)] == name
