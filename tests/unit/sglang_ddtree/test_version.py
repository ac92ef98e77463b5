"""The plugin runs with the SGLang that it was tested with, or on whoever's own word."""

from __future__ import annotations

import pytest

from sglang_ddtree import version


def test_tested_version_passes() -> None:
    """The release that the tests run needs no word."""
    version.check("0.5.23", {})


def test_other_version_is_refused_with_the_way_round() -> None:
    """Another release is refused; the message names both and the variable, and the variable works."""
    with pytest.raises(version.VersionError) as refused:
        version.check("0.5.24", {"DDTREE_ANY_VERSION": "yes"})
    assert str(refused.value) == (
        "DDTREE was tested with SGLang 0.5.23, not with 0.5.24; "
        "DDTREE_ANY_VERSION=1 tries it all the same: then check greedy equality before you serve"
    )
    version.check("0.5.24", {"DDTREE_ANY_VERSION": "1"})
