"""What `specctl status --watch` shows where there is no terminal to draw on: the table once, then the rows that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from specctl.control.sight import Sight, Told
from specctl.control.sight_words import mode_text
from specctl.ui import status as views

Key = tuple[str, str]


def whole(sights: Sequence[Sight], width: int) -> Iterator[RenderableType]:
    """Yield the table and what stands below it."""
    yield views.table(sights, width)
    yield from views.below(sights, width)


class Changes:
    """Remembers what was shown last, and shows what is new: nothing where nothing changed."""

    def __init__(self) -> None:
        self._shown: dict[Key, object] = {}
        self._heads: Sequence[object] = ()

    def changed(self, sights: Sequence[Sight]) -> tuple[Sight, ...]:
        """Return the sights that say something else than when they were last returned; an age that grows is nothing new."""
        found = tuple(sight for sight in sights if self._shown.get(_key(sight)) != _said(sight))
        self._shown.update({_key(sight): _said(sight) for sight in found})
        return found

    def lines(self, sights: Sequence[Sight], width: int, at: str) -> Iterator[RenderableType]:
        """Yield what is to be printed at a moment, `at` in words: the whole table first, later the rows that changed.

        The heading comes again where the columns are others than those above.
        """
        first = not self._shown
        news = self.changed(sights)
        if not news:
            return
        view = views.table(news, width, of=sights)
        heads = [column.header for column in view.columns]
        view.show_header, self._heads = heads != self._heads, heads
        if not first:
            yield Text(at, style="quiet")
        yield view
        yield from views.below(sights, width) if first else views.note_lines(news, width)


def _key(sight: Sight) -> Key:
    return sight.host, sight.server


def _said(sight: Sight) -> object:
    """Return what a person would call news: states, modes, whole figures, decisions without their ages, notes without times."""
    agent, load = sight.agent, sight.loading
    decided = None if agent is None or agent.decision is None else (agent.decision.text, agent.decision.rule)
    return (
        sight.state,
        sight.reason,
        sight.proven,
        None if sight.mode is None else mode_text(sight.mode),
        *(_rounded(told, digits) for told, digits in _figures(sight)),
        None if load is None else (load.phase, load.fatal),
        decided,
        None if agent is None else (agent.acting, agent.pinned, agent.held, agent.frozen),
        None if sight.last is None else (sight.last.act, sight.last.at, sight.last.result),
        None if sight.guard is None else sight.guard.phase,
        None if sight.lease is None else sight.lease.owner,
        sight.drift,
        tuple((gpu.index, gpu.slowing) for gpu in sight.slowed),
    )


def _figures(sight: Sight) -> tuple[tuple[Told[int] | Told[float] | None, int], ...]:
    return (
        (sight.running, 0),
        (sight.waiting, 0),
        (sight.tokens_per_s, -1),
        (sight.accept_length, 1),
        (sight.kv_ratio, 1),
    )


def _rounded(told: Told[int] | Told[float] | None, digits: int) -> tuple[float, bool] | None:
    return None if told is None else (round(told.value, digits), told.stale)
