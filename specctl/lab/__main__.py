"""`python -m specctl.lab serve …`: the lab's command line."""

from __future__ import annotations

import sys
import traceback

USAGE = "usage: python -m specctl.lab serve [options]   (options are SGLang's; see serve --help and docs/lab-server.md)"
EXIT_USAGE = 2
EXIT_INTERRUPTED = 1
"""What SGLang exits with after SIGINT, where Python itself would die of the signal."""


def main(argv: list[str]) -> None:
    """Run a subcommand; exit 2 for an unknown one."""
    if argv[:1] != ["serve"]:
        sys.stderr.write(USAGE + "\n")
        raise SystemExit(EXIT_USAGE)
    from specctl.lab.serve import main as server

    try:
        server.run(argv[1:])
    except KeyboardInterrupt:
        traceback.print_exc()
        raise SystemExit(EXIT_INTERRUPTED) from None


if __name__ == "__main__":
    main(sys.argv[1:])
