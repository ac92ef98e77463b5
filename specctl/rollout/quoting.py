"""The one systemd quoter: arguments and environment values of a unit go through here (systemd.service(5), systemd.syntax(7))."""

from __future__ import annotations

import re
import shlex

from specctl.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_@/.,:=+^~-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t"}


def _checked(text: str) -> str:
    """Return the text, or raise UsageError for what no unit can carry: newline, NUL, lone surrogates."""
    if "\n" in text or "\r" in text or "\0" in text:
        raise UsageError(f"a newline or NUL cannot stand in a unit: {text[:60]!r}", hint="remove it from the inventory")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"not valid unicode: {text[:60]!r}", hint="remove it from the inventory") from error
    return text


def _escaped(text: str) -> str:
    """Escape for inside double quotes: backslash, quote and control characters; unicode stays as it is."""
    return "".join(_ESCAPES.get(c) or (f"\\x{ord(c):02x}" if ord(c) < 0x20 or ord(c) == 0x7F else c) for c in text)


def argument(text: str) -> str:
    """Quote one element of ExecStart=: `%` and `$` doubled, quoted where systemd would split or unescape it."""
    doubled = _checked(text).replace("%", "%%").replace("$", "$$")
    return doubled if _PLAIN.fullmatch(text) else f'"{_escaped(doubled)}"'


def assignment(name: str, value: str) -> str:
    """Quote NAME=value for Environment=: `%` doubled, `$` has no meaning there."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(
            f"{name!r} is no name for an environment variable", hint="letters, digits and _ only, no digit first"
        )
    doubled = _checked(f"{name}={value}").replace("%", "%%")
    return doubled if _PLAIN.fullmatch(f"{name}={value}") else f'"{_escaped(doubled)}"'


def setting(text: str) -> str:
    """Check a literal value of the operator's for a line of the unit: one line, no NUL; specifiers are the operator's own."""
    return _checked(text)


def description(text: str) -> str:
    """Quote free text of Description=: one line, no specifiers."""
    return _checked(text).replace("%", "%%").rstrip("\\")


def path(text: str) -> str:
    """Quote a path that stands alone behind = (LoadCredential=, EnvironmentFile=): specifiers doubled, blanks refused."""
    if not text.startswith("/") or re.search(r"\s|:", text):
        raise UsageError(
            f"a path in a unit must be absolute, without blanks or colons: {text!r}", hint="choose another state_dir"
        )
    return _checked(text).replace("%", "%%")


def shell_word(text: str) -> str:
    """Quote one word for the POSIX shell script that a supervisor starts; NUL and newline are refused as in a unit."""
    return shlex.quote(_checked(text))


def supervisor_word(text: str) -> str:
    """Quote one word of supervisord's command=: shell quoting, and `%` doubled (it expands %(ENV_X)s)."""
    return shell_word(text).replace("%", "%%")


def environment_file_line(name: str, value: str) -> str:
    """Quote NAME='value' so that systemd's EnvironmentFile= and a POSIX shell read the same value; a single quote is refused."""
    if "'" in value:
        raise UsageError(
            f"the secret for {name} holds a single quote", hint="an environment file cannot carry it: use another value"
        )
    assignment(name, "")
    return f"{name}='{_checked(value)}'"
