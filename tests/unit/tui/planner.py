"""A performer for pictures: it shows a plan, and never gets to act."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from specctl.tui.wishes import Talk, Wish


class Planner:
    """Shows a plan, and never gets to act."""

    def algos(self, host: str, server: str) -> Sequence[str]:
        return ("none", "dflash", "ddtree")

    def perform(self, wish: Wish, talk: Talk) -> str:
        rows = (
            ("change", "algo ddtree → dflash   block_size 8"),
            ("cost", "~8:02 without this server (last loads 7:41, 7:58, 8:12)"),
        )
        head = Text.assemble((wish.host, "host"), " · k26 · fork-0.5 · running ddtree, release 7")
        talk.confirm([head, Text(""), *(Text.assemble((f"  {label:<8}", "quiet"), said) for label, said in rows)])
        return "nothing was changed"
