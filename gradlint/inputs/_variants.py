"""Other samples than the first one that reveal more: with an optional tensor, another option."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradlint.inputs import _names
from gradlint.inputs._attempt import Trial, attempt
from gradlint.inputs._evidence import MISSING, Evidence
from gradlint.inputs._of_others import is_of_others
from gradlint.inputs._plan import (
    SEARCH_SIZES,
    GroupGuess,
    Omitted,
    Plan,
    TensorGuess,
    ValueGuess,
)
from gradlint.inputs._search import Found, Search

#: Variants in addition to the main sample.
VARIANTS = 2


def variants(search: Search, plan: Plan, trial: Trial) -> Iterator[tuple[str, Plan, Trial]]:
    """Other samples that reveal more: label, plan, trial; at most :data:`VARIANTS`."""
    given = 0
    if trial.score <= 3:
        # Backward raises on the main sample: variants would only repeat that.
        return
    for label, other, least in _candidates(search, plan):
        if given >= VARIANTS or search.out_of_time:
            return
        outcome = attempt(search.op, other, search.seed, search.keywords)
        is_tensor, apart = label.endswith("given"), False
        name = label.split(" ")[0]
        constant = _with_constant(other, name) if is_tensor else other
        if outcome.score < least and (is_tensor or outcome.score == 0):
            # A tensor in place of a default needs a shape, and another branch of forward may need
            # what the first one did not.
            repaired = None if outcome.score == 5 else search.repair(other)
            if repaired is None and constant is not other:
                repaired = search.repair(constant)
            if repaired is None and is_tensor:
                repaired = _repaired_apart(search, other)
                apart = repaired is not None
            if repaired is not None and not _undoes(repaired.plan, other, label):
                other, outcome = repaired.plan, repaired.trial
        if is_tensor and not (_names.weighs(name) or _names.masks(name)):
            # Its gradient may be the only one that is missing: nothing says that it is a constant.
            other, outcome, least = _asking_for(search, name, (other, outcome, least))
        if is_tensor and not apart and (outcome.shapes != trial.shapes or outcome.reduced):
            other, outcome = _keeping_shapes(search, plan, trial, name, (other, outcome))
        if outcome.score >= min(least, trial.score) and outcome.score >= 3:
            given += 1
            yield label, other, outcome


def _undoes(repaired: Plan, wanted: Plan, label: str) -> bool:
    """Whether a repair gives an argument another value than the one that a ``label`` like
    "mask=None" tells of."""
    name, equal, _ = label.partition("=")
    return bool(equal) and name in wanted.names and repaired.guess(name) != wanted.guess(name)


def _repaired_apart(search: Search, plan: Plan) -> Found | None:
    """``plan`` repaired at sizes that no parameter of the module has: where a batch is by chance as
    long as a row of a weight, an error that names this size says nothing about the weight."""
    module = search.op.module
    if module is None:
        return None
    held = {size for parameter in module.parameters() for size in parameter.shape}
    if not held & {size for axis, size in plan.sizes().items() if axis not in dict(plan.fixed)}:
        return None
    pool = tuple(size for size in SEARCH_SIZES if size not in held)
    return search.repair(replace(plan, pool=pool))


def _asking_for(
    search: Search, name: str, known: tuple[Plan, Trial, int]
) -> tuple[Plan, Trial, int]:
    """The plan in which the tensor for ``name`` requires a gradient where it does not in a plan
    under which all goes well, and its own is then the only one that is missing; else ``known``:
    plan, trial, and the least score that counts as well."""
    plan, trial, _ = known
    guess = plan.guess(name)
    if not isinstance(guess, TensorGuess) or guess.dtype != "float" or guess.grad:
        return known
    if trial.score != 6 or search.evidence[name].differentiable is False:
        return known
    asked = plan.changed(name, replace(guess, grad=True))
    found = attempt(search.op, asked, search.seed, search.keywords)
    return (asked, found, 5) if found.score == 5 else known


def _with_constant(plan: Plan, name: str) -> Plan:
    """The plan with a tensor for ``name`` that requires no gradient, as a weight of each element
    may not, or a mask of floating numbers."""
    given = plan.guess(name)
    if not isinstance(given, TensorGuess) or not given.grad:
        return plan
    return plan.changed(name, replace(given, grad=False))


def _keeping_shapes(
    search: Search, plan: Plan, trial: Trial, name: str, known: tuple[Plan, Trial]
) -> tuple[Plan, Trial]:
    """The plan with a tensor for ``name`` that leaves the shapes of the outputs as they are where
    it is None: made of axes of another tensor. Otherwise ``known``, with which forward may have
    broadcast the other inputs by accident."""
    given = known[0].guess(name)
    if not isinstance(given, TensorGuess):
        return known
    shapes = [guess.axes for other, guess in plan.tensors() if other != name and guess.axes]
    for axes in dict.fromkeys(part for shape in shapes for part in _parts_of(shape)):
        if search.out_of_time:
            break
        other = plan.changed(name, replace(given, axes=axes))
        outcome = attempt(search.op, other, search.seed, search.keywords)
        kept = outcome.shapes == trial.shapes and not outcome.reduced
        if kept and outcome.score >= known[1].score:
            return other, outcome
    return known


def _parts_of(shape: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Shapes of what belongs to a tensor of ``shape``: one number a row, a row, all of it."""
    yield shape[:-1]
    yield shape[1:]
    yield shape[:1]
    yield shape[-1:]
    yield shape


