"""Who can reach the engine, and where its keys can be read (engine facts §1.4; recordings, surprise 28)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.fleet.secret_names import CARRIED, KEY_LIKE
from specctl.lint.subject import Subject
from specctl.lint.types import Hit, Rule, RuleSet


def _has_key(subject: Subject, secret: str, flag: str) -> bool:
    return secret in subject.server.secrets or subject.has(flag)


def _no_api_key(subject: Subject) -> Iterator[Hit]:
    """Find an open address without an API key: control routes are open with it (facts §1.4)."""
    if subject.is_open and not _has_key(subject, "api_key", "--api-key"):
        example = f"{subject.server.name.upper().replace('-', '_')}_API_KEY"
        yield Hit(
            message=f"port {subject.server.port} is open to the network ({subject.server.bind}) without an API key",
            key="bind",
            remedy=f"give secrets: {{api_key: env:{example}}}, or bind: 127.0.0.1",
        )


def _open_admin(subject: Subject) -> Iterator[Hit]:
    """Find control routes that the clients' own key opens (facts §1.4, ADMIN_OPTIONAL)."""
    has_api = _has_key(subject, "api_key", "--api-key")
    if subject.is_open and has_api and not _has_key(subject, "admin_api_key", "--admin-api-key"):
        yield Hit(
            message="the key of every client also pauses, aborts and flushes: there is no admin key",
            key="secrets",
            remedy="give secrets: {admin_api_key: …} beside api_key",
        )


def _only_admin(subject: Subject) -> Iterator[Hit]:
    """Find an admin key alone: /server_info then needs no key and prints it in clear (recordings, surprise 28)."""
    has_api = _has_key(subject, "api_key", "--api-key")
    if _has_key(subject, "admin_api_key", "--admin-api-key") and not has_api:
        yield Hit(
            message="/server_info needs no key and shows the admin key to whoever asks",
            key="secrets.admin_api_key",
            remedy="give secrets: {api_key: …} too",
        )


def _keys_in_argv(subject: Subject) -> Iterator[Hit]:
    """Find secrets on the command line, which ps shows (facts §1.4); the value is not repeated."""
    for given in subject.given:
        secret = given.written in CARRIED or KEY_LIKE.search(given.written)
        if secret and given.values and not given.secret:
            carried = CARRIED.get(given.name)
            remedy = f"write secrets: {{{carried}: env:{carried.upper()}}}" if carried else None
            yield Hit(
                message=f"{given.written} stands with its value in the arguments", key=subject.key(given), remedy=remedy
            )


def _keys_in_env(subject: Subject) -> Iterator[Hit]:
    """Find secrets in the environment lines of the unit, which any account reads (systemctl show)."""
    carried_by_file = set(subject.launch.env_secrets)
    for name in subject.launch.env:
        if name not in carried_by_file and (name in CARRIED or KEY_LIKE.search(name)):
            yield Hit(message=f"{name} stands with its value in the unit", key=subject.env_key(name))


RULES = RuleSet(
    name="exposure",
    title="Keys and who can reach the engine",
    rules=(
        Rule(
            id="W031",
            title="open to the network without an API key",
            reason="Whoever reaches the port can use the model, read the server's whole configuration, and pause, abort and flush.",
            remedy="Give secrets: {api_key: …}, or bind: 127.0.0.1.",
            check=_no_api_key,
        ),
        Rule(
            id="W034",
            title="control routes open to clients",
            reason="Without an admin key the API key opens the control routes too: pausing, aborting, flushing, new weights.",
            remedy="Give secrets: {admin_api_key: …}.",
            check=_open_admin,
        ),
        Rule(
            id="E031",
            title="admin key without an API key",
            reason="The engine then answers /server_info without any key, and prints the admin key there in clear.",
            remedy="Give both keys.",
            check=_only_admin,
        ),
        Rule(
            id="E032",
            title="secret on the command line",
            reason="Every account of the host reads the arguments of every process (ps), and the engine logs them.",
            remedy="Use secrets: in the inventory; it reaches the engine by a file of mode 0600.",
            check=_keys_in_argv,
        ),
        Rule(
            id="E033",
            title="secret in the unit",
            reason="Every account of the host reads a unit's environment (systemctl show).",
            remedy="Use secrets: in the inventory; it reaches the engine by a file of mode 0600.",
            check=_keys_in_env,
        ),
    ),
)
