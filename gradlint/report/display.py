"""Reports that print themselves: as text, in a rich console and in a notebook."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from gradlint.model.report import Report
from gradlint.model.sweep import InputSweep, SweepReport
from gradlint.report import sweep_words
from gradlint.report._full import add_report
from gradlint.report.render import render
from gradlint.report.sweep import render_sweep
from gradlint.report.text import Page, styled_console

#: Columns of the report in a notebook.
HTML_WIDTH = 100

_PRE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace\">{code}</pre>"
)


class Rendered:
    """``report`` laid out for whatever console it is printed on."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines for the console; those wider than it are folded, so nothing is cut off."""
        page = Page(options.max_width, ascii=options.ascii_only)
        add_report(page, self.report)
        for line in page.lines:
            line.overflow = "fold"
            yield line


def to_html(report: Report) -> str:
    """``report`` as one HTML element with inline styles; all text is escaped."""
    page = Page(HTML_WIDTH)
    add_report(page, report)
    console = styled_console(record=True)
    console.print(Text("\n").join(page.lines), soft_wrap=True)
    return console.export_html(inline_styles=True, code_format=_PRE)


class _Printer:
    def text(self, report: Report) -> str:
        return render(report, "full", width=80).rstrip("\n")

    def rich(self, report: Report) -> Rendered:
        return Rendered(report)

    def html(self, report: Report) -> str:
        return to_html(report)


class _SweepWords:
    def verdict(self, item: InputSweep) -> str:
        return sweep_words.verdict(item)

    def notes(self, item: InputSweep) -> list[str]:
        return sweep_words.notes(item)

    def text(self, report: SweepReport) -> str:
        return render_sweep(report, "full", width=80).rstrip("\n")


def install() -> None:
    """Let reports print themselves."""
    Report.printer = _Printer()
    SweepReport.words = _SweepWords()


install()
