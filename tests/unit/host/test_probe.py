"""The capability probe: the engine's own interpreter, without GPUs, bounded, answered once a digest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import RemoteCommandError, SpecctlError, UnsupportedError

COUNTS = "import sys; open(sys.argv[1], 'a').write('x'); print(len(open(sys.argv[1]).read()))"


def _args(folder: Path, code: str, **more: object) -> dict[str, object]:
    return {
        "python": sys.executable,
        "code": code,
        "digest": "abcd",
        "cache_dir": str(folder / "probes"),
        "timeout_s": 10,
        **more,
    }


def test_an_answer_is_remembered_by_digest_and_arguments(session: HostSession, tmp_path: Path) -> None:
    """The same question is asked once; another digest or other arguments are another question."""
    first = session.call("probe", _args(tmp_path, COUNTS, args=[f"{tmp_path}/a"]))
    again = session.call("probe", _args(tmp_path, COUNTS, args=[f"{tmp_path}/a"]))
    other = session.call("probe", _args(tmp_path, COUNTS, args=[f"{tmp_path}/a"], digest="efgh"))
    third = session.call("probe", _args(tmp_path, COUNTS, args=[f"{tmp_path}/b"]))
    assert [answer["stdout"] for answer in (first, again, other, third)] == ["1\n", "1\n", "2\n", "1\n"]
    assert [answer["cached"] for answer in (first, again, other, third)] == [False, True, False, False]


def test_a_failure_is_not_remembered(session: HostSession, tmp_path: Path) -> None:
    """A probe that fails is told with its status and words, and asked again the next time."""
    failed = session.call("probe", _args(tmp_path, "import sys; sys.exit('no module')"))
    assert (failed["status"], failed["stderr"], failed["cached"]) == (1, "no module\n", False)
    assert session.call("probe", _args(tmp_path, "print('now')"))["stdout"] == "now\n"


def test_no_gpu_is_seen_and_others_come_first(session: HostSession, tmp_path: Path) -> None:
    """The probe sees no GPU, whatever the server's environment says, and runs at the lowest priority."""
    code = "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']), os.environ['X'], os.nice(0))"
    found = session.call("probe", _args(tmp_path, code, env={"CUDA_VISIBLE_DEVICES": "0,1", "X": "y"}))
    assert found["stdout"] == "'' y 19\n"


def test_it_ends_at_its_limit(session: HostSession, tmp_path: Path) -> None:
    """A probe that hangs is killed with its children and is an error."""
    with pytest.raises(RemoteCommandError, match="did not answer the probe within 0 s"):
        session.call("probe", _args(tmp_path, "import time; time.sleep(600)", timeout_s=0.4), timeout_s=10)


def test_long_output_is_cut(session: HostSession, tmp_path: Path) -> None:
    """A probe that prints without end neither fills memory nor hangs."""
    found = session.call("probe", _args(tmp_path, "print('x' * 3_000_000)"), timeout_s=20)
    assert len(str(found["stdout"])) == 256 << 10


def test_an_interpreter_that_is_not_there(session: HostSession, tmp_path: Path) -> None:
    """A wrong path in the inventory is told as such."""
    with pytest.raises(UnsupportedError, match="there is no interpreter /no/python"):
        session.call("probe", _args(tmp_path, "", python="/no/python") | {"code": "pass"})


def test_a_digest_cannot_leave_the_folder(session: HostSession, tmp_path: Path) -> None:
    """A digest that is none is refused."""
    with pytest.raises(SpecctlError, match="is no digest"):
        session.call("probe", _args(tmp_path, "pass", digest="../../x"))


def test_a_plugin_goes_with_the_question(session: HostSession, tmp_path: Path) -> None:
    """What the release would hold can be imported by the probe, before anything else, and is gone afterwards."""
    plugin = [
        {"name": "plugins/one/__init__.py", "content": "WORD = 'mine'"},
        {"name": "plugins/one/b.py", "content": ""},
    ]
    code = "import one, one.b, os; print(one.WORD, one.__file__, os.environ['PYTHONPATH'].split(':')[1:])"
    found = session.call("probe", _args(tmp_path, code, plugin=plugin, env={"PYTHONPATH": str(tmp_path)}))
    word, place, rest = str(found["stdout"]).split(" ", 2)
    assert (word, rest.strip()) == ("mine", f"['{tmp_path}']")
    assert not Path(place).parents[2].exists()


def test_a_plugin_cannot_leave_its_folder(session: HostSession, tmp_path: Path) -> None:
    """A name that leads out is refused, and nothing is run."""
    with pytest.raises(SpecctlError):
        session.call("probe", _args(tmp_path, "print(1)", plugin=[{"name": "../evil.py", "content": ""}]))
    assert not (tmp_path / "probes").exists()
