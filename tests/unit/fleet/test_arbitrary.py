"""Nothing that a file can hold makes the inventory raise anything but InventoryError."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specctl.adapters.inventory_files import BuiltInProfiles, read_bytes
from specctl.errors import InventoryError
from specctl.fleet import wire
from specctl.fleet.resolve import Resolved, resolve
from tests.examples import HOSTILE

pytestmark = pytest.mark.slow  # hundreds of whole inventories

EXAMPLE = (Path(__file__).parents[3] / "inventory" / "example.yaml").read_text(encoding="utf-8")
WORDS = sorted(set(EXAMPLE.replace("{", " ").replace("}", " ").replace(":", " ").replace(",", " ").split()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=8)
KEYS = st.sampled_from(WORDS) | st.text(max_size=6) | st.integers() | st.booleans() | st.none()
TREES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=5),
    max_leaves=25,
)
SECTIONS = st.sampled_from(["hosts", "servers", "models", "hardware", "groups", "defaults", "engine_profiles"])
FILES = st.dictionaries(SECTIONS, st.dictionaries(st.sampled_from(WORDS), TREES, max_size=4) | TREES, max_size=5)


def outcome(*contents: bytes) -> Resolved | InventoryError:
    """Load contents as files; whatever else is raised fails the test."""
    refusal: InventoryError
    try:
        resolved = resolve([read_bytes(f"{n}.yaml", content) for n, content in enumerate(contents)], BuiltInProfiles())
    except InventoryError as error:
        refusal = error
    else:
        assert all(wire.host_values(host)["name"] == host.name for host in resolved.fleet.hosts)
        return resolved
    assert refusal.problems
    assert all(str(problem).isprintable() for problem in refusal.problems)
    return refusal


@settings(max_examples=HOSTILE, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_bytes(content: bytes) -> None:
    """Any bytes are an inventory or a list of problems, each in one line."""
    outcome(content)


@settings(max_examples=HOSTILE, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES)
def test_arbitrary_structures(tree: dict[str, object]) -> None:
    """Any structure under the known sections is an inventory or a list of problems."""
    outcome(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass"))


@settings(max_examples=HOSTILE, deadline=None)
@given(st.data())
def test_mutations_of_the_example(data: st.DataObject) -> None:
    """The example with lines dropped, doubled, swapped and overwritten is an inventory or a list of problems."""
    lines = EXAMPLE.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 2))
        match data.draw(st.integers(0, 4)):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                lines[at], lines[at + 1] = lines[at + 1], lines[at]
            case 3:
                lines[at] = lines[at].replace(data.draw(st.sampled_from(WORDS)), data.draw(st.sampled_from(WORDS)))
            case _:
                head, colon, _ = lines[at].partition(":")
                lines[at] = (
                    f"{head}{colon} {data.draw(st.sampled_from(['', 'null', '-1', '[]', '{}', 'x', '1.5', 'true', '&a', '*a']))}"
                )
    outcome("\n".join(lines).encode())


@settings(max_examples=HOSTILE, deadline=None)
@given(FILES, FILES)
def test_two_arbitrary_files(first: dict[str, object], second: dict[str, object]) -> None:
    """Two files are no more dangerous than one."""
    outcome(*(yaml.safe_dump(tree).encode("utf-8", "surrogatepass") for tree in (first, second)))
