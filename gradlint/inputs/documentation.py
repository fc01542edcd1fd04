"""What the docstrings and comments of an op say, and the numbers of axes that they give."""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from gradlint.inputs.domains import worded
from gradlint.model.op import Op
from gradlint.targets.nodes import source_text

#: Letters or short words in brackets, such as ``(N, C, L)`` or ``[batch, dim]``; with an ellipsis
#: or an asterisk among them for any number of axes. Not the arguments of a call, ``f(X, Y)``.
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,7}"
#: A power of a number: ``2**k``, ``2^n``.
POWER = r"\d\s*(?:\*\*|\^)\s*[A-Za-z]\w{0,11}"
_AXIS = rf"(?:{POWER}|(?:\d\s*\*?\s*)?{_NAME}(?:\s*[-+*/]\s*\w{{1,3}})?|\d{{1,2}}|\*|\.\.\.|…)"
_SHAPE = re.compile(rf"(?<![\w.])[(\[]\s*({_AXIS}(?:\s*,\s*{_AXIS}){{1,5}})\s*,?\s*[)\]]")

#: An axis by itself: one capital letter, alone or with a short ending (``N``, ``C_in``, ``T1``).
_SYMBOL = re.compile(r"[A-Z][a-z]?(?:_?[a-z0-9]{1,4})?")
_ANY = frozenset({"*", "...", "…"})

#: A shape of one axis or more, in a clause that is known to be about a tensor.
_ANY_SHAPE = re.compile(
    r"[(\[]\s*\w+(?:\s*[-+*/]\s*\w+)?\s*,(?:\s*[\w.+*/-]+(?:\s*[-+*/]{1,2}\s*\w+)?\s*,?)*\s*[)\]]"
)

#: Named axes before any number of others that say that these are meant to be there: "(N, C, *)",
#: not "(N, *)".
STARRED = 2

#: Characters of a clause about a parameter that are read.
_LONGEST_CLAUSE = 120

#: Ends of an interval → domain. Whether an end belongs to it is no matter: values keep a distance.
_INTERVALS = {
    (0.0, 1.0): "unit",
    (-1.0, 1.0): "small",
    (0.0, math.inf): "positive",
    (1.0, math.inf): "above",
}


def documented_ranks(op: Op) -> frozenset[int]:
    """Numbers of axes of the shapes that docstrings and comments of ``op`` show; empty where they
    show none, or one of any number of axes: ``(N, *)``, ``(..., D)``."""
    return ranks_in(described(op.defining)) if op.defining is not None else frozenset()


def ranks_in(text: str) -> frozenset[int]:
    """Numbers of axes of the shapes in ``text``; at least one axis of a shape has a capital."""
    return frozenset(len(shape) for shape in shapes_in(text))


def shapes_in(text: str) -> list[tuple[str, ...]]:
    """The shapes in ``text``, in order; none where one is of any number of axes."""
    found = []
    for match in _SHAPE.finditer(text):
        axes = tuple(axis.strip() for axis in match.group(1).split(","))
        if _ANY & set(axes):
            return []
        if any(_SYMBOL.fullmatch(axis) for axis in axes):
            found.append(axes)
    return found


def documented_least(text: str, axis: str) -> int:
    """The least size that ``text`` gives for an axis by its name, "series (batch, time), time > 1",
    "n >= 3", "at least 2 frames"; 0 where it gives none."""
    own = rf"(?<![\w.|]){re.escape(axis)}"
    if found := re.search(rf"{own}\s*(>=?|≥)\s*(\d+)(?!\w|\.\d)", text):
        return int(found[2]) + (found[1] == ">")
    if found := re.search(rf"(?<![\w.])(\d+)\s*(<=?|≤)\s*{re.escape(axis)}(?!\w)", text):
        return int(found[1]) + (found[2] == "<")
    found = re.search(rf"(?i)\bat least (\d+|two|three)\s+{re.escape(axis)}(?!\w)", text)
    return {"two": 2, "three": 3}.get(found[1].lower()) or int(found[1]) if found else 0


def documented_no_less(text: str, one: str, other: str) -> bool:
    """Whether ``text`` says that an axis is no shorter than another one, by their names: "m >= n",
    "n <= m", "with n < m"."""
    found = re.search(
        rf"(?<![\w.]){re.escape(one)}\s*(?:>=?|≥)\s*{re.escape(other)}(?![\w.(])"
        rf"|(?<![\w.]){re.escape(other)}\s*(?:<=?|≤)\s*{re.escape(one)}(?![\w.(])",
        text,
    )
    return found is not None


def names_axis(text: str, name: str) -> bool:
    """Whether ``text`` shows a shape of which ``name`` is an axis: "(L, D) -> (out_len, D)"."""
    shapes = (match.group(1).split(",") for match in _SHAPE.finditer(text))
    return any(
        name in axes and any(_SYMBOL.fullmatch(axis) for axis in axes)
        for axes in ([axis.strip() for axis in shape] for shape in shapes)
    )


def starred_rank(text: str) -> int:
    """Axes of the first shape in ``text`` that ends in any number of them after two others, "(N, C,
    *)", where that is one; 0 where there is none. None of them would leave nothing to sum over."""
    for match in _SHAPE.finditer(text):
        axes = [axis.strip() for axis in match.group(1).split(",")]
        named = [axis for axis in axes[:-1] if _SYMBOL.fullmatch(axis)]
        if axes[-1] in _ANY and len(named) == len(axes) - 1 >= STARRED:
            return len(axes)
    return 0


