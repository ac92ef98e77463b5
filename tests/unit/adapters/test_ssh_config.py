"""What is understood of `ssh -G`, from text as OpenSSH 9.2 prints it."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.adapters.ssh_config import Hop, LocalSide, SshSettings, parse_hops, parse_ssh_config

LOCAL = LocalSide(
    user="ada", uid=1000, home="/home/ada", hostname="desk.lab", env={"SSH_AUTH_SOCK": "/run/agent", "TOKENS": "/mnt/t"}
)
LEAST = "host ct200\nuser root\nhostname 10.0.0.7\nport 22\n"
PLAIN = SshSettings(alias="ct200", hostname="10.0.0.7", port=22, user="root", identity_agent="/run/agent")


def settings(*lines: str) -> SshSettings:
    """Read the least that ssh -G prints, with more lines."""
    return parse_ssh_config(LEAST + "".join(f"{line}\n" for line in lines), alias="ct200", local=LOCAL)


def test_least_output_is_read() -> None:
    """A host name, a port and a user are enough; the agent is the environment's."""
    assert settings() == PLAIN


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("identityfile ~/.ssh/id_%h", dataclasses.replace(PLAIN, identity_files=("/home/ada/.ssh/id_10.0.0.7",))),
        (
            "identityfile %d/%u-%r-%n-%p-%i-%L-%l-100%%",
            dataclasses.replace(PLAIN, identity_files=("/home/ada/ada-root-ct200-22-1000-desk-desk.lab-100%",)),
        ),
        (
            "identityfile ${TOKENS}/${NOT_SET}/key",
            dataclasses.replace(PLAIN, identity_files=("/mnt/t/${NOT_SET}/key",)),
        ),
        ("identityfile none", PLAIN),
        ("identitiesonly yes", dataclasses.replace(PLAIN, identities_only=True)),
        ("identityagent none", dataclasses.replace(PLAIN, identity_agent=None)),
        ("identityagent SSH_AUTH_SOCK", PLAIN),
        ("identityagent $TOKENS", dataclasses.replace(PLAIN, identity_agent="/mnt/t")),
        ("identityagent ~/agent", dataclasses.replace(PLAIN, identity_agent="/home/ada/agent")),
        (
            "proxyjump u@b:2222,c",
            dataclasses.replace(PLAIN, proxy_jump=(Hop(host="b", user="u", port=2222), Hop(host="c"))),
        ),
        ("proxyjump none", PLAIN),
        (
            "proxycommand nc -x proxy %h %p # 100%%",
            dataclasses.replace(PLAIN, proxy_command="nc -x proxy 10.0.0.7 22 # 100%"),
        ),
        ("proxycommand none", PLAIN),
        (
            "userknownhostsfile /a/b /c/d e /f",
            dataclasses.replace(PLAIN, user_known_hosts_files=("/a/b", "/c/d e", "/f")),
        ),
        ("userknownhostsfile none", PLAIN),
        (
            "globalknownhostsfile /etc/ssh/ssh_known_hosts",
            dataclasses.replace(PLAIN, global_known_hosts_files=("/etc/ssh/ssh_known_hosts",)),
        ),
        ("hostkeyalias rack7", dataclasses.replace(PLAIN, host_key_alias="rack7")),
        ("connecttimeout 4", dataclasses.replace(PLAIN, connect_timeout_s=4.0)),
        ("connecttimeout none", PLAIN),
        ("serveraliveinterval 0", PLAIN),
        ("serveraliveinterval 20", dataclasses.replace(PLAIN, alive_interval_s=20.0)),
        ("serveralivecountmax 5", dataclasses.replace(PLAIN, alive_count=5)),
        ("hashknownhosts yes", dataclasses.replace(PLAIN, hash_known_hosts=True)),
        ("addressfamily inet6", dataclasses.replace(PLAIN, address_family="inet6")),
        ("bindaddress 10.1.1.1", dataclasses.replace(PLAIN, bind_address="10.1.1.1")),
        ("stricthostkeychecking no", PLAIN),
    ],
)
def test_each_option_has_its_meaning(line: str, expected: SshSettings) -> None:
    """An option changes exactly its own settings; StrictHostKeyChecking changes none."""
    assert settings(line) == expected


def test_several_identity_files_keep_their_order() -> None:
    """Keys are offered in the order in which ssh lists them."""
    assert settings("identityfile /a", "identityfile /b").identity_files == ("/a", "/b")


@pytest.mark.parametrize("text", ["", "hostname h\n", "hostname h\nuser u\nport none\n"])
def test_output_without_a_destination_is_refused(text: str) -> None:
    """What names no host, port and user is not silently filled in."""
    with pytest.raises(ValueError, match="names no host name, port or user"):
        parse_ssh_config(text, alias="x", local=LOCAL)


@pytest.mark.parametrize(
    ("text", "hops"),
    [
        ("", ()),
        ("none", ()),
        ("Gate", (Hop(host="Gate"),)),
        ("me@gate", (Hop(host="gate", user="me"),)),
        ("ssh://me@gate:22022", (Hop(host="gate", user="me", port=22022),)),
        ("[fd00::1]:2222", (Hop(host="fd00::1", port=2222),)),
        ("a@corp@gate:1, second", (Hop(host="gate", user="a@corp", port=1), Hop(host="second"))),
    ],
)
def test_jumps_are_read(text: str, hops: tuple[Hop, ...]) -> None:
    """Every spelling of ProxyJump is read, with the case of aliases kept."""
    assert parse_hops(text) == hops


def test_names_in_known_hosts() -> None:
    """A host is known by its alias alone, else by name and port, else by name."""
    assert PLAIN.known_names == ("10.0.0.7",)
    assert dataclasses.replace(PLAIN, port=22022).known_names == ("[10.0.0.7]:22022", "10.0.0.7")
    assert dataclasses.replace(PLAIN, port=22022, host_key_alias="rack7").known_names == ("rack7",)
