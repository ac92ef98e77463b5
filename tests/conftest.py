"""What holds for all tests: hypothesis's profiles, what `make soak` adds to those that are marked, several workers, and Ctrl-C.

A property says its own count of examples by tests/examples.py; one that says none takes its profile's.
"""

from __future__ import annotations

import signal

import hypothesis
import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # it has no types

from tests.examples import SOAKING, examples
from tests.spreading import Spreading, longest_first

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


def pytest_configure(config: pytest.Config) -> None:
    """Let xdist keep the order of the collection: by itself it begins with the files of most tests, whatever they take."""
    config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Spreading:
    """Spread the tests as they can share what they stand on."""
    return Spreading(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what is long, where several workers share the tests; in a soak every property counts as a long test."""
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        items[:] = [items[at] for at in longest_first([item.nodeid for item in items])]
    if not SOAKING:
        return
    for item in items:
        if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.soak)
