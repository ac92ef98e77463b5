"""How numpy runs here: one BLAS thread and small pages. Called before numpy is first imported.

Small matrices lose by more threads, and a shared machine loses most. The caches are reserved whole and touched bit by bit;
numpy would ask for huge pages and make nearly all of them resident at once.
"""

from __future__ import annotations

import os

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
HUGE_PAGES_VARIABLE = "NUMPY_MADVISE_HUGEPAGE"


def pin_one_thread() -> None:
    """Hold BLAS to one thread, by environment for a library yet to load and by threadpoolctl for one already loaded."""
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    os.environ[HUGE_PAGES_VARIABLE] = "0"
    import threadpoolctl  # Imported here: its cost belongs to programs that compute.

    threadpoolctl.threadpool_limits(limits=1)
