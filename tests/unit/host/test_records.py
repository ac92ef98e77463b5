"""Records on the host: appended whole, read newest last, unharmed by torn lines and rotation."""

from __future__ import annotations

from pathlib import Path

from specctl.adapters.session import HostSession
from specctl.host import records
from specctl.host.wire import Args, Call


def _append(folder: Path, **record: object) -> None:
    records.append(Call(1, Args({"dir": str(folder), "record": record}), print))


def test_appended_records_are_read_in_order(session: HostSession, folder: Path) -> None:
    """The latest come, oldest of them first."""
    for number in range(5):
        session.call("record.append", {"dir": str(folder), "record": {"number": number}})
    found = session.call("record.read", {"dir": str(folder), "limit": 3})
    assert found == {"records": [{"number": 2}, {"number": 3}, {"number": 4}]}


def test_a_torn_line_costs_only_itself(folder: Path) -> None:
    """What a crash left half written is passed over and does not spoil the next record."""
    _append(folder, number=1)
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"number": 2, "te')
    _append(folder, number=3)
    assert records.latest(str(folder), 10) == [{"number": 1}, {"number": 3}]


def test_rotation_loses_nothing_recent(folder: Path) -> None:
    """Past its size the file is put aside once; the latest records are read across both."""
    text = "x" * 200_000
    for number in range(30):
        _append(folder, number=number, text=text)
    sizes = [path.stat().st_size for path in folder.glob("records.jsonl*")]
    assert len(sizes) == 2
    assert max(sizes) <= records.ROTATE_BYTES
    assert [row["number"] for row in records.latest(str(folder), 12)] == list(range(18, 30))


def test_live_changes_hide_no_deploy(session: HostSession, folder: Path) -> None:
    """However many an agent made since, the deploys before them are there, and the newest of them are told."""
    _append(folder, number=1, live=False)
    _append(folder, number=2)
    for number in range(3, 40):
        _append(folder, number=number, live=True)
    assert [row["number"] for row in records.latest(str(folder), 20, 5)] == [1, 2, *range(35, 40)]
    assert [row["number"] for row in records.latest(str(folder), 1, 2)] == [2, 38, 39]
    found = session.call("record.read", {"dir": str(folder), "limit": 20, "lives": 0})
    assert found == {"records": [{"number": 1, "live": False}, {"number": 2}]}


def test_no_records_is_an_empty_list(folder: Path) -> None:
    """A server without a history has none."""
    assert records.latest(str(folder), 10) == []
