"""IOMMU and ACS: the kernel's words, and a bridge's configuration space read bit by bit."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.host import pci

ACS = 0x0D
OTHER = 0x01


def space(*capabilities: tuple[int, int, int]) -> bytes:
    """Return a configuration space of 4096 bytes whose extended capabilities are (id, place of the next, control word)."""
    content = bytearray(4096)
    place = 0x100
    for kind, following, control in capabilities:
        struct.pack_into("<I", content, place, kind | 1 << 16 | following << 20)
        struct.pack_into("<H", content, place + 6, control)
        place = following
    return bytes(content)


@pytest.mark.parametrize(
    ("control", "redirecting"), [(0x00, False), (0x04, True), (0x08, True), (0x1D, True), (0x11, False)]
)
def test_acs_is_found_behind_another_capability(control: int, redirecting: bool) -> None:
    """Request and completion redirect count; source validation and forwarding do not."""
    assert pci.redirects(space((OTHER, 0x148, 0), (ACS, 0, control))) is redirecting


def test_no_acs_and_too_little_read_are_none() -> None:
    """A bridge without ACS, and the 64 bytes that others than root may read, say nothing."""
    assert pci.redirects(space((OTHER, 0, 0))) is None
    assert pci.redirects(bytes(64)) is None


@given(st.binary(max_size=600))
def test_any_configuration_space_ends(content: bytes) -> None:
    """A chain of capabilities that runs in a circle ends."""
    assert pci.redirects(content) in (None, True, False)


def test_kernel_words() -> None:
    """Only what speaks of the IOMMU or of PCI is kept."""
    text = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet iommu=pt amd_iommu=on pci=noacs pcie_aspm=off\n"
    assert pci.command_line(text) == ["iommu=pt", "amd_iommu=on", "pci=noacs"]


def test_this_machine_answers() -> None:
    """On whatever runs the tests, the answer has its fields."""
    assert set(pci.iommu()) == {"units", "kinds", "cmdline"}