#: Sizes that are said in words: of the last two axes, "a batch of 3x3 matrices", and of the last
#: one, "3D points", "3-vectors". Not those of a window: "a 3x3 convolution".
_SIZED_MATRICES = re.compile(
    r"(?i)\b(\d{1,2})\s*(?:x|×|-by-| by )\s*(\d{1,2})\s+(?:(?!conv|kernel|window)\w+\s+){0,2}?"
    r"(?:matri(?:x|ces)|rotations?)\b"
)
_SIZED_VECTORS = re.compile(
    r"(?i)\b(\d{1,2})(?:-vectors?|-?d(?:imensional)? (?:vector|point|coordinate|position)s?)\b"
)


def sizes_in_words(text: str) -> set[tuple[int, ...]]:
    """The sizes of the last axes that ``text`` says in words."""
    return {
        tuple(map(int, match.groups()))
        for pattern in (_SIZED_MATRICES, _SIZED_VECTORS)
        for match in pattern.finditer(text)
    }


#: A line that denies that a matrix is symmetric.
_NOT_SYMMETRIC = re.compile(
    r"(?i)(?:\bnot|n't|\bnever|\bno longer)\b(?:\W+\w+){0,3}?\W+symmetric"
    r"|\b(?:non-?|un|a)symmetric|\bgeneral (?:square )?matri|\b(?:may|can) be directed\b"
    r"|\bdirected (?:graph|edge|adjacen)"
)


def denies_symmetry(text: str, name: str) -> bool:
    """Whether a line of ``text`` that names an argument says that it is not always symmetric: a
    precision often is, by its name."""
    named = re.compile(rf"\b{re.escape(name)}\b")
    return any(named.search(line) and _NOT_SYMMETRIC.search(line) for line in text.splitlines())


def without_denied_symmetry(text: str) -> str:
    """``text`` without the words that deny that a matrix is symmetric."""
    return _NOT_SYMMETRIC.sub("", text)


#: Zero, or a number between it and −1, above which an argument is said to be: "x > -1/e". All
#: positive numbers are above it, too.
_LOW = r"(?:0(?!\w|\.\d)|[-−]\s?(?:1(?:\.0*)?(?:\s?/\s?(?:e|\d+(?:\.\d+)?))?|0?\.\d+)(?![\w]|\.\d))"
#: In a clause about an argument, behind its shape: it has a sign, ", all > 0".
_SIGN = re.compile(
    r"(?:^|[,:])\s*(?:(?:or|and|all|each|every|elements?|entries|values?|strictly)\s+)*"
    rf"(?:(>=?|≥)\s*{_LOW}|(not negative|non-?negative|positive)\b(?=\s*(?:$|[,.;)])))"
)

#: How a clause about an argument begins that says that it has no dimensions.
_SCALAR_FIRST = re.compile(
    r"(?i)\s*:?\s*(?:an?\s+|the\s+)?(?:(?!per\b|no\b)\w+\s+){0,2}?(?:0-?d(?:im\w*)?\b|scalars?\b|zero-dim)"
    r"(?!\s*(?:\w+\s+)?(?:or|per|for each|field|product|function)\b)"
)


#: Words before an inequality that make it one case of several, "saturated for h >= 0", "2x if
#: x > 0", unless the clause says that there are no others, "only if x > 0".
_CASE = re.compile(
    r"(?i)\b(?:if|when|where|wherever|while|(?:saturat\w+|zero|one|constant|linear|flat|clamped"
    r"|infinite|unchanged|the identity|vanish\w+)\s+for)\s+(?:all\s+|any\s+)?`*$"
)
_ONLY_CASE = re.compile(
    r"(?i)\b(?:defined|valid|only|works?|holds?|meant|made|needs?|requires?|expects?|supports?"
    r"|supported|assum\w+|solves?|computes?)\b[^.;:\n]*$"
)


#: "0 < lam < eps**2": the sign of an argument that stands between its bounds.
_BOUNDED_BELOW = r"(?<![\w.*/^-])0(?:\.0*)?\s*(<=?|≤)\s*`*{}`*(?![\w.(\[])"
#: "from positive abundances": the sign of an argument by an adjective, in words that do not tell
#: one case from another, as "for positive x" does.
_ADJECTIVE = (
    r"(?i)\b(?:from|of|given|takes?|expects?|needs?|requires?|assum\w+|over|between)\s+"
    r"(?:(?:the|all|strictly)\s+)*(positive|non-?negative)\s+`*{}(?:e?s)?\b"
)


def _is_one_case(text: str, found: re.Match[str]) -> bool:
    """Whether an inequality tells where something holds, and not what an argument must be."""
    before = text[: found.start()]
    return _CASE.search(before) is not None and _ONLY_CASE.search(before) is None


