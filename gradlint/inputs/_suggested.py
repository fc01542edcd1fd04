"""Inputs guessed otherwise, for a gradient that is wrong at those guessed first.

An op may rely on what its callers always pass: a covariance is symmetric, a mask holds zeros and
ones, targets sum to one. Forward takes other values by accident, and backward is wrong there. A
name alone is too little to guess by from the start, since many a fault hides at such values: a
transposition at symmetric matrices. It is enough to ask, once a gradient has been found wrong,
whether it is right there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gradlint.inputs import _names
from gradlint.inputs._attempt import Trial, attempt, process_state_restored
from gradlint.inputs._domain_repairs import with_domain
from gradlint.inputs._moves import (
    all_like_returned,
    like_returned,
    other_ranks,
    with_rank,
    without_batch,
)
from gradlint.inputs._plan import Plan, TensorGuess, ValueGuess
from gradlint.inputs._search import Search
from gradlint.inputs.described import ANY, said_of_arguments
from gradlint.inputs.documentation import (
    denies_symmetry,
    documented_dtype,
    prose,
    without_denied_symmetry,
)
from gradlint.inputs.domains import OF_SQUARES, worded
from gradlint.inputs.handed_on import handed_on
from gradlint.inputs.members_apart import sizes_taken_apart
from gradlint.model.op import Op
from gradlint.targets.nodes import source_text

#: Domain → names of parameters that have such values in many ops, and other ones in some.
_BY_NAME = (
    (
        "spd",
        "*cov* sigma sigma_* *_sigma *prec prec_* precision* *kernel k k_* gram* *_gram "
        "lap laplacian* *_laplacian adj* *_adj *adjacency* hess* *_hess metric* *affinity* "
        "*similarity* *stiffness* q r p",
    ),
    ("orthogonal", "r r_* *_r rot* *_rot q q_* *_q *basis *frame"),
    ("lower", "l l_* *_l *chol* *tril* lower*"),
    ("upper", "*triu* upper*"),
    ("skew", "*skew* *_hat omega* *antisym*"),
    ("rows", "*target* *teacher* *prob* *dist pi mix* *_mix *mixture* *attn* soft_*"),
    ("signs", "y y_* *label* *sign* *target* spin* *polarity"),
    (
        "binary",
        "*mask* *valid* *present* *observed* obs* keep* *active* *alive* *indicator* *flag* "
        "*event* *missing* *target* *label* y y_* gt",
    ),
    ("ordered", "*times ts *knots* *edges *bins *breaks* *breakpoints *sorted*"),
    ("sizes", "*count* *length* *_len *lens *duration* n_*"),
    # Quantities that have no sign, of physics, statistics, signals and money.
    (
        "positive",
        "kappa kappa_* *concentration* conc rate rates *_rate *intensity* *density mass masses "
        "*_mass *radius *radii dist dists *distance* *wavelength* freq freqs *frequency *energy "
        "*temperature temp *_temp *pressure* *thickness *depth *volatility vol strike spot price "
        "prices *_price df dof *half_life *bandwidth *variance *magnitude* mag *power *powers "
        "spec *spectrum *spectrogram *psd tau tau_* *_tau dt *lengthscale* length_scale* "
        "*viscosity *conductivity *permeability *modulus",
    ),
)

#: Triangular matrices that forward may take in any shape; other names suggest a kind of matrix only
#: where forward needs a square one: an attention has a Q, and layers have kernels.
_TRIANGULAR = "l l_* *_l *chol* *tril* *triu*"

#: Domains for what backward takes as a constant: labels, masks, targets. At such values the product
#: with an input is hard to tell from the quotient.
_OF_CONSTANTS = frozenset({"rows", "signs", "binary"})

#: What a sentence says that tells of what an op is given, and not of what it returns.
_RELIES = re.compile(
    r"(?i)\b(?:assum|expect|requir|must\b|already\b|comes?\b|upstream\b|callers?\b|exploit|rel(?:y|ies)\b"
    r"|known to be|undirected\b|\+?-1 (?:or|and) \+?1|±1|[-{(\[]1, ?\+?1)"
)
_RETURNS = re.compile(r"(?i)\b(?:return|output|result|yield|produc)")

#: Domain → words that only such sentences are searched for, beside those of ``domains.WORDS``.
_BY_WORD = (
    ("spd", r"undirected|symmetry|self-adjoint"),
    ("skew", r"skew|antisymmetric"),
    ("signs", r"\+?-1 (?:or|and) \+?1|±1|\{-1, ?\+?1\}|\(-1, ?\+1\)"),
    ("binary", r"\bbinary\b|\{0, ?1\}|0 or 1|zeros and ones|0/1"),
    ("lengths", r"(?:l2|unit)[- ]?normali[sz]ed|unit (?:norm|length)"),
    ("rows", r"normali[sz]ed weights|weights .{0,20}normali[sz]ed|sum to (?:1|one)"),
)

#: How documentation says that matrices are square.
_SQUARE = re.compile(r"(?i)(?<!non-)(?<!not )(?<!non )\bsquare[- ]matri(?:x|ces)")

#: Domains of integers.
_OF_INTEGERS = frozenset({"permutation", "sizes"})

#: Error of the engine for the gradient of what is no tensor, and the place of that in the call.
_OF_A_NUMBER = re.compile(r"returned a gradient different than None at position (\d+)")

#: Other domains and other shapes that are tried at most, and attempts to make a shape run
#: (heuristic: what a name suggests is among the first).
MOST, MOST_SHAPES, MOST_REPAIRS = 14, 6, 8


@dataclass(frozen=True)
class Suggested:
    """Another domain for one parameter.

    Args:
        name: of the parameter.
        domain: one of ``domains``.
        reason: what suggests it: "its name", "the source", or what backward returns.
    """

    name: str
    domain: str
    reason: str


def suggested(search: Search, plan: Plan) -> list[Suggested]:
    """What names and sentences suggest, those of names first."""
    guesses = dict(plan.tensors())
    tensors = list(guesses)
    found = [
        Suggested(name, domain, "its name")
        for domain, words in _BY_NAME
        for name, guess in guesses.items()
        if _names.matches(words, name) and _fits(name, guess, domain)
    ]
    found += [Suggested(n, "permutation", "its name") for n in tensors if _names.permutes(n)]
    op = search.op
    owner = op.function or (type(op.module) if op.module is not None else op.defining)
    text = prose(owner) if owner is not None else ""
    found = [item for item in found if item.domain != "spd" or not denies_symmetry(text, item.name)]
    whole = {name for name in tensors if documented_dtype(text, name, tensors) == "index"}
    found = [item for item in found if item.name not in whole or item.domain in _OF_INTEGERS]
    said = _said(text)
    found += [Suggested(name, domain, "the source") for domain in said for name in tensors]
    found += _triangles(op, owner, guesses)
    found = [item for item in found if not _has_gradient(search, item)]
    return list({(item.name, item.domain): item for item in reversed(found)}.values())[::-1]


def _has_gradient(search: Search, item: Suggested) -> bool:
    """Whether integers are suggested for what backward returns a gradient for."""
    known = search.evidence.get(item.name)
    return item.domain in _OF_INTEGERS and known is not None and known.differentiable is True


def _triangles(op: Op, owner: Any, guesses: dict[str, TensorGuess]) -> Iterator[Suggested]:
    """Triangles for square matrices that documentation or the operator's name calls triangular
    without saying which: solvers read one triangle, and an argument says which one."""
    named = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", getattr(owner, "__name__", ""))
    said = said_of_arguments(op)
    for name, guess in guesses.items():
        words = f"{said[name].words if name in said else ''} {named}"
        square = len(guess.axes) > 1 and guess.axes[-1] == guess.axes[-2]
        if square and guess.dtype == "float" and re.search(r"(?i)triangular", words):
            yield from (Suggested(name, domain, "the source") for domain in ("lower", "upper"))


def _fits(name: str, guess: TensorGuess, domain: str) -> bool:
    """Whether the domain that the name suggests goes with what is known of the tensor."""
    if guess.domain == "corners":
        return False  # boxes by what the code does: elsewhere they would not overlap
    if domain not in OF_SQUARES:
        return domain not in _OF_CONSTANTS or not guess.grad
    letter = name.strip("_").split("_")
    if min(map(len, letter)) == 1 and not any(part.isupper() for part in letter):
        return False  # R, but not r
    square = len(guess.axes) > 1 and guess.axes[-1] == guess.axes[-2]
    return square or (domain in ("lower", "upper") and _names.matches(_TRIANGULAR, name))


def other_guesses(
    search: Search, plan: Plan, trial: Trial
) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
    """Plans that differ from ``plan`` in domains that something suggests, or in shapes where
    forward broadcast what backward did not expect, or sums over all elements for; under which
    forward and backward run, with what suggested them.

    All that names suggest is changed at once, then one parameter after the other.
    """
    search.restart()
    tried: set[object] = {plan.arguments_key()}
    free = _of_any_rank(search.op)

    def of_domains(base: Plan, most: int) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
        for made, changed in itertools.islice(_changed(base, suggested(search, base)), most):
            if search.out_of_time:
                return
            if made.arguments_key() not in tried:
                tried.add(made.arguments_key())
                outcome = attempt(search.op, made, search.seed, search.keywords)
                if outcome.score >= 5 and outcome.zero <= trial.zero:
                    yield made, outcome, changed

    with process_state_restored():
        again = attempt(search.op, plan, search.seed, search.keywords)
        yield from _as_tensors(search, plan, again)
        yield from _squares(search, plan)
        yield from _of_members(search, plan)
        yield from of_domains(plan, MOST)
        shapes = itertools.chain(search.as_scalars(plan), _of_other_shapes(search, plan, again))
        for made in itertools.islice(shapes, MOST_SHAPES):
            if search.out_of_time:
                return
            found = search.repair(made, MOST_REPAIRS, square=True)
            if found is None or _ranks(found.plan, free) != _ranks(plan, free):
                continue
            if not found.trial.reduced:
                yield found.plan, found.trial, []
                yield from of_domains(found.plan, MOST_SHAPES)


def _as_tensors(
    search: Search, plan: Plan, trial: Trial
) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
    """Tensors without dimensions in place of the numbers for which backward returns a gradient,
    unless they are numbers by their defaults: a coefficient is learned that was taken for one."""
    changed: list[Suggested] = []
    while trial.failure is not None and (found := _OF_A_NUMBER.search(trial.failure.text)):
        position = int(found.group(1)) - 1
        name = plan.names[position] if position < len(plan.names) else ""
        guess = plan.guess(name) if name else None
        if not isinstance(guess, ValueGuess) or guess.kind == "default":
            return
        if isinstance(guess.value, bool) or not isinstance(guess.value, (int, float)):
            return
        domain = "positive" if guess.value > 0 else "real"
        changed.append(Suggested(name, domain, "backward returns a gradient for it"))
        plan = plan.changed(name, TensorGuess((), domain=domain, grad=True))
        trial = attempt(search.op, plan, search.seed, search.keywords)
    if changed and trial.score >= 5:
        yield plan, trial, changed


def _squares(search: Search, plan: Plan) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
    """Square matrices, where documentation speaks of such: the inverse that forward computes as a
    pseudo-inverse is another function of a matrix that is not square."""
    op = search.op
    owner = op.function or op.defining
    if owner is None or not _SQUARE.search(prose(owner)):
        return
    made, changed = plan, []
    for name, guess in plan.tensors():
        sides = guess.axes[-2:]
        if guess.dtype == "float" and len(set(sides)) == 2 and not any(s[0] == "=" for s in sides):
            made = made.tied(sides[0], sides[1])
            changed.append(Suggested(name, "square matrices", "the source"))
    if changed:
        outcome = attempt(op, made, search.seed, search.keywords)
        if outcome.score >= 5:
            yield made, outcome, changed


def _of_members(search: Search, plan: Plan) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
    """An axis of the size for which code takes all members of one apart."""
    op = search.op
    owners = [op.function] if op.function is not None else [owner for owner, _ in handed_on(op)]
    with suppress(OSError, TypeError):  # made without a file
        for size in sizes_taken_apart([source_text(owner) for owner in owners]):
            yield from _of_size(search, plan, size)


def _of_size(
    search: Search, plan: Plan, size: int
) -> Iterator[tuple[Plan, Trial, list[Suggested]]]:
    """One axis after the other of this size, wherever it occurs."""
    tensors = dict(plan.tensors())
    free = [s for g in tensors.values() if g.dtype == "float" for s in g.axes if s[0] != "="]
    for symbol in list(dict.fromkeys(free))[:MOST]:
        made, changed = plan, []
        for name, guess in tensors.items():
            if symbol in guess.axes:
                axes = tuple(f"={size}" if axis == symbol else axis for axis in guess.axes)
                made = made.changed(name, replace(guess, axes=axes))
                changed.append(Suggested(name, f"{size} along an axis", "the source"))
        outcome = attempt(search.op, made, search.seed, search.keywords)
        if outcome.score >= 5:
            yield made, outcome, changed


def _of_any_rank(op: Op) -> frozenset[str]:
    """Parameters of which documentation or forward says that they have any number of axes: that a
    gradient is wrong at one of them is no fault of the guess."""
    described = {name for name, said in said_of_arguments(op).items() if ANY & set(said.axes)}
    source = ""
    for thing in (op.defining, getattr(op.function, "forward", None)):
        with suppress(OSError, TypeError):  # made without a file
            source += source_text(thing) if thing is not None else ""
    counted = r"(\w+)\.(?:dim\(\)|ndim\b)"
    read = re.findall(rf"{counted}\s*[-+*]|range\({counted}\)", source)
    return frozenset({*described, *itertools.chain(*read)})


def _ranks(plan: Plan, names: Collection[str]) -> dict[str, int]:
    return {name: len(guess.axes) for name, guess in plan.tensors() if name in names}


def _of_other_shapes(search: Search, plan: Plan, trial: Trial) -> Iterator[Plan]:
    """Shapes under which backward may run, or no gradient has to be summed to that of its input;
    and those of operands that backward expects to be broadcast."""
    yield from _narrower(search.op, plan)
    yield from _of_one_axis(search, plan)
    yield from _of_several_rows(search, plan)
    if trial.score != 3 and not trial.reduced:
        if trial.inside:
            yield from other_ranks(plan)
        return
    names = [name for name, guess in plan.tensors() if guess.grad]
    summed = {names[k] for k in trial.reduced if k < len(names)}
    fewer = plan
    for name, guess in dict(plan.tensors()).items():
        matrix = any(
            _names.matches(words, name) for domain, words in _BY_NAME if domain in OF_SQUARES
        )
        kept = guess.dtype != "float" or name in summed or matrix or len(guess.axes) < 2
        fewer = fewer if kept else with_rank(fewer, name, len(guess.axes) - 1, 0.0)
    yield fewer
    yield from all_like_returned(plan, trial.reduced)
    yield from like_returned(plan, trial.reduced)
    yield from without_batch(plan, trial.reduced)
    yield from other_ranks(plan)


#: Weight of the evidence for a number of axes that is not doubted (heuristic: that of a function
#: that takes no other).
SURE_OF_RANK = 4.0

#: How backward sums a gradient to the shape of an operand that forward broadcast.
_SUMMED_TO = re.compile(
    r"(?:sum_to_size|\w*(?:unbroadcast|reduce_to|sum_to)\w*)\([^()\n]*?(\w+)\.(?:shape|size\(\))"
)


def _narrower(op: Op, plan: Plan) -> Iterator[Plan]:
    """The plan with a single element along the last axis of an operand to whose shape backward sums
    a gradient: one number for each vector, by which forward multiplies all of its elements."""
    source = ""
    with suppress(OSError, TypeError):  # made without a file
        source = source_text(op.function.backward) if op.function is not None else ""
    summed = dict.fromkeys(_SUMMED_TO.findall(source))
    tensors = dict(plan.tensors())
    for name in summed:
        guess = tensors.get(name)
        if guess is None or guess.dtype != "float" or len(guess.axes) < 2:
            continue
        others = [other for key, other in tensors.items() if key not in summed]
        if any(other.axes == guess.axes for other in others):
            yield plan.changed(name, replace(guess, axes=(*guess.axes[:-1], "=1")))


#: How code lays a vector along one axis, and another one along the other: ``x[None, :]``.
_LAID_ALONG = re.compile(r"\b(\w+)\[\s*(?:None\s*,\s*:|:\s*,\s*None)\s*\]")


def _of_one_axis(search: Search, plan: Plan) -> Iterator[Plan]:
    """The plan with vectors in place of matrices, where backward pairs all elements of one with
    those of another, and nothing says that there are more axes."""
    tensors = dict(plan.tensors())
    source = ""
    with suppress(OSError, TypeError):  # made without a file
        source = source_text(search.op.function.backward) if search.op.function else ""
    for name in dict.fromkeys(_LAID_ALONG.findall(source)):
        guess, known = tensors.get(name), search.evidence.get(name)
        if guess is None or known is None or len(guess.axes) != 2:
            continue
        if known.shape or known.least_rank > 1 or known.ranks.get(2, 0.0) >= SURE_OF_RANK:
            continue
        made = plan
        for other, item in tensors.items():
            if item.axes == guess.axes and isinstance(plan.guess(other), TensorGuess):
                made = made.changed(other, replace(item, axes=item.axes[:1]))
        yield made


def _of_several_rows(search: Search, plan: Plan) -> Iterator[Plan]:
    """The plan with several rows for each step, where code takes one after the other along the
    first of two axes: what backward sums over the rows of a step is a number without them, and
    broadcasts in what it is added to. A state before the first step has as many rows."""
    series = [
        (name, guess)
        for name, guess in plan.tensors()
        if len(guess.axes) == 2 and 0 in search.evidence[name].stepped.values()
    ]
    if not series:
        return
    first, guess = series[0]
    step, *rest = guess.axes
    row = f"{first}.row"
    made = plan
    for name, item in list(plan.tensors()):
        if not isinstance(plan.guess(name), TensorGuess):
            continue
        if item.axes[:1] == (step,) and len(item.axes) == 2:
            made = made.changed(name, replace(item, axes=(step, row, *item.axes[1:])))
        elif item.axes == tuple(rest) and search.evidence[name].optional:
            made = made.changed(name, replace(item, axes=(row, *item.axes)))
    yield made


def _changed(plan: Plan, hints: Sequence[Suggested]) -> Iterator[tuple[Plan, list[Suggested]]]:
    named = [item for item in hints if item.reason == "its name"]
    firsts = list({item.name: item for item in reversed(named)}.values())[::-1]
    groups = [firsts] if len(firsts) > 1 else []
    groups += [[item] for item in hints]
    for domain in dict.fromkeys(item.domain for item in hints if item.reason != "its name"):
        together = [item for item in hints if item.domain == domain]
        groups += [together] if len(together) > 1 else []
    for group in groups:
        for made in _with(plan, group):
            yield made, list(group)


def _with(plan: Plan, group: Sequence[Suggested]) -> Iterator[Plan]:
    """``plan`` with all domains of ``group``."""
    made = [plan]
    for item in group:
        made = [other for one in made for other in _one(one, item)]
    yield from made


def _one(plan: Plan, item: Suggested) -> Iterator[Plan]:
    """``plan`` with the domain of one parameter; labels that were guessed as integers get the shape
    of another tensor too."""
    guess = plan.guess(item.name)
    if not isinstance(guess, TensorGuess):
        return
    if item.domain in _OF_INTEGERS:
        if item.domain == "permutation" and guess.dtype != "int":
            return
        yield plan.changed(item.name, replace(guess, dtype="int", domain=item.domain, grad=False))
        return
    if guess.dtype == "float":
        square = item.domain in OF_SQUARES and len(guess.axes) < 2
        made = None if square else with_domain(plan, item.name, item.domain, 0.0)
        if made is not None:
            yield made
    elif guess.dtype in ("int", "bool") and item.domain not in OF_SQUARES:
        shapes = [other.axes for _, other in plan.tensors() if other.dtype == "float"]
        for axes in dict.fromkeys([*shapes, guess.axes]):
            values = TensorGuess(axes, domain=item.domain, grad=False)
            yield plan.changed(item.name, values)


def _said(text: str) -> list[str]:
    """The domains that sentences of ``text`` give for what an op is passed."""
    found: list[str] = []
    for sentence in re.split(r"[.;\n]\s", text):
        if _RELIES.search(sentence) and not _RETURNS.search(sentence):
            sentence = without_denied_symmetry(sentence)
            lowered = sentence.lower()
            found += [domain for domain, words in _BY_WORD if re.search(words, lowered)]
            found += [{"tril": "lower", "triu": "upper"}.get(d, d) for d in worded(sentence)]
    known = {"permutation", "positive", "unit", "small", "above"}
    known |= {domain for domain, _ in (*_BY_NAME, *_BY_WORD)}
    return [domain for domain in dict.fromkeys(found) if domain in known]
