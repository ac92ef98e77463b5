"""`python -m specctl.lab serve …`: the lab's command line."""

from __future__ import annotations

import sys

USAGE = "usage: python -m specctl.lab serve [options]   (options are SGLang's; see serve --help and docs/lab-server.md)"
EXIT_USAGE = 2


def main(argv: list[str]) -> None:
    """Run a subcommand; exit 2 for an unknown one."""
    if argv[:1] != ["serve"]:
        sys.stderr.write(USAGE + "\n")
        raise SystemExit(EXIT_USAGE)
    from specctl.lab.serve import main as server

    server.run(argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
