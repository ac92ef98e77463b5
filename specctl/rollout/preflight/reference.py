"""The checks as docs/troubleshooting.md lists them: `python -m specctl.rollout.preflight.reference` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from specctl.rollout.preflight import devices, engine, memory, models, nccl, service
from specctl.rollout.preflight.types import Check

SUBJECTS: Sequence[tuple[str, tuple[Check, ...]]] = (
    ("The place", service.CHECKS),
    ("The engine", engine.CHECKS),
    ("The models", models.CHECKS),
    ("The GPUs", devices.CHECKS),
    ("Memory", memory.CHECKS),
    ("How GPUs reach each other", nccl.CHECKS),
)


def _shown(text: str) -> str:
    """Return a remedy as the document shows it: a host and a server by their placeholders in capitals."""
    return text.format(host="HOST", server="SERVER")


def reference() -> str:
    """Return a table for each subject, with ids, the gravest level, reasons and remedies."""
    parts = []
    for title, checks in SUBJECTS:
        rows = "\n".join(
            f"| {check.id} | {check.title} | {check.worst.value} | {check.why} | {_shown(check.remedy)} |"
            for check in checks
        )
        head = "| id | what is checked | at worst | why | remedy |\n|---|---|---|---|---|"
        parts.append(f"### {title}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(reference(), end="")
