"""What the names and the documentation of a Function say of a gradient that is no derivative."""

from __future__ import annotations

import re
from typing import Any

from torch.autograd import Function

from gradlint.inputs.documentation import prose

#: How documentation says that a gradient is a surrogate.
_SAID = re.compile(r"(?i)(?<!not )(?<!not a )(?<!no )(?:straight[- ]?through|\bSTE\b|\bsurrogate)")

#: How a name says so: RoundSTE, ClampSteFn, ste_round, StraightThroughEstimator, SurrogateSpike.
_NAMED = re.compile(
    r"(?i:straight_?through|surrogate)|(?<![A-Z])STE(?![A-Z](?![a-z]))|Ste(?=[A-Z_]|$)"
    r"|(?:^|_)ste(?=_|$)"
)

#: How documentation says that a gradient is taken in another geometry than that of the elements:
#: the natural gradient (Amari 1998) or that of a Riemannian manifold.
_OTHER_GEOMETRY = re.compile(
    r"(?i)(?<!not )(?<!not a )(?<!not the )(?<!no )\b(?:natural|riemannian)[- ]gradients?\b"
)


def says_surrogate(thing: Any) -> bool:
    """Whether the documentation or the name of ``thing`` tells of a surrogate gradient."""
    name = getattr(thing, "__name__", "")
    return bool(_SAID.search(prose(thing)) or _NAMED.search(name))


def says_other_geometry(thing: Any) -> bool:
    """Whether documentation says that backward returns a natural or Riemannian gradient: that of
    ``thing``, of a class that it derives from, or of a Function that its backward names."""
    return any(_OTHER_GEOMETRY.search(prose(item)) for item in (thing, *_relatives(thing)))


def _relatives(thing: Any) -> list[Any]:
    """The Functions that a Function derives from, and those that its backward names."""
    if not isinstance(thing, type):
        return []
    bases = [base for base in thing.__mro__[1:] if issubclass(base, Function)]
    backward = getattr(thing, "backward", None)
    names = getattr(getattr(backward, "__code__", None), "co_names", ())
    space = getattr(backward, "__globals__", {})
    named = [space[name] for name in names if name in space]
    own = [item for item in named if isinstance(item, type) and issubclass(item, Function)]
    return [item for item in (*bases, *own) if item.__module__.split(".")[0] != "torch"]
