"""One failed check, and how all of them read in one exception."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._options import SEED_VARIABLE, Options


@dataclass
class Failure:
    """A failed check.

    Args:
        opening: torch's own words, for those who match the message.
        lines: what gradlint says about it.
        cause: the exception behind it, if one was raised.
    """

    opening: str
    lines: list[str] = field(default_factory=list)
    cause: BaseException | None = None


def raise_failures(
    failures: Sequence[Failure], options: Options, notes: Sequence[str] = ()
) -> None:
    """Raise one exception that tells all of ``failures``.

    Raises:
        GradcheckError: always.
    """
    parts = ["\n".join([one.opening, *(f"  {line}" for line in one.lines)]) for one in failures]
    tail = [f"note: {note}" for note in notes]
    tail.append(
        f"gradlint.{options.name}, seed {options.seed}; {SEED_VARIABLE}={options.seed} repeats it"
    )
    raise GradcheckError("\n\n".join([*parts, "\n".join(tail)])) from failures[0].cause
