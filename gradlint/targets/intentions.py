"""What the words of an author say that an operator is meant to do. Does not import torch.

A word may stand in a text for something else: a loss that is a surrogate has a true gradient, and
values that go straight through a clamp are those of forward.
"""

from __future__ import annotations

import re

#: How documentation says that a gradient is a surrogate.
_SURROGATE = re.compile(
    r"(?i)(?P<through>\bstraight[-_ ]?through)|(?P<short>(?-i:\bSTE\b))|(?P<stands>\bsurrogate)"
)

#: Methods that are defined by their surrogate: LSQ (Esser et al. 2020), PACT (Choi et al. 2018),
#: DoReFa (Zhou et al. 2016), BinaryConnect (Courbariaux et al. 2015), XNOR-Net (Rastegari et al.
#: 2016).
_METHODS = re.compile(
    r"(?i:\blearned step[- ]size quanti[sz])|\bLSQ\+?(?!\w)|\bPACT\b|\bDoReFa\b|\bBinaryConnect\b"
    r"|\bXNOR-?Net\b"
)

#: What else is called a surrogate: what has a gradient, and not the gradient.
_ANOTHER = re.compile(
    r"(?i)s?[- ](?:\w+[- ])?(?:loss|objective|model|likelihood|posterior|problem|risk|cost|process"
    r"|reward|criteri|data|keys?\b|pairs?\b|variables?\b)"
)

#: What goes straight through in forward, before or after these words: what is no gradient.
_PASSES = re.compile(
    r"(?i)\b(?:pass|go|goes|going|gone|went|run|flow|fall|fed|feed|sent|send|copied|copies|handed|let"
    r"|read|left|come)(?:e?s|ing|ed|ning)?(?:\s+\w+){0,2}\s+$"
)
_ROUTE = re.compile(r"(?i)[- ](?:path|connection|branch|route|copy|copies|wire|shortcut|values?)\b")

#: What has no gradient of use: where that goes straight through, a gradient does.
_STEPS = re.compile(
    r"(?i:\b(?:signs?|round(?:ing|ed)?|quanti[sz]\w+|binari[sz]\w+|discreti[sz]\w+|floor|ceil(?:ing)?"
    r"|heaviside|arg-?max|steps?(?= function| is\b| are\b))\b)"
)

#: A step that has the gradient of something else: "Heaviside spike with the derivative of a fast
#: sigmoid", "one-hot forward, the soft sample's gradient".
_OF_ANOTHER = re.compile(
    rf"(?:{_STEPS.pattern}|\bspikes?\b)(?:\s+\w+){{0,2}},?\s+with (?:the )?"
    r"(?:derivative|gradient|slope)s? of (?:an?|the)\b(?! step| sign| function)"
    r"|\b(?:hard|one-?hot|binary|discrete)\s+forward\b,?\s+(?:(?:and|with|but|the|an?|of)\s+){0,3}"
    r"(?:soft|relaxed|continuous|smooth)\b[^.;]{0,30}?\b(?:gradient|backward|derivative)"
)

#: Words by which a sentence speaks of gradients.
_OF_GRADIENTS = re.compile(r"(?i)grad|deriv|backward|back-?prop|estimat|\bSTE\b")

#: What before a word takes it back.
_NOT = re.compile(
    r"(?i)\b(?:not|no|non|never|without|unlike|instead of|rather than|in place of)[- ]"
    r"(?:(?:a|an|the|any|be|as|using|use|by|of|its|usual|works?|done)\s+){0,3}$"
)

#: How a name says so: RoundSTE, ClampSteFn, ste_round, StraightThroughEstimator, SurrogateSpike.
_NAMED = re.compile(
    r"(?i:straight_?through|surrogate|surr_?grad)|(?<![A-Z])STE(?![A-Z](?![a-z]))|Ste(?=[A-Z_]|$)"
    r"|(?:^|_)ste(?=_|$)"
)

_IN_PLACE = re.compile(r"(?i)\bin[-_ ]?place\b(?!\s+of\b)")
_FLAG = re.compile(r"(?i)in_?place")

#: Where a sentence ends.
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")


def tells_of_surrogate(text: str, *, of_backward: bool = False) -> bool:
    """Whether documentation says that a gradient is a surrogate, such as a straight-through one.

    Args:
        text: docstrings and comments.
        of_backward: whether they stand in backward, where what goes straight through is a gradient.
    """
    for sentence in _SENTENCE.split(text):
        whole = " ".join(sentence.split())
        method = _METHODS.search(whole)
        if _OF_ANOTHER.search(whole) or (method and not _NOT.search(whole[: method.start()])):
            return True
        for found in _SURROGATE.finditer(sentence):
            before, after = sentence[: found.start()], sentence[found.end() :]
            if _NOT.search(before):
                continue
            if found["stands"] and _ANOTHER.match(after):
                continue
            forward = found["through"] and (_PASSES.search(before) or _ROUTE.match(after))
            steps = _STEPS.search(before)
            if of_backward or not forward or steps or _OF_GRADIENTS.search(sentence):
                return True
    return False


def names_surrogate(name: str) -> bool:
    """Whether a name says so."""
    found = _NAMED.search(name)
    return found is not None and not re.match(r"_?(?i:loss|objective|model)", name[found.end() :])


def tells_of_in_place(text: str) -> bool:
    """Whether documentation says that an argument is changed in place."""
    return any(not _NOT.search(text[: found.start()]) for found in _IN_PLACE.finditer(text))


def names_in_place(name: str) -> bool:
    """Whether the name of an operator says so: by that word, or by ``_`` at its end, as the names
    of PyTorch's own functions do."""
    return asks_for_in_place(name) or re.search(r"[^\W_]_$", name) is not None


def asks_for_in_place(name: str) -> bool:
    """Whether the name of an argument says that it asks for this."""
    return _FLAG.search(name) is not None
