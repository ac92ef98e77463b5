"""Let `python -m specctl` be the command."""

from specctl.cli.main import main

main()
