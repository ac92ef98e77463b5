"""The agent's program: `run` the daemon, `ctl` to speak with it, `actuate` to perform what it asks, `check` to try all imports."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType

from specctl_agent.log import ERROR, INFO, to_journal

USAGE = "usage: specctl-agent run [--config FILE] | ctl REQUEST | actuate | check | --version\n"
EXIT_USAGE = 2
EXIT_RUNNING = 5
EXIT_CRASH = 70


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    match words:
        case ["run"]:
            return run(None)
        case ["run", "--config", path]:
            return run(Path(path))
        case ["ctl", "--help" | "-h"]:
            from specctl_agent import ctl

            sys.stdout.write(ctl.USAGE)
            return 0
        case ["ctl", *rest]:
            from specctl_agent import ctl

            return ctl.run(rest, _who())
        case ["actuate", *rest]:
            from specctl_agent import perform

            return perform.main(rest)
        case ["check"]:
            return check()
        case ["--version"]:
            sys.stdout.write(f"specctl-agent {version()}\n")
            return 0
        case ["--help" | "-h"]:
            sys.stdout.write(USAGE)
            return 0
        case _:
            sys.stderr.write(USAGE)
            return EXIT_USAGE


def run(config: Path | None) -> int:
    """Be the agent until SIGTERM; returns the exit code."""
    from specctl.errors import SpecctlError
    from specctl_agent import daemon
    from specctl_agent.storing import AlreadyRunningError

    stopping = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        del number
        stopping.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    threading.excepthook = _thread_died
    try:
        daemon.run(config, version(), stopping, to_journal)
    except AlreadyRunningError as error:
        to_journal(ERROR, "refused", reason=str(error))
        return EXIT_RUNNING
    except SpecctlError as error:
        to_journal(ERROR, "refused", reason=error.message, hint=error.hint)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # the last boundary: one line in the log, and systemd starts it anew
        _say_crash("loop", type(error), error, error.__traceback__)
        return EXIT_CRASH
    to_journal(INFO, "stopped")
    return 0


def check() -> int:
    """Import every module of the agent, so that one that cannot run here is found before it takes another's place."""
    import importlib
    import pkgutil

    import specctl_agent

    for found in pkgutil.walk_packages(specctl_agent.__path__, "specctl_agent."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    sys.stdout.write(f"specctl-agent {version()}\n")
    return 0


def version() -> str:
    """Return the version that `specctl agent install` wrote down, or that of the checkout."""
    import json

    note = Path(sys.argv[0]).resolve().with_name("version.json")
    try:
        return str(json.loads(note.read_bytes())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        from importlib import metadata

        try:
            return metadata.version("specctl-fleet")
        except metadata.PackageNotFoundError:
            return "unknown"


def _who() -> str:
    import getpass
    import socket

    return f"{os.environ.get('SUDO_USER') or getpass.getuser()}@{socket.gethostname()}"


def _thread_died(died: threading.ExceptHookArgs) -> None:
    """End the whole agent when one of its threads does: half of it must not look alive. systemd starts it anew."""
    name = died.thread.name if died.thread is not None else "?"
    _say_crash(name, died.exc_type, died.exc_value, died.exc_traceback)
    os._exit(EXIT_CRASH)


def _say_crash(
    thread: str, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    import traceback

    steps = [f"{Path(step.filename).name}:{step.lineno}" for step in traceback.extract_tb(trace)[-4:]]
    to_journal(ERROR, "crash", thread=thread, error=f"{kind.__name__}: {error}", at=" ".join(steps))
