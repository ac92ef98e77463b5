"""A plan as people read it: a plugin by its name, however many files it has."""

from __future__ import annotations

import pytest

from specctl.rollout.plan import Plan
from specctl.ui.plan import rows

PLUGIN = ("plugins/sglang_ddtree/tree.py", "plugins/sglang_ddtree/walk.py")


@pytest.mark.parametrize(
    ("files", "change", "write"),
    [
        (("ddtree.service",), "files ddtree.service", "release 4"),
        (PLUGIN, "files plugins/sglang_ddtree", "release 4, with the plugin sglang_ddtree"),
        ((), "nothing but a restart", "release 4"),
    ],
)
def test_files_that_differ_are_named_for_people(files: tuple[str, ...], change: str, write: str) -> None:
    """A plugin is one thing to them, in what changes and in what is written."""
    running = ("3", "ddtree")
    plan = Plan(host="gpu1", server="chat", algo="ddtree", release="4", writes=True, running=running, files=files)
    shown = dict(rows(plan))
    assert (shown["change"], shown["write"]) == (change, write)
