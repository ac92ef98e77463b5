"""Stands in for SGLang's compiled kernels, which load only with CUDA: every name exists, and says its name when it is called.

The engine imports `sgl_kernel` and its submodules while it starts; on a CPU with torch's own attention it calls none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.4.10"


class Absent:
    """A kernel, or a namespace of kernels, that is not here."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Absent:
        return _named(self.__name__, name)

    def __call__(self, *_args: object, **_options: object) -> None:
        raise RuntimeError(f"stub sgl_kernel called: {self.__name__}")


def _named(owner: str, name: str) -> Absent:
    """Return the stand-in for an attribute; the names that Python itself asks for do not exist."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"{owner}.{name}")


class Submodule(ModuleType):
    """A module of the package; its attributes are stand-ins too."""

    def __getattr__(self, name: str) -> Absent:
        return _named(self.__name__, name)


class Submodules(MetaPathFinder, Loader):
    """Finds every submodule, to any depth."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for names below this package."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        return Submodule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is no code."""


def __getattr__(name: str) -> Absent:
    return _named(__name__, name)


sys.meta_path.insert(0, Submodules())
