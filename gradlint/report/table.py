"""Tables that fit: aligned columns if there is room, else one record under the other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from gradlint.base.terminal import clean
from gradlint.report.text import Page


def table(
    page: Page,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    indent: int = 2,
    right: Sequence[str] = (),
    wrapped: bool = False,
) -> None:
    """Add a table to ``page``; columns that are empty in every row are left out.

    Args:
        headers: of the columns; the first column names the row.
        rows: cells as texts.
        indent: columns to the left.
        right: headers of the columns set flush right.
        wrapped: whether the last column may be wrapped when the table is too wide.
    """
    cells = [[clean(cell, page.ascii) for cell in row] for row in rows]
    keep = [i for i in range(len(headers)) if any(row[i] for row in cells)]
    names = [headers[i] for i in keep]
    cells = [[row[i] for i in keep] for row in cells]
    if not names:
        return
    widths = [
        max(cell_len(text) for text in (name, *(row[i] for row in cells)))
        for i, name in enumerate(names)
    ]
    fixed = indent + sum(widths[:-1]) + 2 * (len(widths) - 1)
    fits = fixed + widths[-1] <= page.width
    if not fits and not (wrapped and page.width - fixed >= 24):
        _stacked(page, names, cells, indent)
        return
    flush = [name in right for name in names]
    page.lines.append(_line(names, widths, flush, indent, "dim"))
    for row in cells:
        if fits:
            page.lines.append(_line(row, widths, flush, indent))
            continue
        head = _line([*row[:-1], ""], widths, flush, indent).plain
        head += " " * (fixed - cell_len(head))
        page.paragraph(Text(head + row[-1]), hanging=fixed)


def _line(
    cells: Sequence[str], widths: Sequence[int], flush: Sequence[bool], indent: int, style: str = ""
) -> Text:
    parts = []
    for cell, width, is_right in zip(cells, widths, flush, strict=True):
        space = " " * (width - cell_len(cell))
        parts.append(space + cell if is_right else cell + space)
    return Text((" " * indent + "  ".join(parts)).rstrip(), style)


def _stacked(page: Page, names: Sequence[str], cells: Sequence[Sequence[str]], indent: int) -> None:
    for row in cells:
        page.paragraph(Text(row[0] or names[0], "bold"), indent=indent, hanging=2)
        for name, cell in zip(names[1:], row[1:], strict=True):
            if cell:
                entry = Text().append(f"{name} ", "dim").append(cell)
                page.paragraph(entry, indent=indent + 2, hanging=2)
