"""Reports that show themselves: as text, in a rich console and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from gradlint.base.errors import GradlintError
from gradlint.model.report import Report
from gradlint.model.sweep import SweepReport
from gradlint.report._full import add_report
from gradlint.report._page import html_parts
from gradlint.report.sweep import add_sweep
from gradlint.report.text import Page, styled_console

__all__ = ["Report", "SweepReport"]

#: Columns of a report as text, and in a notebook.
TEXT_WIDTH, HTML_WIDTH = 80, 100

_PRE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace\">{code}</pre>"
)

#: Pixels that a report is high in a notebook: without findings, for each of them, and at most;
#: beyond that, it is scrolled (heuristic: a finding fills half a screen).
LOWEST, PER_FINDING, HIGHEST = 360, 320, 900

#: The page may run its own script and nothing else: it has an origin of its own (HTML, 4.8.5).
_FRAME = (
    '<iframe title="gradlint" sandbox="allow-scripts" style="width:100%;height:{height}px;'
    'border:0;resize:vertical" srcdoc="{page}"></iframe>'
)

#: Adds a report to a page.
Add = Callable[[Page, Any], None]


class Rendered:
    """A report laid out for whatever console it is printed on."""

    def __init__(self, add: Add, report: Any) -> None:
        """``add`` lays out ``report``."""
        self.add = add
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines for the console; those wider than it are folded, so nothing is cut off."""
        page = Page(options.max_width, ascii=options.ascii_only)
        self.add(page, self.report)
        for line in page.shown():
            line.overflow = "fold"
            yield line


class PageRenderer:
    """Shows reports that a function lays out on a page."""

    def __init__(self, add: Add) -> None:
        """``add`` lays out one report."""
        self.add = add

    def text(self, report: Any) -> str:
        """``report`` at 80 columns, without colour."""
        page = Page(TEXT_WIDTH)
        self.add(page, report)
        return page.text().rstrip("\n")

    def rich(self, report: Any) -> Rendered:
        """``report`` for a rich console, at the console's own width."""
        return Rendered(self.add, report)

    def html(self, report: Any) -> str:
        """``report`` as one element with inline styles; all text is escaped."""
        page = Page(HTML_WIDTH)
        self.add(page, report)
        console = styled_console(record=True)
        console.print(Text("\n").join(page.shown()), soft_wrap=True)
        return console.export_html(inline_styles=True, code_format=_PRE)


class ReportRenderer(PageRenderer):
    """Shows a report; in a notebook, as the page that the format ``html`` writes."""

    def html(self, report: Any) -> str:
        """``report`` as a frame that holds the whole page, whose styles and script are its own;
        where jinja2 is not installed, as text."""
        try:
            page = "".join(html_parts(report))
        except GradlintError:
            return super().html(report)
        height = min(LOWEST + PER_FINDING * len(report.findings), HIGHEST)
        return _FRAME.format(height=height, page=html.escape(page))


Report.renderer = ReportRenderer(add_report)
SweepReport.renderer = PageRenderer(add_sweep)
