"""Which SGLang the plugin was tested with; another one is refused, unless whoever starts it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

TESTED = ("0.5.23",)
OVERRIDE = "DDTREE_ANY_VERSION"


class VersionError(RuntimeError):
    """An SGLang that the plugin was not tested with."""


def check(installed: str, environ: Mapping[str, str]) -> None:
    """Refuse an untested version: the plugin calls methods that no release promises to keep."""
    if installed in TESTED or environ.get(OVERRIDE) == "1":
        return
    raise VersionError(
        f"DDTREE was tested with SGLang {', '.join(TESTED)}, not with {installed}; "
        f"{OVERRIDE}=1 tries it all the same: then check greedy equality before you serve"
    )
