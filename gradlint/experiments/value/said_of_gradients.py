"""What the names and the documentation of a Function say of a gradient that is no derivative."""

from __future__ import annotations

import re
from typing import Any

from gradlint.inputs.documentation import prose

#: How documentation says that a gradient is a surrogate.
_SAID = re.compile(r"(?i)(?<!not )(?<!not a )(?<!no )(?:straight[- ]?through|\bSTE\b|\bsurrogate)")

#: How a name says so: RoundSTE, ClampSteFn, ste_round, StraightThroughEstimator, SurrogateSpike.
_NAMED = re.compile(
    r"(?i:straight_?through|surrogate)|(?<![A-Z])STE(?![A-Z](?![a-z]))|Ste(?=[A-Z_]|$)"
    r"|(?:^|_)ste(?=_|$)"
)


def says_surrogate(thing: Any) -> bool:
    """Whether the documentation or the name of ``thing`` tells of a surrogate gradient."""
    name = getattr(thing, "__name__", "")
    return bool(_SAID.search(prose(thing)) or _NAMED.search(name))
