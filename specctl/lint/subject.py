"""What is linted: one launch of one server, with its argv read once as the engine's parser would read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.engines.types import AlgoProfile, Argument, Credential, EngineProfile
from specctl.fleet.types import Host, Origin, Server
from specctl.lint.flags import FlagTable
from specctl.rollout.launch import Launch

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_TRUE = frozenset(("1", "true", "yes", "y", "on"))
_FALSE = frozenset(("0", "false", "no", "n", "off"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A flag as it stands in the argv: as written, by its exact name, with what follows it.

    `joined` says that the value stood behind an equals sign; `secret` that it is the path of a secret file.
    """

    written: str
    name: str
    values: tuple[str, ...] = ()
    joined: bool = False
    secret: bool = False

    @property
    def value(self) -> str | None:
        """The one value, or None where there is none or more than one."""
        return self.values[0] if len(self.values) == 1 else None


def read_argv(argv: Iterable[Argument], profile: EngineProfile, table: FlagTable | None) -> tuple[Given, ...]:
    """Read what follows `python -m MODULE` into flags with their values, in order; words before any flag are left out."""
    found: list[Given] = []
    for part in list(argv)[2 + len(profile.module) :]:
        if isinstance(part, Credential):
            if found:
                found[-1] = _with_value(found[-1], f"<{part.name}>", secret=True)
        elif _is_flag(part):
            written, equals, value = part.partition("=")
            name = _exact(written, profile, table)
            values = (value,) if equals else ()
            found.append(Given(written=written, name=name, values=values, joined=bool(equals)))
        elif found:
            found[-1] = _with_value(found[-1], part)
    return tuple(found)


def _with_value(given: Given, value: str, *, secret: bool = False) -> Given:
    return Given(
        written=given.written,
        name=given.name,
        values=(*given.values, value),
        joined=given.joined,
        secret=given.secret or secret,
    )


def _is_flag(word: str) -> bool:
    """Say whether argparse would take a word for an option: a negative number and what holds a blank are values."""
    return word.startswith("-") and word != "-" and " " not in word and not _NEGATIVE.fullmatch(word)


def _exact(written: str, profile: EngineProfile, table: FlagTable | None) -> str:
    known = table.canonical(written) if table is not None else written
    return profile.aliases.get(written, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One launch to be linted. Build it with `of`; `table` None: the engine's option strings are not known.

    `elsewhere` names rules that others than the linter know, so that a waiver of theirs is no waiver of an unknown rule.
    """

    host: Host
    server: Server
    launch: Launch
    profile: AlgoProfile
    given: tuple[Given, ...]
    table: FlagTable | None = None
    elsewhere: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        host: Host,
        server: Server,
        launch: Launch,
        table: FlagTable | None = None,
        *,
        elsewhere: Iterable[str] = (),
    ) -> Subject:
        """Read the launch's argv and make a subject of it."""
        return cls(
            host=host,
            server=server,
            launch=launch,
            profile=server.profile.algos.get(launch.algo, AlgoProfile(algo=launch.algo)),
            given=read_argv(launch.argv, server.profile, table),
            table=table,
            elsewhere=frozenset(elsewhere),
        )

    @property
    def is_exact(self) -> bool:
        """Claim that the option strings are this very build's, not those of the build that a fork began with."""
        build = self.server.profile
        return self.table is not None and (build.version is not None or build.name == self.table.name)

    @property
    def shape(self) -> Shape | None:
        """What one verify step checks; None for an algo that specctl does not know."""
        algo = ALGOS.get(self.launch.algo)
        return None if algo is None else algo.shape

    @property
    def algorithm(self) -> str | None:
        """The engine's own name of the speculative algorithm, upper case as the engine reads it; None: no speculation."""
        value = self.text("--speculative-algorithm")
        return None if value is None or value.upper() == "NONE" else value.upper()

    @property
    def is_dflash(self) -> bool:
        """Claim that the engine checks this launch as it checks DFLASH; trees are built on its drafter."""
        trees = self.shape is Shape.TREE or bool(self.plugged)
        return self.algorithm is not None and (self.algorithm == "DFLASH" or trees)

    @property
    def plugged(self) -> tuple[str, ...]:
        """The engine's own names of the algorithms that a plugin of the release adds; none where this launch loads none."""
        chosen = self.profile.select.get("--speculative-algorithm")
        return (str(chosen).upper(),) if self.launch.plugs and chosen is not None else ()

    @property
    def is_open(self) -> bool:
        """Claim that others than this machine can reach the port."""
        return not is_loopback(self.text("--host") or self.server.bind)

    def find(self, name: str) -> Given | None:
        """Return the flag of that exact name as the parser would keep it: the last one given."""
        return next((one for one in reversed(self.given) if one.name == name), None)

    def has(self, name: str) -> bool:
        """Claim that the flag is given."""
        return self.find(name) is not None

    def text(self, name: str) -> str | None:
        """Return a flag's value; None where it is not given, or not with one value."""
        found = self.find(name)
        return None if found is None else found.value

    def whole(self, name: str) -> int | None:
        """Return a flag's value as a whole number; None where it is no such."""
        return whole(self.text(name))

    def env(self, name: str) -> str | None:
        """Return an environment variable of the launch."""
        return self.launch.env.get(name)

    def key(self, given: Given | None) -> str | None:
        """Return the inventory's key behind a flag; None for a flag of the engine profile."""
        if given is None:
            return None
        if given.written in self.server.options:
            return f"options.{given.written}"
        word = next((word for word, flag in self.server.profile.flags.items() if flag == given.name), None)
        if word is not None:
            return "secrets" if word == "config" else word
        knob = next((knob for knob, flag in self.profile.knobs.items() if flag == given.name), None)
        return None if knob is None else f"knobs.{self.launch.algo}.{knob}"

    def env_key(self, name: str) -> str | None:
        """Return the inventory's key behind a variable; None for one of the engine profile."""
        return f"env.{name}" if name in self.server.env else None

    def origin(self, key: str | None) -> Origin | None:
        """Return where a key's value comes from; for a section, where its first value does."""
        if key is None:
            return None
        found = self.server.provenance.get(key)
        if found is not None:
            return found
        return next((one for path, one in self.server.provenance.items() if path.startswith(f"{key}.")), None)


def whole(text: str | None) -> int | None:
    """Read a whole number, or None."""
    return int(text) if text is not None and _WHOLE.fullmatch(text.strip()) else None


def number(text: str | None) -> float | None:
    """Read a finite number, or None."""
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < float("inf") else None


def is_true(text: str | None) -> bool:
    """Claim that the engine reads the text as yes."""
    return text is not None and text.strip().lower() in _TRUE


def is_false(text: str | None) -> bool:
    """Claim that the engine reads the text as no."""
    return text is not None and text.strip().lower() in _FALSE


def is_loopback(address: str) -> bool:
    """Claim that an address to listen on is reached from this machine alone."""
    return address in ("localhost", "::1", "[::1]") or address.startswith("127.")
