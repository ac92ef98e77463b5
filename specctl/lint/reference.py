"""The rules as docs/troubleshooting.md lists them: `python -m specctl.lint.reference` prints them, and a test compares."""

from __future__ import annotations

from specctl.lint.catalogue import rule_sets

# From what stops a start to what is only worth knowing of the file itself.
ORDER = (
    "names",
    "values",
    "speculation",
    "tree",
    "memory",
    "nccl",
    "gate",
    "serving",
    "exposure",
    "ports",
    "unit",
    "waivers",
)


def reference() -> str:
    """Return a table for each set of rules, with ids, reasons and remedies."""
    found = rule_sets()
    parts = []
    for name in (*ORDER, *(name for name in found if name not in ORDER)):
        rows = "\n".join(
            f"| {rule.id} | {rule.title} | {rule.reason} | {rule.remedy} |"
            for rule in sorted(found[name].rules, key=lambda rule: (rule.id[1:], rule.id))
        )
        parts.append(f"### {found[name].title}\n\n| id | finding | why | remedy |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(reference(), end="")
