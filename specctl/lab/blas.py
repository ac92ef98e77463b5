"""One BLAS thread: small matrices lose by more, and a shared machine loses most. Called before numpy is first imported."""

from __future__ import annotations

import os

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def pin_one_thread() -> None:
    """Hold BLAS to one thread, by environment for a library yet to load and by threadpoolctl for one already loaded."""
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    import threadpoolctl  # Imported here: its cost belongs to programs that compute.

    threadpoolctl.threadpool_limits(limits=1)
