"""Log lines and progress bars in the shapes that reach a journal."""

from __future__ import annotations

import io
import re

from specctl.lab.serve.log import Progress


def test_a_bar_ends_in_one_newline() -> None:
    """A bar redraws with carriage returns and ends in the only newline."""
    stream = io.StringIO()
    with Progress("Loading", 2, stream=stream) as bar:
        bar.advance()
        bar.advance()
    text = stream.getvalue()
    assert (text.count("\n"), text.endswith("\n"), text.count("\r")) == (1, True, 3)


def test_a_bar_in_tqdm_shape() -> None:
    """Each state shows the share, the count, the time and the rate."""
    stream = io.StringIO()
    with Progress("Loading", 4, stream=stream) as bar:
        bar.advance()
    first, second = stream.getvalue().rstrip("\n").split("\r")[1:]
    assert first == "Loading:   0% Completed | 0/4 [00:00<?, ?it/s]"
    assert re.fullmatch(r"Loading:  25% Completed \| 1/4 \[00:00<00:00, +\d+\.\d\dit/s\]", second)
