"""The fault `wrong-token`: speculation that is not lossless, so that a check of losslessness has something to find."""

from __future__ import annotations

import dataclasses

from specctl.lab.serve.faults import Faults
from specctl.lab.types import Emission, StepReport


class WrongToken:
    """Replaces every Nth token that a verify step committed; without the fault it changes nothing."""

    def __init__(self, faults: Faults) -> None:
        number = faults.number("wrong-token")
        self._every = None if number is None else int(number)
        self._seen = 0

    def bend(self, report: StepReport) -> StepReport:
        """Return the report with its wrong tokens."""
        if self._every is None or not report.verifies:
            return report
        return dataclasses.replace(report, emissions=tuple(self._bent(emission) for emission in report.emissions))

    def _bent(self, emission: Emission) -> Emission:
        """Return one emission with its wrong tokens: the neighbour of the true one."""
        tokens = []
        for token in emission.tokens:
            self._seen += 1
            wrong = self._every is not None and self._seen % self._every == 0
            tokens.append(token ^ 1 if wrong else token)
        return dataclasses.replace(emission, tokens=tuple(tokens))
