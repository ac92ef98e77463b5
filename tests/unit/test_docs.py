"""README, CHANGELOG and docs/*.md: links lead somewhere, commands exist as they are spelled, every page can be found."""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
import typer.core
import typer.main

from specctl.cli import main as command_line

ROOT = Path(__file__).parents[2]
START = ROOT / "README.md"
DOCS = tuple(sorted((ROOT / "docs").glob("*.md")))
PAGES = (START, ROOT / "CHANGELOG.md", *DOCS)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE_LINE = re.compile(r"^(?: {4})?(?:\$ )?((?:[A-Z_]+=\S+ )*specctl .*)$")
SPAN = re.compile(r"`(specctl [^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = ("https://", "http://", "mailto:")
# Making the whole tree of commands takes as long as reading a hundred command lines.
whole_command = functools.cache(typer.main.get_command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A command that a page shows; `whole`: it stands as a line of its own and could be run as it is."""

    page: str
    text: str
    whole: bool

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def prose(page: Path) -> str:
    """Return a page's text without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """Return the anchor that a heading gets."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return kept.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page."""
    return {slug(heading) for heading in re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE)}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield a page's relative links: the file that is meant, and the anchor in it, empty without one."""
    for target in LINK.findall(prose(page)):
        if target.startswith(ELSEWHERE):
            continue
        path, _, anchor = target.partition("#")
        yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file that is there, and a heading that it has."""
    broken = [
        f"{path.name}#{anchor}"
        for path, anchor in links(page)
        if not path.exists() or (anchor and anchor not in anchors(path))
    ]
    assert broken == []


def test_every_page_can_be_found() -> None:
    """Whoever begins at the README reaches each page of docs/."""
    seen: set[Path] = set()
    todo = [START.resolve()]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        todo.extend(path.resolve() for path, _ in links(page))
    assert [page.name for page in DOCS if page.resolve() not in seen] == []


def mentions(page: Path) -> Iterator[Mention]:
    """Yield the commands of code blocks, fenced or indented, and of code spans."""
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(FENCE.findall(text))
    indented = "\n".join(line for line in prose(page).splitlines() if line.startswith("    "))
    for line in (*blocks.splitlines(), *indented.splitlines()):
        if found := CODE_LINE.match(line):
            yield Mention(page=page.name, text=found[1], whole=True)
    for span in SPAN.findall(prose(page)):
        yield Mention(page=page.name, text=span, whole=False)


def spelled(text: str) -> Iterator[list[str]]:
    """Yield the words after `specctl`, comments and redirections cut off; `a|b` stands for several commands."""
    words = shlex.split(text, comments=True)
    words = words[words.index("specctl") + 1 :]
    words = list(itertools.takewhile(lambda word: word != ">", words))
    yield from (list(choice) for choice in itertools.product(*(word.split("|") for word in words)))


def parse(words: Sequence[str], *, whole: bool) -> None:
    """Read a command line as specctl would, without running it; what a mere mention leaves out is forgiven."""
    command, rest = whole_command(command_line.app), list(words)
    while isinstance(command, typer.core.TyperGroup) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            raise typer.BadParameter(f"there is no command {name}")
        command = command.commands[name]
    try:
        command.make_context("specctl", rest)
    except typer.Exit:
        return  # --help and --version leave at once
    except typer.BadParameter as error:
        if whole or type(error).__name__ != "MissingParameter":
            raise


MENTIONS = tuple(mention for page in PAGES for mention in mentions(page))


@pytest.fixture(scope="module", autouse=True)
def _mounted() -> None:
    command_line.mount()


@pytest.mark.parametrize("mention", MENTIONS, ids=str)
def test_commands_exist_as_they_are_spelled(mention: Mention) -> None:
    """Every command that a page shows has that name and takes those options."""
    for words in spelled(mention.text):
        if words != ["…"]:
            parse(words, whole=mention.whole)


@pytest.mark.parametrize("words", [["deploy", "--bogus"], ["nope"], ["inventory", "nope"], ["switch", "--host", "a"]])
def test_a_command_that_does_not_exist_is_found_out(words: list[str]) -> None:
    """The check above would fail for an unknown option or command, and for a whole command that lacks something."""
    with pytest.raises(typer.TyperException):
        parse(words, whole=True)


def test_the_pages_show_commands() -> None:
    """There is something to check: commands in blocks and in spans."""
    assert sum(mention.whole for mention in MENTIONS) >= 10
    assert sum(not mention.whole for mention in MENTIONS) >= 10


def test_targets_of_make_exist() -> None:
    """Every `make TARGET` that a page shows is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        name
        for page in PAGES
        for name in re.findall(r"(?:`|^(?:\$ )?)make ([a-z-]+)\b", page.read_text("utf-8"), re.MULTILINE)
    }
    assert shown <= targets
    assert {"demo", "test"} <= shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_do_not_belittle_what_is_hard(page: Path) -> None:
    """No page says that something is done "simply" or "just" so: who reads it is stuck (STYLE.md 27)."""
    assert re.findall(r"\b(?:simply|just|easily)\b", prose(page), re.IGNORECASE) == []
