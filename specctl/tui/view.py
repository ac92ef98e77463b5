"""What all whole-screen views have in common: they draw from the model when the app says so, and know the app."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from textual.screen import Screen

if TYPE_CHECKING:
    from specctl.tui.app import Top


class View(Screen[None]):
    """A screen that shows the model; `draw` is called after each look, and when what is shown was changed by a key."""

    @property
    def top(self) -> Top:
        """Return the app."""
        return cast("Top", self.app)  # views live in no other app

    @abstractmethod
    def draw(self) -> None:
        """Show the model as it is now."""
