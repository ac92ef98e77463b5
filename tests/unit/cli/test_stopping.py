"""The first signal asks for the end in words, the second leaves at once, and afterwards all is as before."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from specctl.cli.stopping import EVERY, interruptible


@pytest.mark.parametrize("first", EVERY)
@pytest.mark.parametrize("second", EVERY)
def test_the_first_asks_and_the_second_leaves(
    first: signal.Signals, second: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever of the signals comes first: it sets the event and says what is done; the next one ends the work."""
    before = [signal.getsignal(number) for number in EVERY]
    stop = threading.Event()
    with interruptible(stop, "all is kept", EVERY):
        os.kill(os.getpid(), first)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), second)
    assert capsys.readouterr().err == "\ninterrupted: all is kept\n"
    assert [signal.getsignal(number) for number in EVERY] == before


def test_only_the_signals_named_are_caught() -> None:
    """A command that cannot end in order at a hang-up leaves that signal as it was."""
    before = signal.getsignal(signal.SIGHUP)
    with interruptible(threading.Event(), "all is kept"):
        assert signal.getsignal(signal.SIGHUP) == before
        assert signal.getsignal(signal.SIGINT) != signal.default_int_handler
