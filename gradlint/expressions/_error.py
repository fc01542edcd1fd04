"""What a bad expression raises."""

from __future__ import annotations

from gradlint._errors import GradlintError


class ExpressionError(GradlintError):
    """An expression that is refused, or that failed when it was evaluated.

    Args:
        message: one line, what is wrong.
        text: the expression.
        column: where in ``text``, counted in characters from 1 (line ends count as one).
        hint: the nearest valid name, or what to write instead.
    """

    def __init__(self, message: str, *, text: str = "", column: int = 1, hint: str = "") -> None:
        super().__init__(message, place=f"column {column}", hint=hint)
        self.text = text
        self.column = column

    def pointed(self) -> str:
        """The line of the expression that is wrong, with a caret under the place."""
        before = self.text[: self.column - 1]
        start = before.rfind("\n") + 1
        line = self.text[start:].split("\n", 1)[0]
        return f"{line}\n{' ' * (len(before) - start)}^"
