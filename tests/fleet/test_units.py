"""Units as real systemd reads them: arguments and variables arrive as specified, and `systemd-analyze` has no complaint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specctl.adapters.templates import Templates
from specctl.ops.render import unit_text
from specctl.rollout import launch as launches
from specctl.rollout.launch import Launch
from tests.examples import examples
from tests.fakes import HOST, SERVER
from tests.fleet import echo_unit
from tests.fleet import fleet as fleets

ROOT = Path(__file__).parents[2]
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"), max_size=30)
HARD = st.sampled_from(
    [
        "",
        " ",
        ";",
        "%h",
        "%%",
        "$HOME",
        "${A}",
        "$$",
        "'",
        '"',
        "\\",
        "\\x41",
        "a\\",
        "-",
        "@",
        "é",
        "\t",
        "#",
        "a;b",
        "{}",
        "*",
        "~",
        "|",
    ]
)
WORD = st.one_of(TEXT, HARD)
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True).filter(
    lambda name: name not in echo_unit.OWN_VARIABLES
)
LAUNCH = st.tuples(st.lists(WORD, max_size=8), st.dictionaries(NAME, WORD, max_size=6))
UNITS_AT_ONCE = 25


def unit_of(words: list[str], env: dict[str, str]) -> str:
    """Render a unit whose engine is the program that prints what it got; it may not restart after its success."""
    launch = Launch(host="gpu1", server="chat", algo="none", argv=(echo_unit.PROGRAM, *words), env=env, knobs={})
    server = replace(SERVER, unit=replace(SERVER.unit, restart=False))
    return unit_text(Templates(working_dir=ROOT), HOST, server, launch, "1")


@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink 25 units would take minutes of real systemd
)
@given(st.lists(LAUNCH, min_size=UNITS_AT_ONCE, max_size=UNITS_AT_ONCE))
def test_process_gets_what_was_specified(fleet: fleets.Fleet, drawn: list[tuple[list[str], dict[str, str]]]) -> None:
    """A process that a rendered unit starts has exactly the argv and environment of the launch, whatever is in them."""
    units = [unit_of(words, env) for words, env in drawn]
    seen = echo_unit.observe_all(fleet.hosts["gpu1"], units)
    for (words, env), got in zip(drawn, seen, strict=True):
        assert list(got.argv[1:]) == words
        assert {name: value for name, value in got.environ.items() if name in env} == env


def test_rendered_units_are_clean(fleet: fleets.Fleet) -> None:
    """`systemd-analyze verify` says nothing about a unit with every kind of setting."""
    server = replace(SERVER, unit=replace(SERVER.unit, user="ops", memory_max="8G", extra=(("Nice", "5"),)))
    host = fleet.hosts["gpu1"]
    for algo in ("none", "dflash", "ddtree"):
        text = unit_text(Templates(working_dir=ROOT), HOST, server, launches.build(HOST, server, algo), "1")
        text = text.replace(SERVER.python, "/usr/bin/python3")
        host.put("/run/specctl-verify.service", text.encode())
        done = host.ssh(["systemd-analyze", "verify", "/run/specctl-verify.service"])
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
