"""Render the templates: the only module that imports Jinja2; strict about names, silent about nothing.

A template is looked for in the folders given by the operator, then in ./templates, then in the copy that ships with specctl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from specctl.adapters import lasting
from specctl.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent.parent
SHIPPED = (_PACKAGE / "_shipped" / "templates", _PACKAGE.parent / "templates")


class Templates:
    """The templates of one command; `folders` come before the operator's ./templates and the shipped ones."""

    def __init__(self, folders: Sequence[Path] = (), *, working_dir: Path | None = None) -> None:
        for folder in folders:
            if not lasting.is_folder(folder):
                raise UsageError(f"no folder of templates at {folder}", hint="give --templates an existing folder")
        own = (working_dir or Path.cwd()) / "templates"
        places = [*folders, own, *SHIPPED]
        self._env = jinja2.Environment(
            loader=jinja2.FileSystemLoader([str(place) for place in places]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701  # units and shell scripts are no HTML; every value is quoted before it comes here
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """Return the text of one template; raises UsageError that names file and line for a template that is at fault."""
        try:
            return self._env.get_template(name).render(values)
        except jinja2.TemplateNotFound as error:
            raise UsageError(
                f"template {error.name} is missing", hint="specctl ships it: reinstall specctl-fleet"
            ) from error
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(
                f"{error.filename or name}:{error.lineno}: {error.message}",
                hint="mend the template, or remove it to use the shipped one",
            ) from error
        except jinja2.UndefinedError as error:
            raise UsageError(
                f"template {name}: {error.message}", hint="docs/architecture.md lists what a template is given"
            ) from error

    def source(self, name: str) -> str:
        """Return the path of the file that a template is taken from."""
        found = self._env.get_template(name).filename
        return found or name