def documented_sign(text: str, name: str, names: Iterable[str] = ()) -> str:
    """The domain that ``text`` gives for a tensor by an inequality, ``d > 0 (n,)``, ``x > -1/e``,
    ``a, b > 0``, ``0 < lam < 1`` or ``theta: (genes,) or (cells, genes), > 0``, by a word between
    commas, ``delay (C,) in samples, not negative``, or by an adjective, ``from positive weights``:
    "positive", "nonnegative", or "" where it gives none.

    Args:
        text: what is said of the op.
        name: the tensor's.
        names: of all arguments, so that what is said of another is not taken for this one's.
    """
    above = rf"\s*(>=?|≥)\s*{_LOW}"
    start, more = r"(?m:^|(?<=[.;:(]))\s*(?:\w+,\s*)*", r"(?:,\s*(?:and\s+)?\w+)*"
    own = as_written(name, list(names))
    written = (rf"(?<![\w.|]){own}`*:?{above}", rf"{start}{own}{more}{above}")
    found = next(
        (
            one
            for pattern in written
            for one in re.finditer(pattern, text)
            if not _is_one_case(text, one)
        ),
        None,
    )
    if found is None and names:
        # An inequality directly behind the name was looked at above.
        parts = (part for part in clauses(text, name, names) if not re.match(above, part))
        said = (re.sub(r"[(\[][^()\[\]]*[)\]]", ":", part) for part in parts)
        found = next((sign for part in said if (sign := _SIGN.search(part))), None)
    if found is None:
        before = (re.search(form.format(own), text) for form in (_BOUNDED_BELOW, _ADJECTIVE))
        found = next((one for one in before if one and not _is_one_case(text, one)), None)
    if found is None:
        return ""
    above_zero = not re.search(r"[-−]\s?[\d.]", found[0])
    strict = bool({">", "<", "positive"} & set(found.groups()))
    return "positive" if strict and above_zero else "nonnegative"


