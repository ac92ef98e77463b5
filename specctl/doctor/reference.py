"""The checks as docs/doctor.md lists them: `python -m specctl.doctor.reference` prints them, and a test compares."""

from __future__ import annotations

from specctl.doctor.catalogue import check_sets

# From what the log says of itself to what stands on the host.
ORDER = (
    "audited",
    "bounds",
    "agreement",
    "commit",
    "gauges",
    "replayed",
    "lossless",
    "cost",
    "serving",
    "gpus",
    "configuration",
)


def reference() -> str:
    """Return a table for each set of checks: id, severity, claim, meaning, evidence, effect and remedy."""
    found = check_sets()
    parts = []
    for name in (*ORDER, *(name for name in found if name not in ORDER)):
        rows = "\n".join(
            f"| {one.id} | {one.severity.value} | {one.title} | {one.meaning} | {one.looks_at} | {one.effect} | {one.remedy} |"
            for one in sorted(found[name].checks, key=lambda one: one.id)
        )
        head = "| id | severity | finding | what it means | evidence | effect on tokens | remedy |\n|---|---|---|---|---|---|---|"
        parts.append(f"### {found[name].title}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(reference(), end="")
