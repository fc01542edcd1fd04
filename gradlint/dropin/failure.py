"""Failed checks, the exception that reports them, and the warning about unverified passes."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._options import SEED_VARIABLE, Options

#: Explains gradcheck's messages when gradgradcheck raises them.
SECOND_ORDER = (
    "note: the function checked here is backward: its outputs are the gradients of the inputs, its "
    "inputs are those of the function, then grad_outputs"
)


#: Where remarks go that a suite must be able to ignore, even one that turns warnings into errors.
LOGGER = logging.getLogger("gradlint.dropin")


class InconclusiveWarning(UserWarning):
    """A drop-in returned True although gradlint itself could not judge everything.

    The message says what could not be judged, why, and whether torch's own slow path verified it
    instead. ``python -W error::gradlint.InconclusiveWarning``, or the same filter in
    pytest, makes it a failure, as ``--fail-on inconclusive`` does on the command line.
    """


@dataclass
class Failure:
    """A failed check.

    Args:
        opening: torch's own message, since test suites match it.
        lines: gradlint's own explanation.
        cause: the exception behind it, if one was raised.
    """

    opening: str
    lines: list[str] = field(default_factory=list)
    cause: BaseException | None = None


def raise_failures(failures: Sequence[Failure], options: Options) -> None:
    """Raise one exception that reports all of ``failures``.

    Raises:
        GradcheckError: always.
    """
    parts = ["\n".join([one.opening, *(f"  {line}" for line in one.lines)]) for one in failures]
    tail = [SECOND_ORDER] if options.name == "gradgradcheck" else []
    tail.append(
        f"gradlint.{options.name}, seed {options.seed}; {SEED_VARIABLE}={options.seed} repeats it"
    )
    raise GradcheckError("\n\n".join([*parts, "\n".join(tail)])) from failures[0].cause


def warn(text: str, category: type[Warning] = InconclusiveWarning) -> None:
    """Warn the caller of the package; by default that a pass is not verified, or not by gradlint
    itself."""
    warnings.warn(text, category, stacklevel=_depth())


def inform(text: str) -> None:
    """Log a remark that is no reason to fail, at the level INFO, which is hidden by default."""
    LOGGER.info(text)


def _depth() -> int:
    """Frames between :func:`warn` and the caller of the package."""
    depth, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("gradlint."):
        depth += 1
        frame = frame.f_back  # type: ignore[assignment]
    return depth
