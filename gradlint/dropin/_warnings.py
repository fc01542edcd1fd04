"""What the drop-ins say where they pass without having judged."""

from __future__ import annotations


class InconclusiveWarning(UserWarning):
    """A drop-in returned True although gradlint itself could not judge everything.

    The message says what could not be told, why, and what the pass rests on (torch's own slow
    path, or nothing). ``python -W error::gradlint.InconclusiveWarning``, or the same filter in
    pytest, makes it a failure, as ``--fail-on inconclusive`` does on the command line.
    """