def documented_order(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    """The pairs of arguments of which ``text`` says that one is below the other, ``lower < upper``
    or ``high > low``: the lower one first."""
    found: list[tuple[str, str]] = []
    for low in names if re.search("[<>]", text) else ():
        for high in (name for name in names if name != low):
            one, other = as_written(low, names), as_written(high, names)
            ends = r"(?![\w.(\[]|\s*[-+*/^])"
            below = rf"(?<![\w.*/^|+-])`*{one}`*\s*<\s*`*{other}`*{ends}"
            above = rf"(?<![\w.*/^|+-])`*{other}`*\s*>\s*`*{one}`*{ends}"
            places = (m for form in (below, above) for m in re.finditer(form, text))
            if any(not _is_one_case(text, place) for place in places):
                found.append((low, high))
    return found


#: "+1 (call) or -1 (put)", "-1 or 1", "{-1, 1}"; not the interval "[-1, 1]" or "from -1 to 1".
_SIGNS = re.compile(
    r"\+\s?1\b[^.;\n]{0,24}?[-−]\s?1\b|[-−]1\b\s*(?:or|/|vs\.?)\s*\+?1\b"
    r"|(?<![\w.])1\s*(?:or|/)\s*[-−]1\b|\{\s*[-−]1,\s*\+?1\s*\}|[-−]1\b[^.;\n]{0,24}?\+\s?1\b"
)


def documented_signs(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says that ``name`` is one or minus one: "+1 (call) or -1 (put)"."""
    return any(_SIGNS.search(clause) for clause in clauses(text, name, names))


#: "{0, 1}", "0 or 1", "0/1", "zeros and ones", "binary labels"; not the interval "[0, 1]".
_ZERO_OR_ONE = (
    r"(?:\{\s*0(?:\.0?)?\s*,\s*1(?:\.0?)?\s*\}|(?<![\w.])0(?:\.0?)?\s*(?:or|/)\s*1(?:\.0?)?(?![\w.-])"
    r"(?!\s+(?:dim|ax[ei]s|loss))|\bzeros (?:and|or) ones\b|\bbinary (?:labels?|targets?|masks?)\b)"
)
#: How a clause about an argument says so: nothing but its shape, its type and such words before.
_IS_BINARY = re.compile(
    rf"(?i)[\s:]*(?:\([^()]*\)|\[[^\[\]]*\])?[\s,:]*(?:(?:an?|the|of|in|is|are|be|must|each|either|with|all"
    rf"|float\w*|double|int\w*|bool\w*|tensor|labels?|targets?|masks?|values?|entries|elements?|∈)\b"
    rf"[\s,:]*|∈\s*){{0,6}}{_ZERO_OR_ONE}"
)
#: Arguments that are labels by their names, and what documentation calls them.
_LABELS = re.compile(r"(?:.*_)?(?:targets?|labels?|gt|y_true|ground_truth)|y")
_LABELS_IN_WORDS = re.compile(r"(?i)\b(?:labels?|targets?)\b")


def documented_binary(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says that the elements of ``name`` are zero or one: "y: (N,) in {0, 1}"."""
    return any(_IS_BINARY.match(clause) for clause in clauses(text, name, names))


def documented_binary_labels(text: str, names: Iterable[str]) -> str:
    """The only one of the arguments ``names`` that is labels by its name, where ``text`` says of
    labels that they are zero or one, "for labels in {0, 1}"; else ""."""
    found = [name for name in names if _LABELS.fullmatch(name.lower())]
    if len(found) != 1:
        return ""
    told = re.search(r"(?i)\bbinary (?:labels|targets)\b", text) is not None
    places = _LABELS_IN_WORDS.finditer(text)
    return found[0] if told or any(_IS_BINARY.match(text, p.end()) for p in places) else ""


def documented_unit(text: str, name: str) -> bool:
    """Whether ``text`` calls ``name`` a unit vector by an adjective: "unit q0, q1"."""
    others = r"(?:`*\w{1,12}`*\s*(?:,|/|\band\b)\s*){0,3}"
    return re.search(rf"(?i)(?<![\w-])unit\s+{others}`*{re.escape(name)}\b", text) is not None


def documented_ball(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says that vectors are shorter than one: "points u and v (N, d) inside the
    unit ball", "x (N, d), in the Poincaré ball"."""
    said = (" ".join(clause.split()) for clause in clauses(text, name, names))
    return any("ball" in worded(clause) for clause in said)


def documented_nonzero(text: str, name: str) -> bool:
    """Whether ``text`` says that a tensor is not zero as a whole: "any q but 0 will do", "q != 0",
    "a non-zero axis", "direction must not be zero"."""
    own = rf"(?<![\w.|]){re.escape(name)}\b`*"
    zero = r"(?:all |the )?(?:0(?![.\w])|zeros?\b)"
    shape = r"(?:\s*:)?(?:\s*\([^()]*\))?(?:\s*,)?"
    said = (
        rf"{own}{shape}\s*(?:!=|≠)\s*{zero}",
        rf"(?:any|every|all)\s+`*{own}{shape}\s+(?:but|except|other than)\s+{zero}",
        rf"{own}{shape}\s+(?:is|are|must|may|can|should)\s*(?:not|never|n't)\s+(?:be\s+)?{zero}",
        rf"{own}{shape}\s+(?:is|are|must be|has to be|should be)\s+non-?zero\b",
        rf"\bnon-?zero\s+`*{own}",
        rf"{own}{shape}\s*\bnon-?zero\b",
    )
    return any(re.search(rf"(?i){pattern}", text) for pattern in said)


#: Names of so many letters are no plural, as those of symbols.
SHORTEST_PLURAL = 3


def documented_from_one(text: str, name: str) -> bool:
    """Whether ``text`` says that integers begin at one: "lengths (B,) in 1..T", "n >= 1", "n, at
    least 1" or "1 <= n <= N"."""
    # "1 <= length <= T" is said of lengths.
    plural = len(name) > SHORTEST_PLURAL and name.endswith("s")
    stem = f"{re.escape(name[:-1])}s?" if plural else re.escape(name)
    own = rf"(?<![\w.]){stem}\b`*"
    shape = r"(?:\s*:)?(?:\s*\([^()]*\))?(?:\s*,)?"
    begins = (
        r"\s*(?:(?:is|are|lies?)\s+)?(?:in|from|between)\s*[\[{]?\s*1\s*(?:\.\.|…|,|to\b|and\b|-|–)"
    )
    least = r"\s*(?:(?:is|are|must be)\s+)?(?:>=\s*1|≥\s*1|>\s*0|at least (?:1|one))(?![\d.]*\d)"
    before = r"(?<![\w.])(?<![-+*/])(?<![-+*/]\s)(?:1\s*(?:<=|≤)|0\s*<)\s*`*"
    one = rf"\b(?:every|each|all)\s+{re.escape(name.rstrip('0123456789').rstrip('s'))}s?\b{least}"
    return re.search(rf"(?i){own}{shape}(?:{begins}|{least})|{before}{own}|{one}", text) is not None


def documented_from_zero(text: str, name: str) -> bool:
    """Whether ``text`` says by a comparison that integers begin at zero: "0 <= n < N"."""
    own = rf"(?<![\w.]){re.escape(name)}\b`*"
    return re.search(rf"(?<![\w.])(?<![-+*/])(?<![-+*/]\s)0\s*(?:<=|≤)\s*`*{own}", text) is not None


def documented_real(text: str) -> bool:
    """Whether ``text`` says that numbers are real, and nothing of complex ones: "the spectrum of a
    real signal"; not "the real part"."""
    real = r"(?i)\breal(?:-valued)?\b(?!\s*(?:parts?|and|or|axis|components?|world)\b)"
    return re.search(real, text) is not None and not re.search(r"(?i)\bcomplex", text)


def documented_complex(text: str) -> bool:
    """Whether ``text`` speaks of complex numbers, and of no real ones."""
    return bool(re.search(r"(?i)\bcomplex", text)) and not re.search(r"(?i)\breal\b", text)


#: In a clause about an argument: it is held constant.
_CONSTANT = re.compile(
    r"(?i)(?<!not )\b(?:taken|treated|regarded|held|kept|considered|used|seen)\s+(?:as\s+)?"
    r"(?:an?\s+)?constants?\b|(?:^|,|\bis|\bare)\s+(?:an?\s+)?constants?(?=\s*(?:$|[,)(]))"
    r"|\b(?:has|have|gets?|receives?|with|of)\s+no gradients?\b"
    r"|\bwithout (?:an? |any )?gradients?\b"
    r"|\bno gradients?\s+(?:flows?|for|to)\b"
    r"|\b(?:never|(?:must|may|can|should|need|will)\s*not)\s+(?:requires?|needs?)\s+"
    r"(?:an?\s+|any\s+)?grad(?:ients?)?\b"
    r"|(?:(?<!not )\b(?:is|are)|[,(]|\)\s*\w*)\s*(?:not\s+differentiat|detached\b)"
    r"|\bnon-?differentiable\b"
    r"|\bnot\s+(?:to\s+be\s+)?(?:learn(?:ed|t|able)|train(?:ed|able)|optimi[sz]ed|fitted)\b"
)


#: "all but logits are data", "everything except x and w is constant".
_ALL_BUT = re.compile(
    r"(?i)\b(?:all|everything|every argument)\s+(?:but|except)\s+([\w`*, &]+?)\s+(?:is|are)\s+"
    r"(?:an?\s+)?(?:data|constants?|not differentia|non-differentia)"
)


def documented_constant(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says that an argument is held constant when the gradient is taken:
    "relevance: (N, L), taken as a constant", "no gradient flows to `target`"."""
    own = rf"`*{re.escape(name)}\b"
    before = (
        r"(?i)\b(?:no gradients?(?:\s+flows?)?|nothing\s+flows?)(?:\s+back)?\s+(?:in)?(?:to|for)\s+"
        rf"(?:the\s+)?{own}"
    )
    if re.search(before, text):
        return True
    but = _ALL_BUT.search(text)
    if but is not None:
        return not re.search(rf"(?<![\w.]){own}", but[1])
    said = (" ".join(clause.split()) for clause in clauses(text, name, names))
    return any(_CONSTANT.search(clause) for clause in said)


#: A unit in brackets, "[1/A^2]", "[A]", "[rad]", and one that can be nothing else.
_UNIT = re.compile(
    r"\s*\[(?:1/)?[a-zA-Zµμ°%]{1,4}(?:\^?-?\d|[²³])?(?:/[a-zA-Z]{1,3}(?:\^?\d|[²³])?)?\]"
)
_SURE_UNIT = re.compile(
    r"\[(?:[^\]\s,]*[/^²³°%µμ][^\]\s,]*|rad|deg[CF]?|[kMG]?Hz|eV|nm|ms|mm|kg"
    r"|mol|[hkM]?Pa|dB)\]"
)


#: A space that stands for a unit: what has one of its own does not share the range of the next.
UNIT_LEFT_OUT = "\N{THIN SPACE}"


def without_units(text: str) -> str:
    """``text`` without units in brackets, which look like shapes: "defocus [A], angle [rad]"."""
    return _UNIT.sub(UNIT_LEFT_OUT, text) if _SURE_UNIT.search(text) else text


#: … or says so between commas, without a shape before: "target : Tensor, 0-dim", "bias: a prior
#: variance, positive, 0-dim."
_SCALAR_LAST = re.compile(
    r"(?i)[\s:]*[\w -]{0,48}(?:,[\w -]{0,24})?,\s*(?:an?\s+)?(?:0-?d(?:im\w*)?|zero-dim\w*|scalar)"
    r"(?:\s+tensors?)?\s*(?=$|[,.;)\n])"
)


#: "x (N,), the others scalars", "all other arguments are 0-d".
_OTHERS_SCALAR = re.compile(
    r"(?i)\b(?:others|the rest|(?:other|remaining) (?:arguments?|inputs?|parameters?))"
    r"\s*(?::|,|\bare\b|\bis\b|\ball\b|\s)*\s*(?:0-?d(?:im\w*)?\b|zero-dim|scalars?\b)"
)


def documented_scalar(text: str, name: str, names: Iterable[str] = ()) -> bool:
    """Whether ``text`` says that a tensor has no dimensions: "an angle (0-d)", "df and scale are
    0-d tensors", "noise: ()", "half_life a scalar", "scalar attack and release", or, where the
    ``names`` of all arguments are known, "kp, ki, kd: scalar tensors"."""
    own = rf"(?<![\w.]){re.escape(name)}\b"
    near = r"[^.;:,()\[\]\n]{0,40}?\(?\s*"
    scalar = r"(?:0-?d(?:im\w*)?\b|zero-dim|scalar\b)"
    before = r"\bscalars?\s+(?:\w+(?:,\s*|\s+and\s+)){0,3}"
    empty = r"`*(?:\s*:\s*|\s+)\(\s*\)"
    if re.search(rf"(?i){own}{near}\b{scalar}|{before}{own}|{own}{empty}", text):
        return True
    if _OTHERS_SCALAR.search(text) and not re.search(rf"{own}`*\s*:?\s*[(\[]", text):
        return True
    said = list(clauses(text, name, names)) if names else []
    return any(_SCALAR_FIRST.match(part) or _SCALAR_LAST.match(part) for part in said)


#: How a clause about an argument begins that says so in numbers, whatever shape comes later.
_ZERO_DIM_FIRST = re.compile(
    r"(?i)\s*:?\s*(?:an?\s+|the\s+)?(?:0-?d(?:im\w*)?\b|zero-dim)(?!\s*(?:\w+\s+)?(?:or|per)\b)"
)


def documented_zero_dim(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says of a tensor that it is 0-dim before it gives another one's shape: "t,
    rate: 0-dim, x (B, T)"."""
    return any(_ZERO_DIM_FIRST.match(part) for part in clauses(text, name, names))


def documented_rotation(text: str, name: str) -> bool:
    """Whether ``text`` calls a tensor a rotation: "rotations R1 and R2 (N, 3, 3)", "R: (3, 3)
    rotation"."""
    own = rf"(?<![\w.]){re.escape(name)}\b"
    before = r"\brotations?(?:\s+matri(?:x|ces))?\s+(?:\w+(?:,\s*|\s+and\s+)){0,3}"
    after = r"[\s:]*(?:\([^()]*\)|\[[^\[\]]*\])?[\s,:]*(?:an?\s+|the\s+)?(?i:rotations?)\b"
    return re.search(rf"(?i:{before}){own}|{own}{after}", text) is not None


#: Letters that a name has at least whose plural is looked for (heuristic: "xs" may be another).
_SHORTEST_NOUN = 4


def spaced(name: str) -> str:
    """A pattern for ``name`` in running text: ``zero_point`` is also written "zero point"."""
    return re.escape(name).replace("_", "[_ ]")


def as_written(name: str, names: Collection[str] = ()) -> str:
    """A pattern for how running text writes the parameter ``name``, one of ``names``:
    as :func:`spaced`, ``maturity`` also as "maturities"."""
    noun = len(name) >= _SHORTEST_NOUN and name.isidentifier() and name[-1].isalpha()
    several = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    if not noun or name.endswith("s") or several in names:
        return spaced(name)
    return f"(?:{spaced(name)}|{spaced(several)})"


#: Before a name that another thing is compared with: "pitch in the units of wave, orders (M,)" does
#: not list them. Such words are so long at most.
_COMPARED = re.compile(
    r"(?i)\b(?:units? of|same \w+ as|as|than|like|per)\s+(?:the\s+|that of\s+)?`*$"
)
_COMPARISON = 40


def clauses(text: str, name: str, names: Iterable[str]) -> Iterator[str]:
    """What ``text`` says of the parameter ``name``: from each place that names it to the next one
    that introduces another of ``names``, to an arrow or to the end of the sentence. "row, col:
    (E,) int64" says of both that they are integers."""
    names = list(names)
    others = [as_written(other, names) for other in names if other != name]
    other = f"`*(?:{'|'.join(others)})`*(?![\\w.])" if others else r"(?!)"
    joined = re.compile(rf"(?:[^\S{UNIT_LEFT_OUT}]*(?:,\s*and\b|,|/|\band\b|\bor\b)\s*{other})+")
    introduced = re.compile(rf"(?<![\w.]){other}(?=\s*[:(=]|\s+(?:is|are|in|must|has)\b)")
    for found in re.finditer(rf"(?<![\w.]){as_written(name, names)}(?!\w)`*", text):
        rest = text[found.end() : found.end() + _LONGEST_CLAUSE]
        together = joined.match(rest)
        if together and not _COMPARED.search(
            text, max(0, found.start() - _COMPARISON), found.start()
        ):
            rest = rest[together.end() :]
        rest = re.split(r"\.\s|;|->|→|\n\s*\n", rest + "\n\n")[0]
        yield introduced.split(rest)[0]


#: Before an interval: what lies outside of it is taken as well.
_BY_FORWARD = re.compile(r"(?i)\b(?:limit|clamp|clip|truncat|saturat)\w*\s+(?:\w+\s+){0,3}$")


def documented_interval(text: str, name: str, names: Iterable[str]) -> str:
    """The domain that ``text`` gives for a tensor by an interval, "alpha: (R, S) opacities in
    [0, 1)" or "0 < s <= 1"; "" where it gives none."""
    own = rf"(?<![\w.|]){re.escape(name)}`*(?!\w)"
    number = r"(-?\d+(?:\.\d*)?)"
    if found := re.search(
        rf"(?<![\w.]){number}\s*(?:<|<=|≤)\s*`*{own}\s*(?:<|<=|≤)\s*{number}", text
    ):
        return _INTERVALS.get((float(found.group(1)), float(found.group(2))), "")
    if re.search(rf"\|\s*{re.escape(name)}\s*\|\s*(?:<|<=|≤)\s*1\b", text):
        return "small"
    above = re.search(rf"{own}\s*(?:>=?|≥)\s*1(?:\.0*)?(?![\w.]*\w)", text)
    if above and not _is_one_case(text, above):
        return "above"
    for clause in clauses(text, name, names):
        found = re.search(rf"[\[(]\s*{number}\s*,\s*(?:{number}|\+?(inf|∞|oo)\w*)\s*[\])]", clause)
        if found and not _BY_FORWARD.search(clause[: found.start()]):
            end = math.inf if found.group(3) else float(found.group(2))
            if domain := _INTERVALS.get((float(found.group(1)), end), ""):
                return domain
    return ""


#: "decoding of images in [0, 1]": what an op is computed of, in words.
_COMPUTED_OF = re.compile(
    r"(?i)\b(?:of|for|on|over|takes?|expects?)\s+(?:(?!(?:in)?to\b)\w+\s+){0,2}?(?!outputs|results)"
    r"\w+s\s+in\s*[\[(]\s*(-?\d+(?:\.\d*)?)\s*,\s*(-?\d+(?:\.\d*)?)\s*[\])]"
)


def documented_interval_of_input(text: str) -> str:
    """The domain that ``text`` gives by an interval for what an op is computed of, without a name:
    "decoding of images in [0, 1]"; "" where it gives none, or speaks of what is returned."""
    for sentence in re.split(r"\.\s|;|\n\s*\n", text):
        found = _COMPUTED_OF.search(sentence)
        if found and not re.search(r"(?i)\b(?:return|output|result|yield)|->|→", sentence):
            return _INTERVALS.get((float(found.group(1)), float(found.group(2))), "")
    return ""


#: A word in quotation marks, of one kind or several.
_QUOTED = re.compile(r"""[\"'`]+([A-Za-z_]\w*)[\"'`]+""")


def documented_words(text: str, word: object) -> list[str]:
    """Other words in quotation marks in the paragraphs of ``text`` in which ``word`` stands in
    them: ``"oi"`` beside ``"io"``."""
    paragraphs = (_QUOTED.findall(part) for part in re.split(r"\n\s*\n", text))
    beside = (found for found in paragraphs if word in found)
    return list(dict.fromkeys(one for found in beside for one in found if one != word))


#: "square root of an SPD matrix": what an op is computed of is such a matrix.
_OF_DEFINITE = re.compile(
    r"(?i)\bof (?:an?|the|each|one) (?:real |batch of |stack of )*"
    r"(?:spd|(?:real )?(?:symmetric )?positive[- ]definite) matri(?:x|ces)\b"
)

_MAKES = re.compile(r"(?i)\bparametri[sz]|\bfactors\b")


def documented_definite_input(text: str) -> bool:
    """Whether ``text`` says, without a name, that an op is computed of a positive definite matrix:
    not that it makes one, by its parameters or factors."""
    return any(
        _OF_DEFINITE.search(sentence) and not _MAKES.search(sentence)
        for sentence in re.split(r"\.\s|;|\n\s*\n", text)
    )


@dataclass(frozen=True)
class Range:
    """The numbers that an argument may be.

    Args:
        low, high: the ends.
        low_too, high_too: whether these belong to it.
    """

    low: float = -math.inf
    high: float = math.inf
    low_too: bool = False
    high_too: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return True
        above = value > self.low or (self.low_too and value == self.low)
        return above and (value < self.high or (self.high_too and value == self.high))

    def inside(self, value: float) -> float:
        """A number of the range other than ``value``: half-way to an end, or as far beyond it."""
        if math.isfinite(self.low) and value != self.low:
            return (value + self.low) / 2
        return (value + self.high) / 2 if math.isfinite(self.high) else 2 * value + 1


#: A number, and comparisons of one with a name.
_NUMBER = r"(-?\d+(?:\.\d*)?(?:e-?\d+)?)(?![\w.]*\w)"
_BELOW, _ABOVE = r"\s*(<=|≤|<)\s*`*", r"\s*(>=|≥|>)\s*`*"
_IN = re.compile(rf"\bin\s*([\[(])\s*{_NUMBER}\s*,\s*{_NUMBER}\s*([\])])")
_BETWEEN = re.compile(rf"\b(?:between|from)\s+{_NUMBER}\s+(?:and|to)\s+{_NUMBER}")


def documented_range(text: str, name: str, names: Iterable[str]) -> Range | None:
    """The range that ``text`` gives for a number, "0 < alpha < 1", "alpha in (0, 1]", "tau: > 0",
    "a positive rate"; None where it gives none."""
    own = rf"(?<![\w.|]){re.escape(name)}`*(?!\w)"
    if found := re.search(rf"(?<![\w.]){_NUMBER}{_BELOW}{own}{_BELOW}{_NUMBER}", text):
        low, first, second, high = found.groups()
        return Range(float(low), float(high), first != "<", second != "<")
    if found := re.search(rf"{own}{_BELOW}{_NUMBER}", text):
        return Range(high=float(found[2]), high_too=found[1] != "<")
    if found := re.search(rf"{own}{_ABOVE}{_NUMBER}", text):
        return Range(low=float(found[2]), low_too=found[1] != ">")
    said = [_range_in_words(clause) for clause in clauses(text, name, names)]
    return next((one for one in said if one is not None), None)


def _range_in_words(clause: str) -> Range | None:
    if found := _IN.search(clause):
        first, low, high, second = found.groups()
        return Range(float(low), float(high), first == "[", second == "]")
    if found := _BETWEEN.search(clause):
        return Range(float(found[1]), float(found[2]), True, True)
    if found := re.match(r"[^,.]{0,20}\b(non-?negative|positive)\b", clause):
        return Range(low=0.0, low_too=found[1] != "positive")
    return None


def documented_ends(text: str, name: str, names: Iterable[str]) -> set[float]:
    """The ends of its range that ``text`` includes for a tensor: zero for "t >= 0", zero and one
    for "q: probabilities in [0, 1]". What is said between words, "between 0 and 1", may mean
    either."""
    sign = documented_sign(text, name, names)
    if sign:
        return {0.0} if sign == "nonnegative" else set()
    for clause in clauses(text, name, names):
        if found := _IN.search(clause):
            first, low, high, second = found.groups()
            ends = ((first == "[", low), (second == "]", high))
            return {float(end) for included, end in ends if included}
    return set()


#: The dtype of a tensor of integers directly behind its name; ``bool`` may be that of a flag.
_DTYPE_AT_ONCE = re.compile(
    r"\s*[:(\[]\s*(?:torch\.)?(?:u?int(?:8|16|32|64)|long)(?: tensor)?\s*[),\]]"
)


def documented_dtype(text: str, name: str, names: Iterable[str]) -> str:
    """The kind of tensor that ``text`` says ``name`` is, with its shape or at once: "mask" for
    "event (N,) bool", "index" for "hits: (N, C) int64 successes" and "counts (int64)"; "" where it
    says neither."""
    for clause in clauses(text, name, names):
        if _DTYPE_AT_ONCE.match(clause):
            return "index"
        shape = _ANY_SHAPE.search(clause) or re.match(r"`*\s*[(\[]\s*(?:\.\.\.|…)\s*[)\]]", clause)
        if shape is None:
            continue
        # Then comes another argument, or the next line that begins with some.
        rest = clause[shape.end() :]
        after = re.split(r"\b(?:and|with|at|per|by)\b|\n(?=[^\n:]*\w\s*:)", rest)[0]
        near = " ".join(clause[: shape.start()].split()[-3:] + after.split()[:3])
        if re.search(r"(?i)\bbool(?:ean)?s?\b|\bbooltensor\b", near):
            return "mask"
        if re.search(r"(?i)\b(?:u?int\d{0,2}|long|integers?|indices|longtensor)\b", near):
            return "index"
    return ""


#: "periods: d numbers", "spacing: list of floats", "weights: three numbers, one for each class".
_NUMBERS = re.compile(
    r"(?i)\s*:?\s*(?:an?\s+)?(?:(?:list|sequence|tuple|iterable)\s+of\s+)?(?:(?!no\b|in\b|the\b)\w{1,8}\s+)?"
    r"(?:numbers|floats)\b(?!\s*(?:of\b|[(\[]))"
)


def documented_numbers(text: str, name: str, names: Iterable[str]) -> bool:
    """Whether ``text`` says that ``name`` is several numbers, and gives no shape of a tensor."""
    return any(
        _NUMBERS.match(clause) and not _ANY_SHAPE.search(clause)
        for clause in clauses(text, name, names)
    )


def described(thing: Any) -> str:
    """:func:`prose_of_arguments`, and the texts of the errors that ``thing`` raises: "x must be
    (N, C, L)" describes x as a docstring does."""
    said = prose_of_arguments(thing)
    try:
        refusals = _refusals_in(source_text(thing))
    except Exception:  # of a source that is not there or can't be read: anything
        return said
    return "\n".join([said, *refusals])


def prose(thing: Any) -> str:
    """Docstrings and comments of ``thing``, a function or a class: its own, the comment above it,
    and the docstring of its file where it is the only operator there."""
    own = inspect.cleandoc(getattr(thing, "__doc__", None) or "")  # not that of a base class
    try:
        source = source_text(thing)
    except Exception:
        return without_units(own)
    above = "\n".join(re.findall(r"#\s*(.*)", _comments_above(thing)))
    said = [_written(source, own), above, _of_its_file(thing)]
    return without_units("\n\n".join(filter(None, said)))


def _comments_above(thing: Any) -> str:
    try:
        return inspect.getcomments(thing) or ""
    except Exception:  # of a source that can't be read: anything
        return ""


def _of_its_file(thing: Any) -> str:
    """The docstring of the file that ``thing`` stands in, unless that has several operators."""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    said = getattr(home, "__doc__", None)
    if home is None or not isinstance(said, str):
        return ""
    own = [held for held in vars(home).values() if _is_defined_in(held, home.__name__)]
    for kind in (torch.autograd.Function, torch.nn.Module):
        if sum(issubclass(held, kind) for held in own) > 1:
            return ""
    return inspect.cleandoc(said) if own else ""


def _is_defined_in(thing: Any, module: str) -> bool:
    return isinstance(thing, type) and thing.__module__ == module


def prose_of_arguments(thing: Any) -> str:
    """:func:`prose`; of a class without a docstring with that of the next class that it inherits
    from and that is no library's. Such a base describes arguments, which are the same, but not a
    backward that the class has of its own."""
    said = prose(thing)
    if not isinstance(thing, type) or thing.__dict__.get("__doc__"):
        return said
    home = thing.__module__.partition(".")[0]
    own = (base for base in thing.__mro__[1:] if base.__module__.partition(".")[0] == home)
    inherited = next((base.__doc__ for base in own if base.__dict__.get("__doc__")), None)
    return "\n\n".join(filter(None, [said, inspect.cleandoc(inherited or "")]))


@lru_cache(maxsize=256)
def _written(source: str, own: str) -> str:
    """Docstrings and comments in the source of a definition; ``own`` where it can't be read."""
    comments = re.findall(r"#\s*(.*)", source)
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError):
        return "\n".join([own, *comments])
    documents = [
        ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    documents += [text for text in _bare_texts(tree) if inspect.cleandoc(text) not in documents]
    return "\n".join([*documents, *_of_arguments(tree, textwrap.dedent(source)), *comments])


def _bare_texts(tree: ast.Module) -> Iterator[str]:
    """Strings that stand by themselves in a function, as comments of several lines do."""
    for node in ast.walk(tree):
        alone = node.value if isinstance(node, ast.Expr) else None
        if isinstance(alone, ast.Constant) and isinstance(alone.value, str):
            yield alone.value


def _of_arguments(tree: ast.Module, source: str) -> list[str]:
    """Comments at the ends of lines of a signature that hold one argument: "x: (B, T, D)"."""
    lines = source.splitlines()
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for item in every:
            comment = re.search(r"#\s*(.+)$", lines[item.lineno - 1])
            if comment and [other.lineno for other in every].count(item.lineno) == 1:
                found.append(f"{item.arg}: {comment.group(1)}")
    return found


@lru_cache(maxsize=256)
def _refusals_in(source: str) -> tuple[str, ...]:
    return tuple(_refusals(ast.parse(textwrap.dedent(source))))


def _refusals(tree: ast.AST) -> Iterator[str]:
    """Texts of the errors that are raised, without what an f-string puts in."""
    for node in ast.walk(tree):
        raised = node.exc if isinstance(node, ast.Raise) else None
        told = node.msg if isinstance(node, ast.Assert) else None
        parts = raised.args[:1] if isinstance(raised, ast.Call) else [told] if told else []
        for part in parts:
            texts = part.values if isinstance(part, ast.JoinedStr) else [part]
            constants = [text.value for text in texts if isinstance(text, ast.Constant)]
            yield " … ".join(text for text in constants if isinstance(text, str)) + " ."
