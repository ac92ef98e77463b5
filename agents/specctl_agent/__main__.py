"""`python -m specctl_agent`."""

from __future__ import annotations

import sys

from specctl_agent.main import main

if __name__ == "__main__":
    sys.exit(main())
