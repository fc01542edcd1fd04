"""What docstrings and comments say of each argument: its shape, in words and symbols.

Common forms are read: ``x: (N, C)``, ``x (N, C)``, "rows of ``x``, [B, T, D]", "B x N x 3",
"(..., n, 2)", "of the shape of probs", "a and b of one shape", and annotations such as
``Float[Tensor, "b t d"]``. What is not clearly said of an argument is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradlint.inputs.documentation import POWER, prose_of_arguments, spaced
from gradlint.inputs.handed_on import texts_where_handed_on
from gradlint.model.op import Op

#: Axes that stand for any number of axes.
ANY = frozenset({"*", "..."})


@dataclass
class Described:
    """What documentation says of one argument.

    Args:
        axes: its axes: symbols, ``=3`` for a number, ``...`` or ``*`` for any number of axes; empty
            where it gives none.
        other: a second form that it allows, ``(N,) or (N, K)``.
        like: the arguments of which one shape is said: itself and others.
        words: the words that are said of it, in lower case.
    """

    axes: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    words: str = ""

    @property
    def rank(self) -> int | None:
        """Its number of axes; None where that is not said, or free."""
        return None if not self.axes or ANY & set(self.axes) else len(self.axes)


#: An axis in brackets: a name, a number, a sum or multiple of these, or any number of axes, which
#: may have a name: "(*batch, n, n)".
_ONE_AXIS = (
    rf"(?:\.\.\.|…|\*(?:[A-Za-z]\w{{0,11}})?|{POWER}"
    r"|(?:\d\s*\*?\s*)?[A-Za-z]\w{0,11}(?:\s*(?://|[-+*/])\s*\w{1,11}){0,2}|\d{1,3})"
)
_BRACKETS = re.compile(
    rf"(?<![\w.])(?P<open>[(\[])\s*(?P<axes>{_ONE_AXIS}(?:\s*,\s*{_ONE_AXIS}){{0,6}})\s*(?P<end>,?)"
    r"\s*[)\]]"
)
#: "(genes,)".
_ALONE = re.compile(r"[(\[]\s*([a-z]\w{0,11})\s*,\s*[)\]]")
#: "N x 3", "B×N×3", "NxD".
_BY = r"(?:\s+x\s+|\s*×\s*|(?<=[A-Z0-9])x(?=[A-Z0-9]))"
_TIMES = re.compile(
    rf"(?<![\w.])(?P<axes>(?:[A-Z]\w{{0,3}}?|[a-z]|n_\w{{1,9}})"
    rf"(?:{_BY}(?:[A-Z]\w{{0,3}}?|\d{{1,3}}|[a-z]|n_\w{{1,9}})){{1,5}}(?![\w(]))"
)
#: ``Float[Tensor, "batch time dim"]``.
_JAXTYPED = re.compile(r"\w+\[[\w.]+,\s*[\"']([\w\s.*#=+-]*)[\"']\s*\]")
#: Words in brackets that are types or remarks, not axes.
_NO_AXES = frozenset(
    (  # noqa: SIM905
        "tensor float int bool str optional default none true false list tuple longtensor "
        "floattensor torch required callable number array scalar long integer string exclusive "
        "inclusive see e.g i.e not or and no yes float32 float64 int64 int32 complex ndarray"
    ).split()
)
#: Lower-case letters in brackets that are an element's place or coordinates rather than axes.
_PLACES = (frozenset("ijk"), frozenset("xyz"), frozenset("uv"))
#: Lower-case words that name an axis.
_AXIS_WORDS = re.compile(
    r"[a-z]\d?|in|out|b(?:atch|sz|s)(?:_size)?|bh?|seq(?:_?len)?(?:_[qk])?|[tqks]_?len|len(?:gth)?|time|"
    r"(?:\w+_)?(?:dim|features?|channels?|size|heads?|len|length|classes)|n_?\w*|num_\w+|tokens?|"
    r"height|width|depth|heads|hidden|vocab|dims?|rows|cols|columns|points|nodes|edges|steps|"
    r"features?|channels?|classes|chans?|frames?|freqs?|samples?|dout|din|d_\w+|c_?in|c_?out|rank"
)
#: Between a name and a shape: the shape is that of something else, or it is a range.
_ELSEWHERE = re.compile(
    r"(?i)->|→|=>|\b(?:to|into|onto|from|over|returns?|gives?|yields?|outputs?|maps|mapped|between|in|"
    r"within|inside|range|reshaped|flattened|times|against|instead|becomes?)\b|[=<>@]"
)
#: … and in running text, where a shape may be of a thing that has no name.
_OF_ANOTHER = re.compile(rf"{_ELSEWHERE.pattern}|(?i:\b(?:with|by|for|at|as|where|per|and|or)\b)")
#: … unless these words end the gap.
_OF_SHAPE = re.compile(
    r"(?i)(?:shaped?|size[sd]?|dim(?:ension)?s?|layout)\s*(?:of|is|are|as|:|=)?\s*$"
)
#: Between shapes: not a plain list.
_OTHER_ORDER = re.compile(r"(?i)\b(?:by|with|from|under|of|for|per|in|on|at|optional)\b")
#: End of a remark: of a sentence, a paragraph, or before the next entry.
_END_OF_REMARK = re.compile(r"\n\s*\n|\.\s|;|\n\s*(?::|\w+\s*(?:\([^()\n]*\))?\s*:)")
#: "(K, 2; y before x)": a remark on the axes, in their brackets.
_REMARK_ON_AXES = re.compile(r"([(\[]\s*\w+(?:\s*,\s*\w+)+\s*),?\s*;[^()\[\]\n]*([)\]])")
#: Brackets in backticks, which may hold names of several words.
_MARKED = re.compile(r"`[(\[][^()\[\]`\n]*,[^()\[\]`\n]*[)\]]`")
#: Start of what is said of one argument: ``x: …``, ``x (Tensor): …``, ``:param x: …``.
_ENTRY = (
    r"(?m)^(?P<indent>[^\S\n]*)(?:[#*-]\s*|(?:@|:)param\s+(?:[\w.\[\]]+\s+)?|:arg\s+)?`*(?P<names>{names}"
    r"(?:`*(?:[^\S\n]+\([^()\n]*\))?\s*[,/]\s*`*(?:{names}))*)`*"
    r"(?P<type>[^\S\n]*\((?:[^()\n]|\([^()\n]*\))*\))?[^\S\n]*(?:\:(?!\:)|--|–|[^\S\n]-[^\S\n])"
    r"(?P<body>[^\n]*(?:\n(?P=indent)[^\S\n]+[^\n]*){{0,4}})"
)
_TYPE_IN_BRACKETS = re.compile(
    r"\(\s*(?:u?int\d{0,2}|b?float\d{0,2}|bool|long|complex\d{0,3}|double|half|optional)\s*\)"
)
_TYPED = re.compile(r"\b(?:real|float\w*|int\w*|bool\w*|long|mask|index|indices)\b")
#: What ends the words that go with the next name.
_PHRASE = re.compile(r"[,.;:()\[\]\n]|(?<![<>])=|\b(?:of|at|by|with|to|in|and|for|over|is|the)\b")
_NEGATED = re.compile(
    r"\b(?:not|never|nor|without|no)\s+(?:necessarily\s+|be\s+|need(?:ed)?\s+|to\s+|have\s+){0,4}\w+|"
    r"\b(?:any|either|both) signs?\b|\bun(?:sorted|normali[sz]ed|constrained)\b"
)
_ONE_SHAPE = (
    r"(?:(?:the |a )?(?:same|equal|one|identical|common|matching) (?:shapes?|size|dimensions)\b)"
)

#: "same shape" that is said of an argument itself, as a part of its entry, and of no other thing.
_SAME_SHAPE = re.compile(
    r"(?i)(?:^|[,:(]|\bof\b|\bwith\b)\s*(?:(?:of|with) )?(?:the )?same (?:shape|size)\s*"
    r"(?=$|[,.;()])"
)
#: The start of an entry of a plain number or text, which has no shape.
_PLAIN = re.compile(r"(?i)\W*(?:python )?(?:int|float|bool|str|string|number|optional)\b")
#: ``forward(scores, relevance): both (..., L)``: a call, and what is said of all its arguments.
_CALL = re.compile(r"\w\((?P<given>[^()\n]*)\)`*:\s*(?P<count>both|all)\b(?P<rest>[^;\n]*)")


def said_of_arguments(op: Op) -> dict[str, Described]:
    """What the docstrings, comments and annotations of ``op`` say of each of its arguments; where
    they give no shapes, what is said where the arguments are handed on."""
    names = list(op.signature.parameters) if op.signature is not None else []
    things = [op.defining, getattr(op.function, "forward", None)]
    text = "\n".join(
        dict.fromkeys(prose_of_arguments(thing) for thing in things if thing is not None)
    )
    found = arguments_in(text, names) if text else {}
    if not any(item.axes for item in found.values()):
        for other, given in texts_where_handed_on(op):
            for name, item in arguments_in(other, sorted(given)).items():
                if item.axes:
                    found[name] = item
    return found


def arguments_in(text: str, names: Sequence[str]) -> dict[str, Described]:
    """What ``text`` says of each of the arguments ``names``.

    Symbols that occur in the shapes of several arguments mean one size. What is not clearly said
    of an argument is left out: a shape after "to", "returns" or an arrow is that of a result, and
    one with another argument's name in between that of the other.
    """
    text = _with_brackets(_PRIMED.sub(r"\1_prime", text), names)
    text = _MARKED.sub(_initials, _REMARK_ON_AXES.sub(r"\1\2", text))
    entries = _entries(text, names)
    found = {}
    for name in names:
        item = Described(words=_words_of(name, text, entries, names))
        for shape in _shapes_of(name, text, entries.get(name, ""), names):
            if not item.axes:
                item.axes = shape
            elif shape != item.axes and not item.other:
                item.other = shape
        found[name] = item
    for name, shape in _of_calls(text, names):
        found[name].axes = found[name].axes or shape
    groups = _of_one_shape(text, names, entries)
    groups += _of_same_shape(found, entries)
    for group in groups:
        known = next((found[name].axes for name in group if found[name].axes), ())
        for name in group:
            found[name].like = found[name].like or group
            found[name].axes = found[name].axes or known
    called = _called_complex(text, names)
    for one, other in _listed_after(text, names):
        if one in called and not _TYPED.search(found[other].words):
            found[other].words += " complex"
            called.add(other)
    for name, words in _shared_words(text, names):
        found[name].words += f" _ {words}"
    _make_odd_or_even(found, text)
    return {name: item for name, item in found.items() if item.axes or item.like or item.words}


#: An axis with a prime in a shape: "(n, nsample, c')".
_PRIMED = re.compile(r"(?<=[(\[,\s])([A-Za-z]\w{0,5})['′](?=\s*[,)\]])")

#: Of a size: "odd k", "an even D", "D even", "k must be odd".
_PARITY = re.compile(
    r"\b(?P<before>odd|even)\s+(?P<size>[A-Za-z]\w{0,11})\b"
    r"|(?<![\w.])(?P<named>[A-Za-z]\w{0,11})\s*,?\s*\(?(?:(?:is|must be|has to be|should be)\s+)?"
    r"(?P<after>odd|even)(?=\s*(?:$|[,.;)\n]))"
)


def _make_odd_or_even(found: dict[str, Described], text: str) -> None:
    """Give sizes that ``text`` calls odd or even such a formula, unless others follow from them."""
    for match in _PARITY.finditer(text):
        size = match["size"] or match["named"]
        formula = f"2*{size}" + ("+1" if (match["before"] or match["after"]) == "odd" else "")
        described = [item for item in found.values() if size in item.axes]
        related = re.compile(rf"(?<!\w){re.escape(size)}(?!\w)")
        axes = [axis for item in found.values() for axis in (*item.axes, *item.other)]
        if any(related.search(axis) and axis != size for axis in axes):
            continue
        for item in described:
            item.axes = tuple(formula if axis == size else axis for axis in item.axes)


def _with_brackets(text: str, names: Sequence[str]) -> str:
    """``text`` with brackets around shapes that are listed without: "x N C L, G C C, b C". One
    alone may be a noun with an adjective, and is left, unless it has several axes."""
    every = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    if not every:
        return text
    listed = re.compile(
        rf"(?m)(?:(?<=, )|(?<=; )|(?<=^)|(?<=# ))(?P<name>{every}) "
        r"(?P<axes>(?:[A-Z]|\d+)(?: (?:[A-Z]|\d+)){0,5})(?=\s*(?:[,;.]|->|→|$)| in\b)"
    )

    def bracketed(line: str) -> str:
        found = list(listed.finditer(line))
        several = len(found) > 1 or any(" " in match["axes"] for match in found)
        return listed.sub(_in_brackets, line) if several else line

    return "\n".join(map(bracketed, text.split("\n")))


def _in_brackets(match: re.Match[str]) -> str:
    axes = match["axes"].split()
    return f"{match['name']} ({', '.join(axes)}{',' * (len(axes) == 1)})"


def _initials(shape: re.Match[str]) -> str:
    """A shape in which names of several words are their initials: ``(batch, max_len + 1)`` may be
    written as ``(batch, max target length + 1)``."""

    def short(words: re.Match[str]) -> str:
        parts = words[0].split()
        joined = set(parts) & {"or", "and", "of", "by", "with", "if", "in"}
        return words[0] if joined else "".join(part[0] for part in parts)

    return re.sub(r"\b[a-z]+(?: [a-z]+)+\b", short, shape[0])


def jaxtyped(annotation: str) -> tuple[str, ...]:
    """The axes in an annotation such as ``Float[Tensor, "b t 3"]``; empty where there are none."""
    match = _JAXTYPED.search(annotation)
    return axes_in_words(match[1]) if match else ()


def axes_in_words(words: str) -> tuple[str, ...]:
    """The axes in the words of such an annotation, of which ``*batch`` and ``...`` are any
    number."""
    axes = [axis.split("=")[-1].lstrip("#?_") or "_" for axis in words.split()]
    return _as_axes("..." if axis[0] in "*." else axis for axis in axes)


def _called_complex(text: str, names: Sequence[str]) -> set[str]:
    """The arguments before which ``text`` has the adjective: "complex image (B, H, W)", not "water
    (V,) complex", which says nothing of the next one."""
    every = "|".join(re.escape(name) for name in names) or "(?!)"
    found = re.finditer(rf"(?i:\bcomplex(?:-valued)?)\s+(?:[\w-]+\s+){{0,2}}?({every})\b", text)
    return {match[1] for match in found}


