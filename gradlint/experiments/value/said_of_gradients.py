"""What the names and the documentation of a Function say of a gradient that is no derivative."""

from __future__ import annotations

import re
import sys
from inspect import unwrap
from types import FunctionType
from typing import Any

from torch.autograd import Function
from torch.nn import Module

from gradlint.inputs.documentation import prose
from gradlint.model.report import Explanation
from gradlint.targets.intentions import names_surrogate, tells_of_surrogate
from gradlint.targets.nodes import code_of

#: How documentation says that a gradient is taken in another geometry than that of the elements:
#: the natural gradient (Amari 1998) or that of a Riemannian manifold.
_OTHER_GEOMETRY = re.compile(
    r"(?i)(?<!not )(?<!not a )(?<!not the )(?<!no )\b(?:natural|riemannian)[- ]gradients?\b"
)

#: How documentation says that backward explains what forward computes: it hands relevance back
#: (Bach et al. 2015), or leaves negative parts out (Springenberg et al. 2015).
_ATTRIBUTION = re.compile(
    r"(?i)(?<!not )(?<!no )(?:\brelevance[- ]propagat|\bpropagat\w*\s+(?:the\s+)?relevance|\bLRP\b"
    r"|\b(?:distribut|comput|hand)\w*\s+(?:the\s+|back\s+)*relevance\b|\brelevance (?:rule|flow)"
    r"|\bguided[- ]back-?prop|\bdeconvnet\b|\bdeeplift\b)"
)

#: How documentation says that another gradient stands in for one that is of no use.
_SUBSTITUTE = re.compile(
    r"(?i)(?<!not )(?<!not an )(?<!not a )(?<!no )\b"
    r"(?:(?:pseudo|proxy|fake|substitut\w+|approximat\w+)[- ]"
    r"(?:(?:the|its|a) )?(?:gradients?|derivatives?)\b"
    r"|(?:sign|gradient|derivative)[- ]estimator\b"
    r"|(?:clip|clamp)\w*[- ](?:gradients?|derivatives?)\b(?! (?:norm|check))"
    r"|(?:gradients?|derivatives?) (?:is |are )?(?:clipped|clamped)\b"
    r"|(?:gradients?|derivatives?)\b[^.;]{0,30}\bby (?:clipping|clamping) them\b"
    r"|gradient (?:of|by|as if) .{0,20}\bin (?:its|the) place\b)"
)

#: How documentation says that something in forward is held constant: "sg[r] * logp, where sg is
#: stop-gradient".
_HELD = re.compile(
    r"(?i)(?<!no )(?<!not )(?<!without )(?<!without a )\bstop[-_ ]?grad(?:ient)?s?\b|\bsg\s*[\[(]"
    r"|\bconstants? for (?:the )?(?:gradient|backward)|\bno gradients? (?:flows? )?through\b"
    r"|,\s*as an? constants?\b"
)

#: Kind of quantity that is no derivative → how documentation speaks of it.
_OTHERWISE: tuple[tuple[Explanation, re.Pattern[str]], ...] = (
    ("geometry", _OTHER_GEOMETRY),
    ("attribution", _ATTRIBUTION),
    ("substitute", _SUBSTITUTE),
)


def says_surrogate(thing: Any) -> bool:
    """Whether the documentation or the name of ``thing`` tells of a surrogate gradient, or of a
    Function that it calls, where it is a module or a function itself; for a Function, those of what
    applies it alone."""
    return any(map(_says_surrogate, (thing, *functions_called(thing), *_appliers(thing))))


def _says_surrogate(thing: Any) -> bool:
    name = getattr(thing, "__name__", "")
    backward = vars(thing).get("backward") if isinstance(thing, type) else None
    method = getattr(backward, "__func__", backward)
    return (
        names_surrogate(name)
        or tells_of_surrogate(prose(thing))
        or (method is not None and tells_of_surrogate(prose(method), of_backward=True))
    )


def functions_called(thing: Any) -> list[Any]:
    """The Functions that forward of a module, or a function, names."""
    if isinstance(thing, type) and issubclass(thing, Function):
        return []
    forward = unwrap(getattr(thing, "forward", thing))
    names = getattr(getattr(forward, "__code__", None), "co_names", ())
    space = getattr(forward, "__globals__", {})
    return [space[name] for name in names if _is_own_function(space.get(name))]


def _appliers(thing: Any) -> list[Any]:
    """The functions and modules beside a Function that name it, and no other Function: theirs is
    the documentation that users read."""
    if not (isinstance(thing, type) and issubclass(thing, Function)):
        return []
    beside = vars(sys.modules.get(thing.__module__, object)).values()
    own = [
        item
        for item in beside
        if (isinstance(item, FunctionType) or _is_module(item))
        and item.__module__ == thing.__module__
    ]
    return [item for item in own if functions_called(item) == [thing] and _applies(item)]


def _applies(thing: Any) -> bool:
    """Whether a function, or forward of a module, calls ``apply`` of something."""
    code = code_of(getattr(thing, "forward", thing))
    return code is not None and "apply" in code.co_names


def _is_module(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Module)


def _is_own_function(thing: Any) -> bool:
    own = isinstance(thing, type) and issubclass(thing, Function)
    return own and thing.__module__.split(".")[0] != "torch"


def said_instead(thing: Any) -> Explanation | None:
    """What backward returns in place of a derivative, by documentation: a natural or Riemannian
    gradient, relevance that explains an output, or another gradient on purpose. It is that of
    ``thing``, of a class that it derives from, of a Function that its backward names, or of what
    applies it alone."""
    texts = [prose(item) for item in (thing, *_relatives(thing), *_appliers(thing))]
    found = (kind for kind, words in _OTHERWISE if any(map(words.search, texts)))
    return next(found, None)


def says_held(thing: Any) -> bool:
    """Whether documentation says that something in forward is held constant."""
    return any(_HELD.search(prose(item)) for item in (thing, *_relatives(thing), *_appliers(thing)))


def _relatives(thing: Any) -> list[Any]:
    """The Functions that a Function derives from, and those that its backward names."""
    if not isinstance(thing, type):
        return []
    bases = [base for base in thing.__mro__[1:] if issubclass(base, Function)]
    backward: Any = unwrap(getattr(thing, "backward", thing))
    names = getattr(getattr(backward, "__code__", None), "co_names", ())
    space = getattr(backward, "__globals__", {})
    named = [space[name] for name in names if name in space]
    own = [item for item in named if isinstance(item, type) and issubclass(item, Function)]
    return [item for item in (*bases, *own) if item.__module__.split(".")[0] != "torch"]
