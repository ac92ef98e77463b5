"""`specctl ab` on real hosts: a whole experiment, one that is interrupted, one that is killed; what ran before runs again."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping, Sequence

import pytest

from tests.fleet import places
from tests.fleet.places import ACT_S, Place, Told, at_rest, require_one, together
from tests.fleet.site import Site

BEFORE = ("1", "dflash")
CHAIN, TREE = "dflash", "ddtree:tree_budget=7,topk_cap=1"
# Four starts, a few requests each: what it finds is no measurement, that it finds it is the test.
SHORT = ("--tokens", "32", "--rounds", "2", "--runs", "1", "--cycles", "1", "--concurrency", "1,2", "--yes")
WHOLE_S = 4 * ACT_S
SERVER_DIR = "/var/lib/specctl/lab"


def chains(site: Site, hosts: Sequence[str]) -> list[Place]:
    """Deploy a server with the chain on these hosts: release 1."""
    places.describe(site, limits={"confirm": "30s"})
    chosen = (word for host in hosts for word in ("--host", host))
    done = site.run("deploy", *chosen, "--algo", "dflash", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    return [Place(site, host) for host in hosts]


@pytest.fixture
def place(site: Site) -> Place:
    """Give a server that runs release 1 with the chain."""
    (only,) = chains(site, site.hosts[:1])
    return only


def begin(place: Place, *more: str) -> Told:
    """Start an experiment on a place."""
    return place.begin("ab", "--a", CHAIN, "--b", TREE, *SHORT, "--report", f"{place.host}.md", *more)


def name_of(told: Told) -> str:
    """Return the id of an experiment from what it printed."""
    told.when(lambda: any("experiment ab-" in line for line in tuple(told.printed)), "it tells its name")
    found = re.search(r"ab-\d{8}-\d{6}-[0-9a-f]{4}", "".join(told.printed))
    assert found is not None
    return found[0]


def kept(place: Place, name: str) -> Mapping[str, object]:
    """Return the experiment as the operator's machine keeps it."""
    path = next(place.site.fleet.home.rglob(f"{name}.json"))
    found = json.loads(path.read_text())["trial"]
    assert isinstance(found, dict)
    return found


def segments(place: Place, name: str) -> Sequence[object]:
    """Return the segments that are kept."""
    rows = kept(place, name)["segments"]
    assert isinstance(rows, list)
    return rows


def test_a_whole_experiment(place: Place) -> None:
    """A chain against itself spelled as a tree: equal answers, the same accept length, a report, and release 1 runs again."""
    done = place.run("ab", "--a", CHAIN, "--b", TREE, *SHORT, "--json", "--report", "whole.md", timeout_s=WHOLE_S)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["ab"]

    assert told["named"] == "speculative algorithm (dflash → ddtree tree_budget 7 topk_cap 1)"
    assert told["beside"] == []
    assert (told["order"], told["segments"], told["before"]) == (["A", "B", "B", "A"], 4, list(BEFORE))
    assert told["lossless"] is True
    lengths = [each for each in told["compared"] if each["quantity"] == "accept_length"]
    assert [each["concurrency"] for each in lengths] == [1, 2]
    assert all(abs(each["ratio"]) < 1e-9 for each in lengths)
    standing = {each["name"]: each["standing"] for each in told["confounders"]}
    assert {standing[name] for name in ("lengths", "restarts", "other requests", "prompts and context")} == {
        "ruled out"
    }
    text = (place.site.fleet.home / "whole.md").read_text()
    assert "# dflash:block_size=8 against ddtree:block_size=8,topk_cap=1,tree_budget=7" in text
    assert (place.site.fleet.home / "whole-segments.svg").exists()

    require_one(place, BEFORE)
    acts = [(row["act"], row["result"], row["serving"]) for row in place.records()[1:]]
    assert [serving for _, _, serving in acts] == [["2", algo] for algo in ("dflash", "ddtree", "ddtree", "dflash")] + [
        list(BEFORE)
    ]
    assert {str(row["reason"]) for row in place.records()[1:]} == {f"experiment {told['id']}"}


def test_two_things_at_once_are_refused(place: Place) -> None:
    """Arms that also differ in a flag are refused with where it comes from, and no server is touched; so is a bad arm."""
    before = place.processes()
    refused = place.run("ab", "--a", CHAIN, "--b", TREE, *SHORT, "--b-option", "page-size=8")
    assert refused.returncode == 2, refused.stderr
    assert "in 1 more thing: --page-size: absent → 8 (command line)" in refused.stderr
    assert "--confounded measures them together" in refused.stderr
    for words in (("--a", CHAIN, "--b", "ddtree:tree_budget=x"), ("--a", CHAIN, "--b", "eagle"), ("--a", CHAIN)):
        assert place.run("ab", *words, *SHORT).returncode == 2
    shown = place.run("ab", "--a", CHAIN, "--b", TREE, *SHORT, "--b-option", "page-size=8", "--confounded", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "--page-size: absent → 8 (command line)" in shown.stdout
    assert place.processes() == before
    assert len(place.records()) == 1


def test_interrupted_and_killed(site: Site) -> None:
    """Ctrl-C brings back what ran before, kill -9 leaves a lease that runs out; both go on where they stopped and end whole."""
    gently, hard = chains(site, site.hosts[:2])

    def broken(place: Place) -> None:
        told = begin(place)
        name = name_of(told)
        told.says("B 2/4")
        told.when(lambda: len(segments(place, name)) == 1, "the first segment is kept")
        told.says("B 2/4      greedy answers")
        told.process.send_signal(signal.SIGINT if place is gently else signal.SIGKILL)
        code = told.ends()
        if place is gently:
            assert code == 130, told.errors
            assert (
                f"1 of 4 segments are kept; release 1, dflash, runs again; specctl ab --resume {name} goes on"
                in told.errors
            )
            require_one(place, BEFORE)
        else:
            at_rest(place, 60.0)
            assert place.current() == ("2", "ddtree")
        assert len(segments(place, name)) == 1
        resumed = place.site.run("ab", "--resume", name, "--yes", "--report", f"{place.host}.md", timeout_s=WHOLE_S)
        assert resumed.returncode == 0, resumed.stderr
        assert "1 of 4 segments, kept" in resumed.stdout
        assert (kept(place, name)["resumed"], len(segments(place, name))) == (1, 4)
        require_one(place, BEFORE)
        assert "It was interrupted and resumed 1 time." in (place.site.fleet.home / f"{place.host}.md").read_text()

    together(broken, [gently, hard])


def test_what_changed_in_between_is_refused(place: Place) -> None:
    """An experiment does not go on over another launch: the flag that changed is named, and nothing is touched."""
    told = begin(place)
    name = name_of(told)
    told.says("A 1/4      greedy answers")
    told.process.send_signal(signal.SIGINT)
    assert told.ends() == 130, told.errors
    places.describe(place.site, limits={"confirm": "30s"}, options={"context-length": 512})
    before = place.processes()
    refused = place.site.run("ab", "--resume", name, "--yes")
    assert refused.returncode == 2, refused.stderr
    assert "arm A: --context-length was absent and is 512" in refused.stderr
    assert place.processes() == before
