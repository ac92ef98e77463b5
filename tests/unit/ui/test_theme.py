"""The theme: every style that is named exists, and text is shown as it is."""

from __future__ import annotations

import io

from specctl.ui import theme


def test_every_word_has_a_style_that_exists() -> None:
    """A line's first word is styled by a name of the theme; an unknown word is a step."""
    assert set(theme.WORD_STYLES.values()) <= set(theme.STYLES)
    assert theme.word_style("drain") in theme.STYLES


def test_text_is_no_markup() -> None:
    """Brackets, figures and colons of an engine's line are shown as they are."""
    file = io.StringIO()
    theme.console(file=file, width=80).print("[bold]x[/] :smile: 123")
    assert file.getvalue() == "[bold]x[/] :smile: 123\n"
