"""The order in which keys are offered."""

from __future__ import annotations

from pathlib import Path

from specctl.adapters.ssh_keys import AgentOffer, FileOffer, order_offers, public_blob


def test_order_is_opensshs() -> None:
    """Agent keys that a file names come first in the files' order, then the agent's others, then files not in the agent."""
    offers = order_offers(("/a", "/b", "/c"), {"/a": b"A", "/b": b"B"}, (b"X", b"B", b"Y"), identities_only=False)
    assert offers == (
        AgentOffer(blob=b"B"),
        AgentOffer(blob=b"X"),
        AgentOffer(blob=b"Y"),
        FileOffer(path="/a"),
        FileOffer(path="/c"),
    )


def test_identities_only_leaves_the_agents_others_out() -> None:
    """IdentitiesOnly offers nothing that no file names."""
    offers = order_offers(("/a", "/b"), {"/b": b"B"}, (b"X", b"B"), identities_only=True)
    assert offers == (AgentOffer(blob=b"B"), FileOffer(path="/a"))


def test_public_half_is_found_beside_the_key_or_in_its_place(tmp_path: Path) -> None:
    """The .pub file counts, and so does an IdentityFile that is itself public; private text and junk do not."""
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nYWJj\n")
    assert public_blob(str(tmp_path / "key")) is None
    (tmp_path / "key.pub").write_text("ssh-ed25519 YWJj comment\n")
    assert public_blob(str(tmp_path / "key")) == b"abc"
    assert public_blob(str(tmp_path / "key.pub")) == b"abc"
    (tmp_path / "junk").write_text("two words*\n")
    assert public_blob(str(tmp_path / "junk")) is None
    assert public_blob(str(tmp_path / "nothing")) is None
