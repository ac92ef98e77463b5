"""What holds for all tests: hypothesis's profiles, which tests `make soak` adds to those that are marked, and Ctrl-C.

A property says its own count of examples by tests/examples.py; one that says none takes its profile's.
"""

from __future__ import annotations

import signal

import hypothesis
import pytest

from tests.examples import SOAKING, examples

DEFAULT_EXAMPLES = 100

# No deadline: a machine that is busy with something else is not a failure. A blob repeats a failure found elsewhere.
hypothesis.settings.register_profile("ci", max_examples=DEFAULT_EXAMPLES, deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "soak",
    max_examples=examples(DEFAULT_EXAMPLES),
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("soak" if SOAKING else "ci")


# A shell makes its background programs deaf to SIGINT, and children inherit that: the servers under test must hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a soak every property counts as a long test: it is tried with many more examples."""
    if not SOAKING:
        return
    for item in items:
        if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.soak)