def _listed_after(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs in a list with shapes, "image (B, H, W), coils (C, H, W)": the adjectives of the first
    are those of the second."""
    every = "|".join(re.escape(name) for name in names) or "(?!)"
    brackets = r"\s*\([^()]*\)"
    for match in re.finditer(rf"\b({every}){brackets}(?=(?:,| and)\s+({every}){brackets})", text):
        yield match[1], match[2]


def _shared_words(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name → what is said behind a shape that it shares with the next: "A, B (n, n) symmetric"."""
    every = "|".join(re.escape(name) for name in names) or "(?!)"
    listed = rf"(?<![\w.])((?:(?:{every})(?:\s*,\s*|\s+and\s+))+)(?:{every})"
    for match in re.finditer(rf"{listed}\s*[(\[][^()\[\]]*[)\]]([^,.;:\n()\[\]]*)", text):
        words = _NEGATED.sub(" ", match[2].lower()).strip()
        for name in re.findall(rf"\b(?:{every})\b", match[1]) if words else ():
            yield name, words


def _entries(text: str, names: Sequence[str]) -> dict[str, str]:
    """Argument → what stands under its name, as in ``x (Tensor): rows, (N, D)``."""
    every = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    found: dict[str, str] = {}
    if not every:
        return found
    apart = _one_a_line(text, every)
    for match in re.finditer(_ENTRY.format(names=f"(?:{every})"), apart):
        lines = str(match["body"]).split("\n")
        kept = lines[:1]
        for line in lines[1:]:
            if re.match(rf"\s*(?:[#*-]\s*)?`*(?:{every})`*\s*(?:\(|:)", line):
                break  # the next argument, indented further
            kept.append(line.strip())
        # Of names that share what is said each may have its shape: "a (B, n), b (B, m): …".
        listed = re.findall(rf"\b({every})\b`*(?:\s+(\([^()\n]*\)))?", match["names"])
        for name, shape in listed:
            found.setdefault(name, f"{shape or match['type'] or ''} {' '.join(kept)}".strip())
    return found


def _one_a_line(text: str, every: str) -> str:
    """``text`` with a line for each of the entries that share one: "x: (N,) > 0; y: (N,), t: (T,)
    in years, positive" says of ``t`` alone that it is positive."""
    next_one = re.compile(rf"[;,][^\S\n]+(?=`*(?:{every})`*[^\S\n]*(?:\([^()\n]*\))?:[^\S\n])")

    def apart(line: str) -> str:
        first = line.find(":")  # before it stand names that share what is said after it
        indent = line[: len(line) - len(line.lstrip())]
        return line[:first] + next_one.sub("\n" + indent, line[first:]) if first >= 0 else line

    return "\n".join(map(apart, text.split("\n")))


def _shapes_of(name: str, text: str, entry: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The shapes that ``text`` gives for an argument: at first the one, then another form of it."""
    if entry:
        stop = re.search(r"->|→|(?i:\breturns?\b)", entry)
        own = entry[: stop.start()] if stop else entry
        for match, axes in _candidates(own, name, names):
            gap = re.sub(r"[()\[\]`:]|\b(?:torch\.)?Tensor\b", " ", own[: match.start()])
            shaped = bool(_OF_SHAPE.search(gap)) or not gap.strip()
            if (shaped or not _ELSEWHERE.search(gap)) and _plausible(match, axes, shaped=True):
                return [axes, *_second_form(own[match.end() :], name, names)]
    others = [other for other in names if other != name and len(other) > 1]
    for place in _places(name, text):
        rest = _END_OF_REMARK.split(text[place.end() : place.end() + 140])[0]
        of_result = re.search(r"\b(?:of|for|from)\s+(?:the\s+)?`*$", text[: place.start()])
        for match, axes in _candidates(rest, name, names)[:1]:
            gap = re.sub(r"(?:>=?|≥)\s*0(?![.\w])", " ", rest[: match.start()])
            gap = _TYPE_IN_BRACKETS.sub(" ", gap)  # "scales (float) and zeros (int8): (O, G)"
            shaped = bool(_OF_SHAPE.search(gap))
            between = _without_list(gap, names)
            told = of_result and re.search(r"\b(?:is|are|has|have)\b", gap)  # "the norm of x is …"
            if told or re.search(r"[()\[\]]", gap) or len(gap) > 60:
                continue
            if any(re.search(rf"\b{re.escape(other)}\b", between) for other in others):
                continue
            if "," in between and between.strip() != "," and not shaped:
                continue
            cleared = re.sub(r"\b(?:with|of|in)\s*$", " ", _OF_SHAPE.sub(" ", between))
            if _OF_ANOTHER.search(cleared if shaped else between):
                continue
            is_value = "=" in gap  # unless with symbols: "size = (3, 4)"
            shaped = shaped and not is_value
            close = not gap.strip(" `:")
            # "mu (cells, genes), theta (genes,)": brackets of one are those of a shape.
            shaped |= close and not {*_ALONE.findall(text)}.isdisjoint(axes)
            if _plausible(match, axes, shaped=shaped, close=close):
                return [axes, *_second_form(rest[match.end() :], name, names)]
    return _of_noun(name, text, names)


def _of_noun(name: str, text: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The shape of a noun that ``name`` is short for: "quaternions (N, 4)" of ``quat``."""
    short = re.escape(name.rstrip("s")).replace("_", "[-_ ]")
    if len(name) < 3:
        return []
    for place in re.finditer(rf"(?<![\w.]){short}[a-z]*`*,?\s+(?=[(\[])", text):
        noun = place[0].strip(" `,\n")
        sentence = re.split(r"\n\s*\n|\.\s|;", text[: place.start()])[-1]
        if noun in names or re.search(r"(?i)->|→|\b(?:to|into|returns?|as)\b", sentence):
            continue
        for match, axes in _candidates(text[place.end() : place.end() + 80], name, names)[:1]:
            if not match.start() and _plausible(match, axes, shaped=False):
                return [axes]
    return []


def _places(name: str, text: str) -> Iterator[re.Match[str]]:
    """Where an argument is named; ``key_mask`` is also named by "key mask"."""
    for place in re.finditer(rf"(?<![\w.|]){spaced(name)}(?![\w(])`*", text):
        times = name == "x" and re.search(r"\w\s$", text[: place.start()])
        if not (times and re.match(r"\s(?:[A-Z]\b|\d)", text[place.end() :])):  # "N x 3"
            yield place


def _without_list(gap: str, names: Sequence[str]) -> str:
    """``gap`` without the names that share what follows: ", k and v" in "q, k and v (B, T, D)"."""
    every = "|".join(re.escape(name) for name in names)
    return re.sub(rf"^(?:`*\s*(?:,\s*(?:and\s+)?|/|\band\b|&|\+)\s*`*(?:{every})\b`*)+", "", gap)


def _second_form(rest: str, name: str, names: Sequence[str]) -> list[tuple[str, ...]]:
    found = _candidates(rest, name, names)[:1]
    return [axes for match, axes in found if re.fullmatch(r"\W*\bor\b\W*", rest[: match.start()])]


def _candidates(
    text: str, name: str, names: Sequence[str]
) -> list[tuple[re.Match[str], tuple[str, ...]]]:
    """What looks like a shape in ``text``, in order."""
    found: list[tuple[re.Match[str], tuple[str, ...]]] = []
    for match in _BRACKETS.finditer(text):
        axes = [re.sub(r"\s+", "", axis).replace("^", "**") for axis in match["axes"].split(",")]
        symbol = axes[0][0].isupper() or (match["open"] == "[" and "**" in axes[0])
        lone = len(axes) == 1 and not match["end"] and not symbol
        if lone or any(axis.lower() in _NO_AXES for axis in axes) or "0" in axes or name in axes:
            continue
        if all(axis in names for axis in axes) and len(axes) > 1:
            continue  # a pair of arguments
        found.append((match, _as_axes(axes)))
    for match in _TIMES.finditer(text):
        axes = re.split(_BY, match["axes"])
        clash = "x" in match["axes"] and "x" in names and not axes[-1].isdigit()
        if not clash and not any(axis in names for axis in axes):
            found.append((match, _as_axes(axes)))
    found += [(m, axes_in_words(m[1])) for m in _JAXTYPED.finditer(text) if m[1].split()]
    return sorted(found, key=lambda pair: pair[0].start())


def _as_axes(axes: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"={axis}" if axis.isdigit() else "..." if axis == "…" or axis[0] == "*" != axis else axis
        for axis in axes
    )


def _plausible(
    match: re.Match[str], axes: tuple[str, ...], *, shaped: bool, close: bool = True
) -> bool:
    """Whether these are axes, and no value, range or pair of things."""
    named = [axis for axis in axes if axis[0] != "=" and axis not in ANY]
    if not named:
        # "gains (3,)" is a shape, "gains = (3, 4)" a value, "(0, 1)" and "[-1, 1]" are ranges.
        many = all(axis in ANY or int(axis[1:]) > 1 for axis in axes)
        return (many and close) or (shaped and bool(axes))
    if any(axis[0].isupper() for axis in named) or set(axes) & ANY:
        return True
    if "open" in match.re.groupindex and match["open"] == "[" and len(axes) > 1:
        return True
    if any(set(named) <= places for places in _PLACES):
        return shaped
    if _are_elements(named):
        return False
    terms = [
        term.lstrip("0123456789").removesuffix("_prime")
        for axis in named
        for term in re.split(r"[-+*/]+", axis)
    ]
    known = sum(not term or bool(_AXIS_WORDS.fullmatch(term)) for term in terms)
    # "emissions (batch, time, tags)": most of them are axes.
    return shaped or known == len(terms) or (close and 2 * known > len(terms))


#: Names of numbers rather than of axes: of coordinates, "(fx, fy, cx, cy)", and of several alike.
_COORDINATE, _NUMBERED = re.compile(r"[a-z]{1,2}[xyz]"), re.compile(r"[a-z]\d")

#: Numbered names of at least two letters that are no axes (heuristic: "(n1, d2)" may be two).
_MOST_NUMBERED_AXES = 3


def _are_elements(named: Sequence[str]) -> bool:
    """Whether these are the elements of a vector: "(fx, fy, cx, cy)", "(k1, k2, p1, p2)"."""
    if len(named) > 1 and all(map(_COORDINATE.fullmatch, named)):
        return True
    several = len(named) > _MOST_NUMBERED_AXES and len({name[0] for name in named}) > 1
    return several and all(map(_NUMBERED.fullmatch, named))


def _of_one_shape(
    text: str, names: Sequence[str], entries: dict[str, str]
) -> list[tuple[str, ...]]:
    """Groups of arguments of which one shape is said."""
    every = "|".join(re.escape(name) for name in names) or "(?!)"
    one = rf"`*\b(?:{every})\b`*"
    found = []
    listed = rf"({one}(?:\s*(?:,\s*(?:and\s+)?|/|\band\b)\s*{one})+)\s+"
    filler = "(?:are |all |both |tensors |maps )*"
    for match in re.finditer(rf"(?i){listed}{filler}(?:of|have|share|with) {_ONE_SHAPE}", text):
        found.append(tuple(re.findall(rf"\b(?:{every})\b", match[1])))
    reference = rf"(?:{_ONE_SHAPE} (?:as|of)|shaped? (?:of|like|as)|\blike)\s+(?:that of )?{one}"
    for name, entry in entries.items():
        named = re.search(rf"(?i){reference}", entry)
        if named:
            other = re.findall(rf"\b(?:{every})\b", named[0])[-1]
            found.append((other, name))
    for match in re.finditer(
        rf"(?i)({one})(?:(?!->|→)[^.;\n()]){{0,30}}?"
        rf"\b(?:{_ONE_SHAPE} as|shape of|shaped like)\s+({one})",
        text,
    ):
        pair = [re.sub("`", "", part) for part in match.groups()]
        if pair[0] in names and pair[1] in names:
            found.append((pair[1], pair[0]))
    for match in re.finditer(rf"(?i)\ball\s+(?:(?:of|have|share)\s+)?{_ONE_SHAPE}", text):
        line = re.split(r"[.\n]", text[: match.start()])[-1]
        group = tuple(n for n in names if re.search(rf"(?<![\w.]){re.escape(n)}(?!\w)", line))
        found.append(group)
    return [tuple(dict.fromkeys(group)) for group in found if len(set(group)) > 1]


def _of_same_shape(
    found: dict[str, Described], entries: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Arguments of "the same shape", each with the first tensor that is described before it."""
    before: list[str] = []
    for name, entry in entries.items():
        if before and not found[name].axes and _SAME_SHAPE.search(_NEGATED.sub("_", entry)):
            yield next((other for other in before if found[other].axes), before[0]), name
        if found[name].axes or not _PLAIN.match(entry):
            before.append(name)


def _of_calls(text: str, names: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Arguments of a call of which one shape is said, "forward(a, b): both (N, C)"."""
    for match in _CALL.finditer(text):
        given = [re.split(r"[:=]", part)[0].strip("` *") for part in match["given"].split(",")]
        if set(given) - set(names) or (match["count"] == "both" and len(given) != 2):
            continue
        for shown, axes in _candidates(match["rest"], "", names)[:1]:
            gap = _OF_SHAPE.sub(" ", match["rest"][: shown.start()])
            if not re.sub(r"\b(?:of|with|are|have|tensors)\b|`", " ", gap).strip():
                yield from ((name, axes) for name in given)


def shapes_in_order(text: str, count: int) -> list[tuple[str, ...]]:
    """``count`` shapes that the first sentence with shapes gives, of no argument by name: those
    of ``count`` arguments in order, as in "waypoints (T, d) and spheres (K, d), (K,)". Empty where
    there are more or fewer, or where the sentence tells of a result."""
    sentences = re.split(r"\n\s*\n|\.\s", text.strip())
    sentence = next((item for item in sentences if _candidates(item, "", ())), "")
    _, named, listed = sentence.partition("shapes (")  # what stands before is a formula, or names
    sentence = f"({listed}" if named else sentence
    found = _candidates(sentence, "", ())
    told = sentence[found[0][0].start() :] if found else ""
    if re.search(r"(?i)->|→|\b(?:to|returns?|into|as)\b", sentence) or _OTHER_ORDER.search(told):
        return []
    shapes = [axes for match, axes in found if _plausible(match, axes, shaped=False)]
    return shapes if len(shapes) == len(found) == count > 1 else []


#: "All (N, C)", "all of shape (B, T)": of arguments that are not described by name.
_OF_ALL = re.compile(
    r"(?:^|(?<=[.;:,(]\s)|(?<=\n))\s*[Aa]ll\s+"
    r"(?:(?:are|of|have|with|the|shapes?|tensors|arguments|inputs|others?)\s+){0,4}(?=[(\[])"
)


def shape_of_all(text: str) -> tuple[str, ...]:
    """The shape that ``text`` gives for all arguments of which it gives no other: "All (N, C);
    edge_index (2, E)"; empty where there is none."""
    for match in _OF_ALL.finditer(text):
        for shown, axes in _candidates(text[match.end() :][:80], "", ())[:1]:
            if not shown.start() and _plausible(shown, axes, shaped=True):
                return axes
    return ()


def shape_before_arrow(text: str) -> tuple[str, ...]:
    """The only shape before an arrow in the first line of ``text`` that has shapes on both sides of
    one: of what an op takes, "timestamps (batch, 1) -> (batch, hidden)". Empty where there is no
    such line."""
    for line in text.splitlines():
        before, arrow, after = re.sub("→", "->", line).partition("->")
        taken, returned = (_candidates(part, "", ()) for part in (before, after))
        if arrow and taken and returned:
            match, axes = taken[0]
            return axes if len(taken) == 1 and _plausible(match, axes, shaped=False) else ()
    return ()


def only_shape(text: str) -> tuple[str, ...]:
    """The only shape in ``text``, whatever it is said of; empty where there are more, or none."""
    shapes = [
        axes for match, axes in _candidates(text, "", ()) if _plausible(match, axes, shaped=False)
    ]
    return shapes[0] if len(shapes) == 1 else ()


def _words_of(name: str, text: str, entries: dict[str, str], names: Sequence[str]) -> str:
    """What is said of an argument, without what is denied of it."""
    parts = [entries.get(name, "")]
    others = [other for other in names if other != name]
    every = "|".join(re.escape(other) for other in others) or "(?!)"
    for place in _places(name, text):
        before = _PHRASE.split(text[max(place.start() - 40, 0) : place.start()])[-1]
        rest = re.split(r"[.;\n]\s|\n|;|->|→", text[place.end() : place.end() + 60])[0]
        rest = re.sub(r"^\s*[(\[][^()\[\]]*[)\]]", "", rest)  # its shape
        after = re.split(
            rf",(?!\s*1[)\]])|(?<![<>])=|\b(?:{every})\b|\b(?:and|with|of|at|by|to|onto|into|for)\b",
            rest,
        )[0]
        parts.append(f"{before if len(before.split()) <= 4 else ''} _ {after}")
    return " ".join(_NEGATED.sub(" ", " ".join(parts).lower()).split())
