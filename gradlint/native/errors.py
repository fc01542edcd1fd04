"""What goes wrong while something is built or loaded."""

from __future__ import annotations

from dataclasses import dataclass

from gradlint.base.errors import GradlintError


@dataclass(frozen=True)
class Failure:
    """One step of a build that failed.

    Args:
        source: the source that was compiled; "" for linking.
        text: what the compiler or linker wrote, as it wrote it.
    """

    source: str
    text: str


class BuildError(GradlintError):
    """Something native can't be built or loaded.

    Args:
        message: what is wrong; the compiler's text follows in it where there is one.
        hint: the next step.
        failures: the steps that failed, empty where the build did not come that far.
    """

    def __init__(
        self, message: str, *, place: str = "", hint: str = "", failures: tuple[Failure, ...] = ()
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.failures = failures


class BuilderFailed(BuildError):
    """The builder gave up, and no source is to blame for it."""


def loader_text(error: BaseException) -> str:
    """The text of ``error``, or of the error it was raised from where that says more."""
    cause = error.__cause__ or error.__context__
    if isinstance(error, OSError) and isinstance(cause, OSError):
        return str(cause)  # "Could not load this library" hides the loader's own words
    return str(error)
