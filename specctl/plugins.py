"""Find the values that live one to a file (algos, engines, probes) by walking a package, and check each when it is loaded."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")


def discover(package: str, attribute: str, kind: type[T]) -> Mapping[str, T]:
    """Return the `attribute` of every module in `package`, by its `name`.

    Modules whose name begins with an underscore, and `types`, hold no plug-in. Raises TypeError for a module without the
    attribute, for one of another kind, and for two of one name: a fault in the code, found when it is loaded.
    """
    root = importlib.import_module(package)
    found: dict[str, T] = {}
    for entry in pkgutil.iter_modules(root.__path__):
        if entry.name.startswith("_") or entry.name == "types" or entry.ispkg:
            continue
        module = importlib.import_module(f"{package}.{entry.name}")
        value = getattr(module, attribute, None)
        if not isinstance(value, kind):
            raise TypeError(f"{package}.{entry.name} must define {attribute}, a {kind.__name__}")
        name = getattr(value, "name", None)
        if not isinstance(name, str) or name in found:
            raise TypeError(f"{package}.{entry.name}: its name {name!r} is missing or taken")
        found[name] = value
    return MappingProxyType(found)
