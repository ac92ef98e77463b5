"""What the agent and its NVML process say to each other: one request byte, and marshalled tuples back, one packet each.

Imported by both sides; the NVML process must stay small, so this module imports next to nothing. Both run the same
interpreter and the same release, which is what `marshal` asks for: it is the fastest and smallest format there is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # One of the kinds below and what follows it: only nvml_picture.py looks inside, and makes values of it.
    Message: TypeAlias = tuple[Any, ...]

# Bits of a request; the fast row of each GPU is always asked for.
FAST = 1
WEAR = 2
PROCESSES = 4
LINKS = 8
RETRY_LOST = 16

# Kinds of a message: its first item. What follows:
# versions of driver, NVML and CUDA; and of each GPU index, UUID, name, PCI address, serial, default power limit in
# mW, highest SM clock in MHz, compute capability.
HELLO = "hello"
# Pairs of an index (or None) and an XID. Sent before any GPU is asked, since what follows an XID may hang.
XIDS = "xids"
# Pairs of an index and a row of the fast columns; of the wear columns; of (pid, bytes), or None for all of them; and
# of an error's name.
SAMPLE = "sample"
# An index and a row of the link columns. Sent after the sample, since PCIe counters block for 20 ms each.
LINKED = "links"
# An error's name and its text: the last word before the process ends.
TROUBLE = "trouble"

# Columns of the rows, in NVML's own units; what is not known is None.
FAST_COLUMNS = (
    "busy_percent",
    "memory_busy_percent",
    "memory_used_bytes",
    "memory_total_bytes",
    "power_mw",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "throttle_bits",
)
WEAR_COLUMNS = (
    "power_limit_mw",
    "mig",
    "ecc_corrected",
    "ecc_uncorrected",
    "retired_single_bit",
    "retired_double_bit",
    "retirement_pending",
    "remapped_corrected",
    "remapped_uncorrected",
    "remap_pending",
    "remap_failed",
)
LINK_COLUMNS = ("pcie_tx_kb_per_s", "pcie_rx_kb_per_s", "nvlink_tx_kib", "nvlink_rx_kib")

# What is being asked, written before each call into memory that both sides see: of a call that hangs nothing else is
# left.
MARK_BYTES = 64
NO_GPU = "-"


def mark(call: str, index: int | None) -> bytes:
    """Return what stands in the shared memory while that call runs."""
    text = f"{NO_GPU if index is None else index} {call}"
    return text.encode()[:MARK_BYTES].ljust(MARK_BYTES, b"\0")


def read_mark(held: bytes) -> tuple[int | None, str]:
    """Return the GPU's index (None: a call that is about none) and the call; an empty call before the first."""
    index, _, call = held.rstrip(b"\0").decode(errors="replace").partition(" ")
    return (int(index) if index.isdigit() else None), call