def _candidates(search: Search, plan: Plan) -> Iterator[tuple[str, Plan, int]]:
    """Label, plan, least score that makes it worth reporting."""
    yield from _other_remainders(plan)
    yield from _clamped_weights(search, plan)
    yield from _marked(search, plan)
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, (TensorGuess, GroupGuess)):
            item = search.evidence[name]
            # Without a default where forward asks for None: an argument that has to be written out.
            if item.default is None or (item.default is MISSING and item.optional):
                yield f"{name}=None", plan.changed(name, ValueGuess(None, "default")), 3
        else:
            yield from _in_place_of_none(search, plan, name)
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        value = search.evidence[name].default if isinstance(guess, Omitted) else None
        if isinstance(guess, ValueGuess):
            value = guess.value
        yield from _other_values(search, plan, name, value)


def _other_remainders(plan: Plan) -> Iterator[tuple[str, Plan, int]]:
    """The plan with one axis more or less even: ``n // 2 + 1`` of an odd n is not that of an even
    one, and half of the faults of a transform show at one of them only."""
    sizes = plan.sizes()
    for symbol, terms in plan.composed().items():
        for term in sorted(terms) if "//" in symbol else ():
            if term not in dict(plan.fixed):
                size = sizes[term] + 1
                yield f"where {term} is {size}", plan.sized(term, size), 3


def _marked(search: Search, plan: Plan) -> Iterator[tuple[str, Plan, int]]:
    """The plan with -1 among indices of which the code asks which are below zero."""
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if not isinstance(guess, TensorGuess) or guess.dtype != "int":
            continue
        if guess.domain in ("real", "repeated") and search.evidence[name].signed:
            marked = plan.changed(name, replace(guess, domain="marked"))
            yield f"where -1 occurs in {name}", marked, 5


def _clamped_weights(search: Search, plan: Plan) -> Iterator[tuple[str, Plan, int]]:
    """The plan with weights of either sign, where they are positive only so that all count."""
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if not isinstance(guess, TensorGuess) or guess.domain != "positive":
            continue
        first = search.proposals[name][0][0]
        unsaid = isinstance(first, TensorGuess) and first.domain == "real"
        if search.evidence[name].for_each_of and unsaid:
            either = plan.changed(name, replace(guess, domain="real"))
            yield f"where {name} has either sign", either, 5


def _in_place_of_none(search: Search, plan: Plan, name: str) -> Iterator[tuple[str, Plan, int]]:
    """A number, a string or a tensor for a parameter that got none. A number in place of what
    forward computes of the others would be another one than that; of a tensor, GL103 knows what
    backward owes it."""
    if _names.stops_gradients(name):
        return
    item = search.evidence[name]
    tensors = [other for other, _ in plan.tensors()]
    kind, _ = item.ordered_kinds()[0]
    plain = kind in ("int", "float", "str") and item.weights[kind] >= 2.5
    if item.default is None and plain and not is_of_others(search.op, item, tensors):
        for proposal, _ in search.proposals[name]:
            if isinstance(proposal, ValueGuess) and proposal.kind == kind:
                yield f"{name}={proposal.value!r}", plan.changed(name, proposal), 6
                break
    if _takes_tensor(item, search):
        for proposal, _ in search.proposals[name]:
            if isinstance(proposal, TensorGuess):
                yield f"{name} given", plan.changed(name, proposal), 6
                break


def _other_values(
    search: Search, plan: Plan, name: str, value: object
) -> Iterator[tuple[str, Plan, int]]:
    """The other truth value, another axis, other strings that the code knows."""
    # A permutation is one along the last axis.
    permuted = any("perm" in guess.domain for _, guess in plan.tensors())
    if isinstance(value, bool):
        other = plan.changed(name, ValueGuess(not value, "bool"))
        if _names.tells_triangle(name):
            other = other.mapped(_of_other_triangle)
        yield f"{name}={not value}", other, 5
    elif type(value) is int and _may_be_axis(search, name, value) and not permuted:
        axis = 0 if value else 1
        yield f"{name}={axis}", plan.changed(name, ValueGuess(axis, "int")), 6
    elif isinstance(value, str):
        for text in search.evidence[name].values[:4]:
            if isinstance(text, str) and text != value:
                yield f"{name}={text!r}", plan.changed(name, ValueGuess(text, "str")), 6


#: Domain of triangular matrices → that of the others.
_OTHER_TRIANGLE = {"tril": "triu", "triu": "tril", "lower": "upper", "upper": "lower"}


def _of_other_triangle(guess: TensorGuess) -> TensorGuess:
    """A triangular matrix transposed: formulas may rely on zeros in the triangle that forward does
    not read."""
    return replace(guess, domain=_OTHER_TRIANGLE.get(guess.domain, guess.domain))


def _may_be_axis(search: Search, name: str, value: int) -> bool:
    return _names.is_axis(name) and not search.evidence[name].sliced and value in (-1, 0, 1)


def _takes_tensor(item: Evidence, search: Search) -> bool:
    """Whether a parameter that was not given a tensor may well take one."""
    if item.default is None:
        return item.may_be_tensor
    if item.made_tensor and type(item.default) is float:
        return True
    return bool(item.differentiable) and search.op.kind == "function"
