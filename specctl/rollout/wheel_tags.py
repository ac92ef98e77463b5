"""Which wheels an interpreter on a host can use, by the tags in their names (PEP 425, 600); pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Names of older manylinux rules and the glibc that they stand for (PEP 600).
LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
OLDEST_GLIBC = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A CPython on a Linux host: its path, version, machine as uname says it, and glibc (None: another C library)."""

    path: str
    version: tuple[int, int]
    machine: str
    glibc: tuple[int, int] | None

    @property
    def text(self) -> str:
        """Return the version as people write it."""
        return f"{self.version[0]}.{self.version[1]}"

    def platforms(self) -> tuple[str, ...]:
        """Return the platform tags that it takes, the newest first."""
        if self.glibc is None:
            return (f"linux_{self.machine}",)
        major, minor = self.glibc
        modern = tuple(f"manylinux_{major}_{each}_{self.machine}" for each in range(minor, OLDEST_GLIBC - 1, -1))
        legacy = tuple(f"{name}_{self.machine}" for name, least in LEGACY.items() if least <= self.glibc)
        return (*modern, *legacy, f"linux_{self.machine}")

    def takes(self, wheel: str) -> bool:
        """Claim that a wheel of this name can be imported by it."""
        parts = wheel.removesuffix(".whl").split("-")
        if not wheel.endswith(".whl") or len(parts) not in (5, 6):
            return False
        pythons, abis, platforms = (part.split(".") for part in parts[-3:])
        compiled, plain = bool(set(self.platforms()) & set(platforms)), "any" in platforms
        fitting = [(python, abi) for python in pythons for abi in abis if self._takes(python, abi)]
        return any(compiled or (plain and abi == "none") for _, abi in fitting)

    def _takes(self, python: str, abi: str) -> bool:
        major, minor = self.version
        own = f"cp{major}{minor}"
        if abi == "none":
            return python in (f"py{major}", f"py{major}{minor}", own)
        if abi == "abi3":
            digits = python.removeprefix(f"cp{major}")
            return python.startswith(f"cp{major}") and digits.isdecimal() and int(digits) <= minor
        return python == own and abi == own


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """One requirement of a lock file: its name, its exact version, and the SHA-256 sums that its files may have."""

    name: str
    version: str
    sums: frozenset[str]


def locked(text: str) -> tuple[Pinned, ...]:
    """Read a lock file as uv and pip write it with hashes; raises ValueError for a requirement that is not pinned or has none."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.partition(" #")[0].split()
        if not words or words[0].startswith("#"):
            continue
        name, pin, version = words[0].partition("==")
        sums = frozenset(word.removeprefix("--hash=sha256:") for word in words if word.startswith("--hash=sha256:"))
        if not pin or not sums:
            raise ValueError(f"{words[0]} is not pinned by version and hash")
        found.append(Pinned(name=normal(name), version=version, sums=sums))
    return tuple(found)


def normal(name: str) -> str:
    """Return a distribution's name as registries compare it."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def distribution(wheel: str) -> tuple[str, str]:
    """Return the name and version that a wheel's file name says; empty texts where it is no wheel's."""
    parts = wheel.removesuffix(".whl").split("-")
    return (normal(parts[0]), parts[1]) if wheel.endswith(".whl") and len(parts) >= 5 else ("", "")


def chosen(
    pins: Iterable[Pinned], wheels: Mapping[str, str], python: Interpreter
) -> tuple[Mapping[str, str], list[str]]:
    """Choose a wheel (name → SHA-256) for each pin; returns them, and what is missing in words."""
    found: dict[str, str] = {}
    missing = []
    for pin in pins:
        named = {name: digest for name, digest in wheels.items() if distribution(name) == (pin.name, pin.version)}
        fitting = {name: digest for name, digest in named.items() if python.takes(name)}
        allowed = sorted(name for name, digest in fitting.items() if digest in pin.sums)
        if allowed:
            found[allowed[0]] = fitting[allowed[0]]
        elif fitting:
            missing.append(
                f"{pin.name} {pin.version} with a SHA-256 that the lock file knows ({', '.join(sorted(fitting))} has another)"
            )
        else:
            missing.append(f"{pin.name} {pin.version} for CPython {python.text} on {python.platforms()[0]}")
    return found, missing
