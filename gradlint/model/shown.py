"""Reports that show themselves, by a renderer that this package does not know."""

from __future__ import annotations

import html
from typing import Any, ClassVar, Protocol


class Renderer(Protocol):
    """Shows one kind of report to people."""

    def text(self, report: Any) -> str:
        """``report`` at 80 columns, without colour."""

    def rich(self, report: Any) -> Any:
        """``report`` for a rich console, at the console's own width."""

    def html(self, report: Any) -> str:
        """``report`` for a notebook: one self-contained element."""


class Shown:
    """A base class of reports.

    Renderers lie above the model, so the model can't import them: ``gradlint.report.display`` sets
    :attr:`renderer`. Without one, as in a worker, a report shows its fields.
    """

    renderer: ClassVar[Renderer | None] = None

    def __str__(self) -> str:
        """The full report at 80 columns, without colour."""
        return self.renderer.text(self) if self.renderer is not None else repr(self)

    def __rich__(self) -> Any:
        """The full report for a rich console, at the console's own width."""
        return self.renderer.rich(self) if self.renderer is not None else repr(self)

    def _repr_html_(self) -> str:
        """The full report for a notebook: one self-contained element."""
        return self.renderer.html(self) if self.renderer is not None else html.escape(repr(self))
