"""Errors that a user can fix: each says where, what was expected, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from gradlint.base.terminal import clean


class GradlintError(Exception):
    """Bad usage, configuration or specification.

    Args:
        message: one line, what is wrong.
        place: where, as ``file:line:column`` or the option's name; empty if unknown.
        hint: the next step.

    The command line prints these three and exits with :attr:`exit_code`.
    """

    exit_code = 2

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        """The three parts of the error, see the class."""
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        """``place: message``, and the hint in a line of its own."""
        head = f"{self.place}: {self.message}" if self.place else self.message
        return f"{head}\n{self.hint}" if self.hint else head


class TargetError(GradlintError):
    """A target that does not exist or names no operator."""


class InputsError(GradlintError):
    """What ``--inputs`` or ``sample_inputs`` gave can't be used as arguments."""


class NotHere(Exception):
    """Something that can't run on this machine and is skipped; the text says why."""


@dataclass(frozen=True)
class Problem:
    """One mistake in a specification: a place in the file, what is wrong, what to write."""

    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""


class SpecError(GradlintError):
    """A specification with one or more mistakes, all reported at once.

    Args:
        path: the file, as the user gave it.
        problems: every mistake found, in the order of their lines.
    """

    def __init__(self, path: str, problems: list[Problem]) -> None:
        """One line for each of ``problems``, with its place in ``path``."""
        self.path = path
        self.problems = problems
        lines = []
        for problem in problems:
            place = clean(path)
            if problem.line is not None:
                place += f":{problem.line}"
                if problem.column is not None:
                    place += f":{problem.column}"
            said = f"{place}: {problem.message}" + (f" ({problem.hint})" if problem.hint else "")
            # Further lines, such as those of a compiler, can't pass for another mistake.
            lines.append(said.replace("\n", "\n  "))
        super().__init__("\n".join(lines))


__all__ = ["GradlintError", "InputsError", "NotHere", "Problem", "SpecError", "TargetError"]


class CheckFailedError(AssertionError):
    """A report that fails, raised by ``Report.raise_if_failed``; the message is the report."""
