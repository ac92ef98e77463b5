"""Write an experiment's report: a Markdown file, and its plots as SVG files beside it."""

from __future__ import annotations

from pathlib import Path

from specctl.adapters import lasting
from specctl.errors import UsageError
from specctl.measure import ab_plot
from specctl.measure.ab_result import Result
from specctl.measure.ab_trial import Trial
from specctl.ui import ab_report

SUFFIX = ".md"


def place_of(given: str | None, trial: Trial) -> Path:
    """Return where the report goes: the file that was named, else one of the experiment's name in the working folder."""
    return Path(f"{trial.id}-{trial.host}{SUFFIX}") if given is None else Path(given)


def refuse_other(path: Path) -> None:
    """Raise UsageError where a report cannot be written there; called before anything is measured for it."""
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path}: a report is a file that ends in {SUFFIX}", hint="--report report.md")
    lasting.refuse_place(path)


def write(result: Result, path: Path) -> tuple[Path, ...]:
    """Write report and plots; returns the files. Raises UsageError where one cannot be written."""
    from specctl.adapters import figures

    drawn = []
    for name, figure in (("segments", ab_plot.segments(result)), ("differences", ab_plot.differences(result))):
        if any(panel.lines for panel in figure.panels):
            place = path.with_name(f"{path.stem}-{name}.svg")
            figures.draw(figure, place)
            drawn.append((figure.title, place))
    text = ab_report.markdown(result, plots=[(title, place.name) for title, place in drawn])
    lasting.write(path, text.encode(), hint="--report another.md")
    return (path, *(place for _, place in drawn))
