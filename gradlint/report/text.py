"""Text for terminals: words wrapped, values under labels.

Nothing here interprets text. What an op printed, a tensor's repr or a path goes through
:func:`gradlint.base.terminal.clean`, so control characters and escape sequences are shown instead
of obeyed; and no line leaves a page that holds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gradlint.base.terminal import LINE_LIMIT, clean, cut, disarmed, escape

#: Below this width, labels get a line of their own.
NARROW = 60

#: Layouts are computed for at least this many columns; narrower terminals overflow.
MINIMUM_WIDTH = 16

#: Prose is not set wider than this, however wide the terminal is.
MAXIMUM_WIDTH = 120

#: Lines that a page holds before it is drained (heuristic: a console is made each time).
_DRAINED = 1_000

_WORD = re.compile(r"\s*(?:\[[\d, ]*\]|\S)+")


def wrap(text: Text, width: int) -> list[Text]:
    """``text`` on lines of at most ``width`` cells, broken between words only.

    A word longer than ``width`` stays whole: paths and names can then be copied. So do shapes
    and indices such as ``[4, 3]``.
    """
    if text.cell_len <= width:
        line = text.copy()
        line.rstrip()
        return [line]
    offsets, used = [], 0
    for match in _WORD.finditer(text.plain):
        size = cell_len(match.group())
        if used and used + size > width:
            offsets.append(match.end() - len(match.group().lstrip()))
            size = cell_len(match.group().lstrip())
            used = 0
        used += size
    lines = list(text.divide(offsets)) if offsets else [text.copy()]
    for line in lines:
        line.rstrip()
    return lines


class Page:
    """The lines of a report, as they are added.

    Args:
        width: columns to fill, at least :data:`MINIMUM_WIDTH`.
        ascii: whether only ASCII may be printed.
        verbose: 1 or more to show everything.
    """

    def __init__(self, width: int = 80, *, ascii: bool = False, verbose: int = 0) -> None:
        """An empty page."""
        self.width = max(MINIMUM_WIDTH, min(width, MAXIMUM_WIDTH))
        self.ascii = ascii
        self.verbose = verbose
        self.lines: list[Text] = []

    @property
    def narrow(self) -> bool:
        """Whether labels stand on lines of their own."""
        return self.width < NARROW

    def clean(self, text: str) -> str:
        """:func:`clean` under this page's character set."""
        return clean(text, self.ascii)

    def blank(self) -> None:
        """One empty line, unless the page is empty or ends in one."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def line(self, text: Text | str, style: str = "") -> None:
        """One line exactly as it is, never wrapped."""
        self.lines.append(Text(self.clean(text), style) if isinstance(text, str) else text)

    def paragraph(self, text: Text | str, *, indent: int = 0, hanging: int = 0) -> None:
        """Wrapped words; ``hanging`` is the further indentation of all lines but the first."""
        content = Text(self.clean(text)) if isinstance(text, str) else text
        first, *rest = wrap(content, self.width - indent)
        self.lines.append(_indented(first, indent))
        if rest:
            tail = content[len(first.plain) :]
            tail = tail[len(tail.plain) - len(tail.plain.lstrip()) :]
            for line in wrap(tail, self.width - indent - hanging):
                self.lines.append(_indented(line, indent + hanging))

    def row(
        self,
        label: str,
        value: Text | str | Iterable[Text | str],
        *,
        column: int = 9,
        style: str = "dim",
        whole: bool = False,
    ) -> None:
        """``label  value``; the value's lines are wrapped unless ``whole``, and stand below it.

        Args:
            label: the words in the left column.
            value: one text, or one a line.
            column: width of the left column.
            style: the label's style.
            whole: keep every line of the value in one piece.
        """
        parts = [value] if isinstance(value, (str, Text)) else list(value)
        if (
            len(parts) == 1
            and isinstance(parts[0], str)
            and self._short_row(label, parts[0], column, style)
        ):
            return
        texts = [Text(self.clean(part)) if isinstance(part, str) else part for part in parts]
        name = Text(self.clean(label), style)
        indent = self.value_indent(column)
        if self.narrow or name.cell_len > column:
            self.lines.append(_indented(name, 2))
        else:
            name.append(" " * (column - name.cell_len + 2))
            name = _indented(name, 2)
            if texts:
                lines = [texts[0]] if whole else wrap(texts[0], self.width - indent)
                if lines[0].plain:
                    name.append_text(lines[0])
                self.lines.append(name)
                self.lines.extend(_indented(line, indent) for line in lines[1:])
                texts = texts[1:]
            else:
                self.lines.append(name)
        for text in texts:
            lines = [text] if whole else wrap(text, self.width - indent)
            self.lines.extend(_indented(line, indent) for line in lines)

    def _short_row(self, label: str, value: str, column: int, style: str) -> bool:
        """Add a :meth:`row` that takes one line, as nearly all do: laying it out takes a third of
        the time. False, with nothing added, where it may need more."""
        name, text = self.clean(label), self.clean(value).rstrip()
        room = self.width - self.value_indent(column)
        ascii = name.isascii() and text.isascii()
        if self.narrow or not ascii or not text or len(name) > column or len(text) > room:
            return False
        head = name + " " * (column - len(name) + 2)
        line = Text(f"  {head}{text}")
        line.stylize(style, 2, 2 + len(head))
        self.lines.append(line)
        return True

    def value_indent(self, column: int = 9) -> int:
        """The column where values of :meth:`row` begin."""
        return 4 if self.narrow else column + 4

    def shown(self) -> list[Text]:
        """The lines as they may be printed: whoever added them, none holds what a terminal obeys,
        and none is endless."""
        return [_harmless(line, self.ascii) for line in self.lines]

    def drained(self, *, color: bool = False) -> str:
        """:meth:`text` of all lines but the last one, which alone stays: what follows looks at
        it. Nothing as long as there are few."""
        if len(self.lines) < _DRAINED:
            return ""
        last = self.lines.pop()
        text = self.text(color=color)
        self.lines = [last]
        return text

    def text(self, *, color: bool = False) -> str:
        """The page as a string that ends in a line end; with ANSI colours if ``color``."""
        if not color:
            return "".join(line.plain.rstrip() + "\n" for line in self.shown())
        console = styled_console()
        console.print(Text("\n").join(self.shown()), soft_wrap=True)
        return str(console.file.getvalue())  # type: ignore[attr-defined]


def styled_console(*, record: bool = False) -> Console:
    """A console that writes colours to a string, whatever the environment says.

    It never wraps: lines come to it laid out.
    """
    return Console(
        file=StringIO(),
        record=record,
        width=100_000,
        force_terminal=True,
        color_system="standard",
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        no_color=False,
        _environ={},
    )


def _harmless(line: Text, ascii: bool) -> Text:
    plain = line.plain
    safe = disarmed(escape(plain, ascii))
    if safe != plain:
        line = Text(safe, line.style)  # not cleaned by whoever added it: its inner styles are lost
    if len(safe) <= LINE_LIMIT:
        return line
    return line[:LINE_LIMIT] + Text(cut(safe, ascii)[LINE_LIMIT:], line.style)


def _indented(text: Text, indent: int) -> Text:
    return Text(" " * indent).append_text(text) if indent and text.plain else text
