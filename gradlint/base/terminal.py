"""What may reach a terminal: texts of others, with every character that it would obey shown.

A file name, a key of a spec, the text of an exception or what a compiler printed may hold escape
sequences, which set a window's title or hide a line, and characters that are not seen or turn the
direction of reading, which let a text look like another. They are written as Python's escapes.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, TextIO

TAB = 4

#: How many characters of one line are shown.
LINE_LIMIT = 2000

# Control characters, invisible formatting (bidirectional overrides among them), lone surrogates
# and exotic line ends: obeyed by a terminal they could hide or forge parts of a report.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

#: Letters and marks that are not seen: the property Default_Ignorable_Code_Point of Unicode 16,
#: DerivedCoreProperties.txt, as far as the categories above do not hold it; and the blank pattern
#: of Braille.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff]"
)

#: What the runners of GitHub (`::` first in a line, `##[` anywhere) and Azure (`##vso[` anywhere)
#: take for a command when it is printed: the first character of each.
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#(?:vso)?\[)")
_ANYWHERE = re.compile(r"#(?=#(?:vso)?\[)")

_ASCII = {
    "…": "...",
    "×": "x",
    "−": "-",
    "–": "-",
    "—": "-",
    "·": "*",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "→": "->",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
}


def clean(text: str, ascii: bool = False) -> str:
    """``text`` on one line with hidden characters escaped; under ``ascii`` all others too."""
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    text = re.sub(r"[ \t]*(\r\n|\r|\n)[ \t]*", " ", text.strip("\r\n"))
    return escape(text.expandtabs(TAB), ascii)


def escape(text: str, ascii: bool = False) -> str:
    """``text`` with every hidden character (line ends and tabs too) as a Python escape."""
    if text.isascii() and text.isprintable():
        return text
    if ascii:
        text = "".join(_ASCII.get(char, char) for char in text)
    return "".join(
        char.encode("unicode_escape").decode()
        if _hidden(char) or (ascii and not char.isascii())
        else char
        for char in text
    )


def disarmed(line: str) -> str:
    """``line`` with what the log of a CI system would obey shown as a Python escape."""
    return _COMMAND.sub(lambda found: f"{found[1] or ''}\\x{ord(found[0][-1]):02x}", line)


def disarmed_json(text: str) -> str:
    """JSON ``text`` with the same in its strings shown by JSON's own escapes: it means the same."""
    return _ANYWHERE.sub("\\\\u0023", text)


def lines_of(text: str, ascii: bool = False) -> list[str]:
    """The lines of ``text`` as they are, hidden characters escaped, endless ones cut."""
    lines = []
    for line in re.split(r"\r\n|\n", str(text).rstrip("\r\n")):
        lines.append(cut(escape(line.expandtabs(TAB), ascii), ascii))
    return lines


def cut(line: str, ascii: bool = False) -> str:
    """``line`` with at most :data:`LINE_LIMIT` characters, and how many there are more."""
    if len(line) <= LINE_LIMIT:
        return line
    more = f"… ({len(line) - LINE_LIMIT} more characters)"
    return line[:LINE_LIMIT] + escape(more, ascii)


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or _UNSEEN.match(char) is not None


class SafeStream:
    """A stream of text that shows what a terminal would obey, whoever writes to it.

    Everything but line ends goes through :func:`escape`: it is the last guard behind those that
    lay out what they show. What gradlint itself means to be obeyed, colours and the progress bar,
    is written to :attr:`obeyed`.

    Args:
        stream: the stream itself.
    """

    def __init__(self, stream: TextIO) -> None:
        self.obeyed = stream

    def write(self, text: str) -> int:
        """Write ``text``, line by line; returns its length."""
        if text.isascii() and text.replace("\n", "").isprintable():
            self.obeyed.write(text)
        else:
            self.obeyed.write("\n".join(escape(line) for line in text.split("\n")))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of ``lines``."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.obeyed, name)


def obeyed(stream: TextIO) -> TextIO:
    """The stream behind ``stream`` where that is a :class:`SafeStream`, else itself.

    For text all of which was cleaned, but for escape sequences of our own.
    """
    return stream.obeyed if isinstance(stream, SafeStream) else stream
