"""The loop of a sweep: ask what is next, measure it, until nothing is open or the time is up; the caller measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from specctl.measure.sweep import Place, Question, Segment
from specctl.measure.sweep_next import cost_s, next_block

Measure = Callable[[Place, int], Segment]


def sweep(
    question: Question, before: Sequence[Segment], measure: Measure, left_s: Callable[[], float]
) -> Iterator[Segment]:
    """Yield each segment as it is measured, going on from those of `before`.

    A segment begins only while it is thought to fit into what `left_s` says is left: only the last one's delay exceeds the time.
    """
    known = list(before)
    while (block := next_block(question, known, left_s())) is not None:
        for place in block.places:
            if known and one_s(question, known, place) > left_s():
                return
            segment = measure(place, block.number)
            known.append(segment)
            yield segment


def one_s(question: Question, known: Sequence[Segment], place: Place) -> float:
    """Return the seconds that one segment is thought to take, its switch included where the mode before was another."""
    if question.by_mode:
        changes = not known or known[-1].place.mode != place.mode
        return question.segment_s + (question.switch_s if changes else 0.0)
    return cost_s(question, known, place.concurrency, (place.mode,))
