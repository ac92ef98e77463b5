"""Which keys are offered to a host, from the agent and from files, in OpenSSH's order; pure, but for reading public halves."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOffer:
    """A key that the agent holds, by its public blob."""

    blob: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOffer:
    """A private key file that the agent does not hold."""

    path: str


Offer = AgentOffer | FileOffer


def order_offers(
    files: Sequence[str], public_blobs: Mapping[str, bytes], held: Sequence[bytes], *, identities_only: bool
) -> tuple[Offer, ...]:
    """Order them as OpenSSH does: agent keys that a file names, the agent's others unless forbidden, then plain files."""
    named = [public_blobs[file] for file in files if public_blobs.get(file) in held]
    others = [] if identities_only else [blob for blob in held if blob not in named]
    plain = [file for file in files if public_blobs.get(file) not in held]
    return (*(AgentOffer(blob=blob) for blob in (*named, *others)), *(FileOffer(path=file) for file in plain))


def public_blob(path: str) -> bytes | None:
    """Return the public half of a key file, from the .pub beside it or the file itself where that is public; else None."""
    for candidate in (Path(f"{path}.pub"), Path(path)):
        try:
            fields = candidate.read_bytes()[:65536].split()
        except OSError:
            continue
        if len(fields) >= 2 and not fields[0].startswith(b"-"):
            try:
                return base64.b64decode(fields[1], validate=True)
            except binascii.Error:
                continue
    return None
