"""Reading and judging known_hosts, without a network; ssh-keygen is the witness for hashed names."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.adapters.known_hosts import (
    Changed,
    Revoked,
    Trusted,
    Unvouched,
    Verdict,
    fingerprint,
    judge,
    known_key_types,
    parse_known_hosts,
)


def blob(kind: str, number: int) -> bytes:
    """Return something shaped like a public key of a kind."""
    name = kind.encode()
    return len(name).to_bytes(4, "big") + name + bytes([number]) * 32


def line(patterns: str, number: int, *, kind: str = "ssh-ed25519", marker: str = "") -> str:
    """Return a known_hosts line."""
    return f"{marker}{patterns} {kind} {base64.b64encode(blob(kind, number)).decode()} a comment\n"


def verdict(text: str, *names: str, number: int = 1, kind: str = "ssh-ed25519") -> Verdict:
    """Judge key `number` of a kind for a host."""
    return judge(parse_known_hosts(text, file="kh"), names=names, key_type=kind, blob=blob(kind, number))


@pytest.mark.parametrize(
    ("patterns", "name", "matches"),
    [
        ("h", "h", True),
        ("h", "H", True),
        ("H", "h", True),
        ("h", "h2", False),
        ("a,h,b", "h", True),
        ("*.lab", "x.lab", True),
        ("*.lab", "lab", False),
        ("h?", "h1", True),
        ("h?", "h12", False),
        ("*,!h", "h", False),
        ("!h,*", "h", False),
        ("!h", "other", False),
        ("[h]:22022", "[h]:22022", True),
        ("[h]:22022", "h", False),
        ("[h*]:22022", "[h1]:22022", True),
        ("[hx]:22022", "h", False),
        ("10.0.0.?", "10.0.0.7", True),
        ("10.0.0.7", "10x0x0x7", False),
        ("[::1]:22022", "[::1]:22022", True),
    ],
)
def test_host_patterns_match_as_in_openssh(patterns: str, name: str, matches: bool) -> None:
    """Lists, wildcards, negation, brackets and case follow OpenSSH."""
    assert isinstance(verdict(line(patterns, 1), name), Trusted) is matches


@pytest.mark.parametrize("name", ["h", "[h]:2222", "10.0.0.1"])
def test_names_hashed_by_ssh_keygen_match(tmp_path: Path, name: str) -> None:
    """A name that the real ssh-keygen hashed is found, another is not."""
    file = tmp_path / "known_hosts"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    file.write_text(f"{name} {(tmp_path / 'key.pub').read_text()}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    entries = parse_known_hosts(file.read_text(), file="kh")
    assert entries[0].patterns.startswith("|1|")
    assert known_key_types(entries, names=(name,)) == ("ssh-ed25519",)
    assert known_key_types(entries, names=("other",)) == ()


def test_same_type_with_another_key_is_changed() -> None:
    """Another key of the same type is a change, with the place of every line that says otherwise."""
    text = "# comment\n\n" + line("h", 2) + line("other", 1) + line("h", 3)
    found = verdict(text, "h")
    assert isinstance(found, Changed)
    assert [entry.place for entry in found.entries] == ["kh:3", "kh:5"]


def test_one_right_key_among_several_is_trusted() -> None:
    """Several keys may stand for one host: one that agrees is enough."""
    assert isinstance(verdict(line("h", 2) + line("h", 1), "h"), Trusted)


def test_only_another_type_is_unvouched_and_named() -> None:
    """A key of a type of which none is known is unknown, and the lines of other types are told."""
    found = verdict(line("h", 1, kind="ssh-rsa"), "h")
    assert isinstance(found, Unvouched)
    assert [entry.key_type for entry in found.others] == ["ssh-rsa"]


def test_revocation_wins_wherever_it_stands() -> None:
    """A revoked key is refused though lines before and after vouch for it."""
    text = line("h", 1) + line("*", 1, marker="@revoked ") + line("h", 1)
    assert isinstance(verdict(text, "h"), Revoked)
    assert isinstance(verdict(text, "h", number=2), Changed)


def test_authority_vouches_for_no_plain_key() -> None:
    """A certificate authority's own key is no host's key."""
    found = verdict(line("*", 1, marker="@cert-authority "), "h")
    assert isinstance(found, Unvouched)
    assert [entry.place for entry in found.authorities] == ["kh:1"]


def test_plain_name_vouches_for_another_port_but_never_accuses() -> None:
    """As in OpenSSH, `h` vouches for `[h]:2222`; that it holds another key says nothing of that port."""
    assert isinstance(verdict(line("h", 1), "[h]:2222", "h"), Trusted)
    assert isinstance(verdict(line("h", 2), "[h]:2222", "h"), Unvouched)
    assert isinstance(verdict(line("h", 1) + line("[h]:2222", 2), "[h]:2222", "h"), Trusted)


@pytest.mark.parametrize(
    "broken",
    [
        "h ssh-ed25519\n",
        "h ssh-ed25519 not*base64\n",
        "h ssh-ed25519 \x80\n",
        "|1|\x80|YQ== " + line("", 1),
        "@unknown " + line("h", 1),
        "|1|half " + line("", 1),
        "|2|YQ==|YQ== " + line("", 1),
        line("h", 1).replace("ssh-ed25519", "ssh-rsa"),
        "#" + line("h", 1),
    ],
)
def test_broken_lines_vouch_for_nobody(broken: str) -> None:
    """A line that is not understood neither vouches nor hides its neighbours."""
    assert isinstance(verdict(broken, "h"), Unvouched)
    assert isinstance(verdict(broken + line("h", 1), "h"), Trusted)


@given(st.text(), st.text(min_size=1))
def test_no_text_is_a_traceback_or_trust(text: str, name: str) -> None:
    """Whatever a file holds, it is read without an error and vouches for no key that it does not hold."""
    assert not isinstance(verdict(text, name), Trusted | Changed | Revoked)


def test_fingerprint_is_ssh_keygens(tmp_path: Path) -> None:
    """Fingerprints are those that ssh-keygen -l prints."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    printed = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "key"], check=True, capture_output=True, text=True)
    key = base64.b64decode((tmp_path / "key.pub").read_text().split()[1])
    assert fingerprint(key) == printed.stdout.split()[1]
