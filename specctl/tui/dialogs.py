"""What is asked before an act: which one, with what, and whether to go ahead with its plan; then how it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from specctl.rollout.gate_types import GateState
from specctl.tui import words
from specctl.tui.keybar import Hint, KeyBar
from specctl.tui.layout import labelled, text
from specctl.tui.lines import Page
from specctl.tui.wishes import Deed, Errand, Phase, Wish
from specctl.ui import gate

BOX = """
    {name} {{ align: center middle; }}
    {name} > Vertical {{ width: 100; max-width: 100%; height: auto; max-height: 100%; border: round $primary;
                        background: $panel; padding: 0 1; }}
    {name} Page {{ height: auto; max-height: 24; background: $panel; }}
    {name} KeyBar {{ dock: none; background: $panel; }}
    {name} Input, {name} Input:focus {{ border: none; height: 1; padding: 0 1; background: $surface; }}
    {name} OptionList, {name} OptionList:focus {{ border: none; background: $panel; height: auto; max-height: 16;
                        padding: 0; }}
    {name} Label {{ width: 100%; }}
"""


class Menu(ModalScreen[str | None]):
    """Asks for one of several things."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,h,left", "nothing", "nothing", show=False),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
    ]
    DEFAULT_CSS = BOX.format(name="Menu")

    def __init__(self, title: str, choices: Mapping[str, str]) -> None:
        super().__init__()
        self._title = title
        self._choices = dict(choices)

    def compose(self) -> ComposeResult:
        """Lay the choices out."""
        widest = max(map(len, self._choices), default=0)
        with Vertical() as box:
            box.border_title = Text(self._title).markup
            box.border_subtitle = "Enter chooses, Esc leaves; nothing is done yet"
            yield OptionList(
                *(Option(Text(f" {name:<{widest}}  {means}"), id=name) for name, means in self._choices.items())
            )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the choice."""
        self.dismiss(event.option.id)

    def action_move(self, by: int) -> None:
        """Move as j and k do."""
        choices = self.query_one(OptionList)
        if by > 0:
            choices.action_cursor_down()
        else:
            choices.action_cursor_up()

    def action_nothing(self) -> None:
        """Leave."""
        self.dismiss(None)


class WishForm(ModalScreen[Wish | None]):
    """Asks what an act needs beside the server: a mode, a time, a reason; `algos`: those that there are."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "nothing", "nothing", show=False)]
    DEFAULT_CSS = BOX.format(name="WishForm")

    def __init__(self, deed: Deed, host: str, server: str, algos: Sequence[str]) -> None:
        super().__init__()
        self._deed, self._host, self._server = deed, host, server
        self._algos = tuple(algos)
        self._fields = fields_of(deed)

    def compose(self) -> ComposeResult:
        """Lay the fields out."""
        with Vertical() as box:
            box.border_title = Text(f"{self._deed.value} {self._server} on {self._host}").markup
            box.border_subtitle = "Enter: next, then the plan; Esc leaves; nothing is done yet"
            offered = ", ".join(self._algos) or "none known"
            for name, label, example in self._fields:
                yield Label(Text(f"{label}{f' ({offered})' if name == 'mode' else ''}"))
                yield Input(placeholder=example, id=f"field-{name}")
            yield Label("", id="fault")

    def on_mount(self) -> None:
        """Begin with the first field."""
        self.query(Input).first().focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field, or show the plan."""
        fields = list(self.query(Input))
        place = fields.index(event.input)
        if not event.input.value.strip():
            self.query_one("#fault", Label).update(Text(f"{self._fields[place][1]} is needed"))
        elif place + 1 < len(fields):
            fields[place + 1].focus()
        else:
            values = {name: self.query_one(f"#field-{name}", Input).value.strip() for name, *_ in self._fields}
            self.dismiss(Wish(deed=self._deed, host=self._host, server=self._server, **values))

    def action_nothing(self) -> None:
        """Leave."""
        self.dismiss(None)


def fields_of(deed: Deed) -> tuple[tuple[str, str, str], ...]:
    """Return what an act must be told: the name of the wish's field, its label, an example."""
    reason = ("reason", "why, for whoever meets it", "firmware of the switch")
    match deed:
        case Deed.PIN:
            return (
                ("mode", "algo, with knobs where wanted", "ddtree:tree_budget=16"),
                ("duration", "for how long", "6h"),
                reason,
            )
        case Deed.HOLD:
            return (reason,)
        case _:
            return ()


