"""Resolve an experiment's arms over the inventory: two modes of one server, and where it is wanted one with the other's flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.engines.types import FlagValue
from specctl.errors import UsageError
from specctl.fleet.overrides import Overrides
from specctl.fleet.types import Host, Server
from specctl.measure import ab_diff
from specctl.measure.ab_diff import Contrast, Deviation, Side
from specctl.measure.ab_trial import ARM_A, ARM_B, ARM_CHAIN, Ask
from specctl.measure.ab_types import Arm

Choose = Callable[[Overrides], tuple[Host, Server]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The arms of an experiment: each one's server, in its own algo; what A and B differ in; which pairs are compared."""

    host: Host
    servers: tuple[Server, ...]
    arms: tuple[Arm, ...]
    contrast: Contrast
    pairs: tuple[tuple[int, int], ...]


def read_mode(text: str, option: str) -> Mode:
    """Read a mode as the command line spells it; raises UsageError."""
    try:
        return modes.parse(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}", hint="--a dflash --b ddtree:tree_budget=7,topk_cap=1") from error


def servers_of(ask: Ask, choose: Choose) -> tuple[Host, tuple[Server, Server]]:
    """Return the host and the server of each arm, as the inventory and the command line define them."""
    pair = []
    for text, option, options, env in ((ask.a, "--a", (), ()), (ask.b, "--b", ask.options_b, ask.env_b)):
        mode = read_mode(text, option)
        over = Overrides(algo=mode.algo, knobs=dict(mode.knobs), options=read_options(options), env=read_variables(env))
        pair.append(choose(over))
    (host, one), (_, other) = pair
    return host, (one, other)


def read_options(given: Sequence[str]) -> Mapping[str, FlagValue]:
    """Read NAME=VALUE or NAME pairs of engine options."""
    found: dict[str, FlagValue] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name:
            raise UsageError(f"--b-option {text} is not NAME=VALUE", hint="--b-option page-size=1")
        found[name] = _value(value) if equals else True
    return found


def read_variables(given: Sequence[str]) -> Mapping[str, str]:
    """Read NAME=VALUE pairs of environment variables."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--b-env {text} is not NAME=VALUE", hint="--b-env NCCL_ALGO=Ring")
        found[name] = value
    return found


def _value(text: str) -> FlagValue:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def resolve(host: Host, pair: tuple[Server, Server], ask: Ask, packages: Mapping[str, str]) -> Arms:
    """Put the arms together; raises UsageError where they differ in more than one thing and nobody said that this is meant."""
    a, b = pair
    contrast = ab_diff.compare(Side.of(host, a, packages), Side.of(host, b, packages))
    servers: tuple[Server, ...] = pair
    pairs: tuple[tuple[int, int], ...] = ((ARM_A, ARM_B),)
    left = contrast.beside
    if ask.third_arm:
        chain = _chain(a, b)
        servers = (*pair, chain)
        pairs = ((ARM_CHAIN, ARM_B), (ARM_A, ARM_CHAIN), (ARM_A, ARM_B))
        left = ab_diff.compare(Side.of(host, chain, packages), Side.of(host, b, packages)).beside
    if left and not ask.confounded:
        raise refusal(contrast, left, b, ask)
    shared = _shared(servers)
    return Arms(host=host, servers=shared, arms=_arms(host, shared, ask, packages), contrast=contrast, pairs=pairs)


def refusal(contrast: Contrast, left: Sequence[Deviation], b: Server, ask: Ask) -> UsageError:
    """Say what else differs, and what can be done about it."""
    count = f"{len(left)} more thing{'s' if len(left) != 1 else ''}"
    listed = "; ".join(str(each) for each in left)
    named = contrast.named or "what was named"
    implied = _implied(b) and not ask.third_arm
    third = "--third-arm adds A with these flags, which tells the two apart; " if implied else ""
    return UsageError(
        f"the arms differ in {named} and in {count}: {listed}",
        hint=f"{third}--confounded measures them together, and the report says so; or make them equal in the inventory",
    )


def _implied(server: Server) -> bool:
    profile = server.profile.algos[server.algo]
    return bool(profile.implies or profile.env)


def _chain(a: Server, b: Server) -> Server:
    """Return A with all that B's algo implies beside itself: what tells the algorithm from its flags."""
    profile = b.profile.algos[b.algo]
    if not _implied(b):
        raise UsageError(
            f"--third-arm has no use: {b.algo} implies nothing in engine profile {b.profile.name}", hint="leave it out"
        )
    return replace(a, options={**a.options, **profile.implies}, env={**a.env, **profile.env})


def _shared(servers: tuple[Server, ...]) -> tuple[Server, ...]:
    """Give every arm the knobs of all, where no two contradict: they are then algos of one release, which is written once."""
    knobs = dict(servers[0].knobs)
    for server in servers:
        own = server.knobs.get(server.algo, {})
        if any(other.algo == server.algo and other.knobs.get(server.algo, {}) != own for other in servers):
            return servers
        knobs[server.algo] = own
    return tuple(replace(server, knobs=knobs) for server in servers)


def _arms(host: Host, servers: Sequence[Server], ask: Ask, packages: Mapping[str, str]) -> tuple[Arm, ...]:
    found = []
    for letter, server in zip("ABC", servers, strict=False):
        side = Side.of(host, server, packages)
        spelled = modes.mode(server.algo, dict(side.launch.knobs))
        note = f"A with what {servers[ARM_B].algo} implies" if letter == "C" else ""
        extra = [*ask.options_b, *ask.env_b] if letter == "B" else []
        mode = " ".join([str(spelled), *extra])
        found.append(Arm(letter=letter, mode=mode, note=note, words=side.launch.words(), env=dict(side.launch.env)))
    return tuple(found)
