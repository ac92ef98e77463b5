"""Run the host's modules from memory: begins every program of specctl's on a host, so it must stay small.

adapters/session_payload.py adds the last lines: a session (sent as `python3 -I -S -c`) takes the modules from standard input, one
line with the number of bytes, then that many bytes; the guard's file carries them. Both are a zlib-compressed JSON object
{module: source}.
"""

import sys

if sys.version_info < (3, 8):
    sys.stdout.write(
        '{"id":0,"error":{"kind":"unsupported","message":"python %d.%d is too old"}}\n' % sys.version_info[:2]
    )
    sys.stdout.flush()
    sys.exit(3)

import importlib
import json
import os
import zlib

# importlib.abc and importlib.util would load pathlib, urllib and inspect: a fifth of a session's start.
ModuleSpec: type = type(sys.__spec__)


def take(size: int) -> bytes:
    """Read exactly so many bytes, and not one of what follows them."""
    parts = []
    while size > 0:
        part = os.read(0, size)
        if not part:
            sys.exit(3)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def first_line() -> bytes:
    """Read up to the first newline, byte by byte."""
    line = b""
    while not line.endswith(b"\n"):
        line += take(1)
    return line


class Finder:
    """Import what was sent, from memory."""

    def __init__(self, sources: dict) -> None:  # type: ignore[type-arg]  # the old Python that this refuses must parse it
        self.sources = sources

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def] # noqa: ARG002  # as the protocol names them
        """Answer for the modules that were sent, and no other."""
        if name not in self.sources:
            return None
        package = any(other.startswith(name + ".") for other in self.sources)
        return ModuleSpec(name, self, origin=place(name), is_package=package)

    def create_module(self, spec):  # type: ignore[no-untyped-def] # as the protocol names them
        """Leave it to the import system."""

    def exec_module(self, module):  # type: ignore[no-untyped-def]  # as above
        """Compile and run one of them."""
        name = module.__name__
        exec(compile(self.sources[name], place(name), "exec"), module.__dict__)  # noqa: S102  # this is what an importer does

    def get_source(self, name):  # type: ignore[no-untyped-def]  # as above
        """Return a module's text, so that tracebacks show its lines."""
        return self.sources.get(name)


def place(name: str) -> str:
    """Return what stands for a module's file in tracebacks."""
    return name.replace(".", "/") + ".py"


def serve(packed, module):  # type: ignore[no-untyped-def]  # as above
    """Run the main function of one of the modules that were packed."""
    sys.meta_path.insert(0, Finder(json.loads(zlib.decompress(packed).decode())))
    importlib.import_module(module).main()