ASKING: Sequence[Hint] = (("y", "go ahead", "screen.yes"), ("Esc", "leave it as it is", "screen.no"))
WAITING: Sequence[Hint] = (("Esc", "leave", "screen.no"),)
RUNNING: Sequence[Hint] = (
    ("x", "interrupt: take it back", "screen.interrupt"),
    ("Esc", "hide, it goes on", "screen.no"),
)
OVER: Sequence[Hint] = (("Esc", "close", "screen.no"),)


class ErrandView(ModalScreen[None]):
    """Shows an act: its plan and the question, then how it goes, then how it ended."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "go ahead", show=False),
        Binding("n,escape,q", "no", "leave", show=False),
        Binding("x", "interrupt", "interrupt", show=False),
        Binding("enter", "close_if_over", "close", show=False),
    ]
    DEFAULT_CSS = BOX.format(name="ErrandView")

    def __init__(self, errand: Errand) -> None:
        super().__init__()
        self.errand = errand
        self._page = Page()
        self._keys = KeyBar(WAITING)
        # A plan may only be said yes to once it was drawn.
        self.asked = False

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        with Vertical() as box:
            box.border_title = Text(str(self.errand.wish)).markup
            yield self._page
            yield self._keys

    def on_mount(self) -> None:
        """Begin to show."""
        self._page.focus()
        self.call_after_refresh(self.redraw)

    def on_resize(self) -> None:
        """Fit what is drawn to the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Show the errand as it is now."""
        errand, width = self.errand, max(self._page.size.width - 1, 20)
        phase = errand.phase
        self.asked = self.asked or phase is Phase.ASKING
        errand.read = errand.read or phase.over
        lines = [Text.assemble(line) for line in errand.plan] or [text("planning …", "quiet")]
        lines += [text(), *self._progress(width)]
        self._page.show(lines)
        if phase not in (Phase.PLANNING, Phase.ASKING):
            self._page.scroll_end(animate=False)
        self._keys.offer({Phase.PLANNING: WAITING, Phase.ASKING: ASKING, Phase.RUNNING: RUNNING}.get(phase, OVER))

    def _progress(self, width: int) -> list[Text]:
        errand, host = self.errand, self.errand.wish.host
        lines = [gate.final_line(host, name, said, follows=True, width=width) for name, said in errand.said]
        now = errand.now
        if isinstance(now, GateState):
            lines.append(gate.load_line(host, now, width=width))
        elif now is not None:
            lines.append(gate.step_line(host, *now, width=width))
        if errand.phase is Phase.ASKING:
            lines.append(text("Go ahead?  y: do it   Esc: leave everything as it is", "warn"))
        if errand.error is not None:
            lines += labelled("error", words.one_line(errand.error), width, "bad")
            if errand.error.hint:
                lines += labelled("try", words.one_line(errand.error.hint), width)
        elif errand.end:
            style = "good" if errand.phase is Phase.DONE else "quiet"
            lines += labelled("end", words.one_line(errand.end), width, style)
        return lines

    def action_yes(self) -> None:
        """Say yes to the plan that is shown."""
        if self.asked and self.errand.phase is Phase.ASKING:
            self.errand.answer(yes=True)

    def action_no(self) -> None:
        """Say no, or close what runs or is over."""
        self.errand.answer(yes=False)
        self.dismiss(None)

    def action_close_if_over(self) -> None:
        """Close what is over."""
        if self.errand.phase.over:
            self.dismiss(None)

    def action_interrupt(self) -> None:
        """Ask the act to take itself back."""
        self.errand.interrupt()
