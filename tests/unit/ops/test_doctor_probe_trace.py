"""The end of a trace on a host: only lines of the requests that are asked for, and nothing where there is no file."""

from __future__ import annotations

from pathlib import Path

from specctl.adapters.local import LocalTransport
from specctl.ops.doctor_probe_trace import lines_of
from tests import fakes


def line(rid: str) -> str:
    """Return a line of a request."""
    return f'{{"v":1,"kind":"plain","rid":"{rid}","step":1,"prefix":1,"committed":[1]}}'


def test_lines_of_these_requests_alone(tmp_path: Path) -> None:
    """Lines of other requests are left where they are."""
    path = tmp_path / "verify.jsonl"
    path.write_text("\n".join(line(rid) for rid in ("doctor-1", "users", "doctor-2", "doctor-3")) + "\n")
    found = lines_of(LocalTransport(fakes.LOCAL), str(path), ["doctor-1", "doctor-2"])
    assert found == (line("doctor-1").encode(), line("doctor-2").encode())


def test_a_path_like_an_option_is_a_path(tmp_path: Path) -> None:
    """A file that cannot be read, or is none, has no lines; a name with dashes or blanks is a name."""
    transport = LocalTransport(fakes.LOCAL)
    assert lines_of(transport, str(tmp_path / "none"), ["a"]) == ()
    assert lines_of(transport, str(tmp_path), ["a"]) == ()
    odd = tmp_path / "-n odd; name"
    odd.write_text(line("a") + "\n")
    assert lines_of(transport, str(odd), ["a"]) == (line("a").encode(),)
    assert lines_of(transport, str(odd), []) == ()
