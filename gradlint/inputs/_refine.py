"""From a plan that works to one that reveals more: small unequal sizes, no needless square, wide
index ranges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from types import CodeType

from gradlint.inputs import _names
from gradlint.inputs._attempt import Trial, agrees, attempt, reads_only
from gradlint.inputs._plan import (
    SEARCH_SIZES,
    GroupGuess,
    Omitted,
    Plan,
    Related,
    TensorGuess,
    ValueGuess,
)
from gradlint.inputs._rank_repairs import SECOND_OF_ANY
from gradlint.inputs._refined_integers import telling_indices, wide_indices
from gradlint.inputs._search import OF_ONE_SIGN, Found, Search, with_linked_permutations
from gradlint.inputs.domains import OF_SQUARES
from gradlint.inputs.values import build
from gradlint.model.related import FORMULAS, Bound, Formula, Side
from gradlint.targets.nodes import code_of
from gradlint.targets.source_file import read_source
from gradlint.trace.exchanged_halves import ExchangedHalves
from gradlint.trace.size_edges import SOLVE, SizeEdges

#: Elements that a tensor of a sample should have at most.
ELEMENTS = 64
#: Final sizes, tried in order: unequal and small, then smaller, then with a second one that is
#: larger than those behind, as a signal is than its window, then unequal only within each tensor,
#: where tensors would get large.
_POOLS = (
    tuple(range(3, 40)),
    tuple(range(2, 40)),
    (3, 9, *range(4, 9), *range(10, 40)),
    (),
)
#: Sizes at which a formula is tried, even and odd (heuristic: two of them tell all formulas apart).
OTHER_THAN = (6, 9, 4, 8)
#: Elements of a tensor with two axes in front in the place of one, at most (heuristic: more makes
#: every look dearer).
MOST_BATCHED = 16 * ELEMENTS
#: Axes that are tried with twice the size of the one they are tied to, at most.
MOST_GROUPED = 6
#: Tensors, alone and in pairs, that are given fewer axes where backward raises.
MOST_GROUPS = 21
#: Draws of values at which an argument must not matter before it is left out (heuristic: at every
#: other one, a weight is below zero and clamped).
DRAWS_UNUSED = 8
#: Names of functions that solve a system of equations.
_SOLVING = frozenset({"solve", "solve_ex", "inv", "inv_ex", "inverse", "lu_factor"})
#: Calls of functions that join tensors.
_JOINING = re.compile(r"\b(?:cat|concat|concatenate|hstack)\(")
#: Weight from which the evidence for a number of axes is no guess: what names and the other tensors
#: suggest weighs less, what the code asserts or unpacks more.
SURE_RANK = 4.0


def refine(search: Search, found: Found) -> tuple[Plan, Trial]:
    """The plan with all changes that let it reveal more and under which the op still runs."""
    plan, trial = found.plan, found.trial
    for step in (
        _with_solutions,
        _of_fewer_axes,
        _for_either_choice,
        _needed,
        _without_squares,
        _permuting,
        _parts,
        _following,
        _unfixed,
        _small,
        _of_two_batch_axes,
        _of_even_halves,
        _grouped,
        _all_used,
        wide_indices,
        telling_indices,
        _shared_by_the_batch,
        _of_any_sign,
    ):
        if search.out_of_time:
            break
        plan, trial = step(search, plan, trial)
    # A length that the documentation gives as a number is no other one.
    documented = {axis for item in search.evidence.values() for axis in item.shape}
    search.held |= {axis for axis in documented if axis.startswith("=")}
    # Nor is one of as many slices as the code unpacks.
    for name, guess in plan.tensors():
        slices = f"={search.evidence[name].length}"
        search.held |= {slices} & set(guess.axes[:1])
    # Nor is one of as many elements as a sequence has members.
    for name, guess in plan.tensors():
        search.held |= set(guess.axes[:1]) if search.evidence[name].for_each_of else set()
    # Nor is one that follows from others, or they from it.
    for symbol, terms in plan.composed().items():
        search.held |= {symbol, *terms} if terms else set()
    return plan, trial


def _with_solutions(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Where forward solves with a matrix that is singular because of its sizes, as a system of more
    constraints than unknowns is: one axis shorter than another one."""
    if not _solves(search) or not _is_singular(search, plan):
        return plan, trial
    axes: dict[str, Side] = {}
    for name, guess in plan.tensors():
        own = isinstance(plan.guess(name), TensorGuess) and guess.dtype == "float"
        for place, symbol in enumerate(guess.axes) if own else ():
            axes.setdefault(symbol, Side(name, place))
    for (less, side), (more, other) in itertools.permutations(axes.items(), 2):
        if search.out_of_time:
            break
        bounded = replace(plan, bounds=(*plan.bounds, Bound(side, other)))
        # Sizes are chosen anew later: another order must not help by accident.
        anew = [replace(bounded, pool=pool) for pool in (plan.pool, *_POOLS[:2])]
        in_order = all(one.sizes()[less] < one.sizes()[more] for one in anew)
        if in_order and not any(_is_singular(search, one) for one in anew):
            better = search.as_good(bounded, trial)
            if better is not None:
                return bounded, better
    return plan, trial


def _solves(search: Search) -> bool:
    """Whether the code of forward itself calls what solves a system of equations."""
    code = _forward_code(search)
    return code is not None and not _SOLVING.isdisjoint(code.co_names)


def _joins(search: Search) -> bool:
    """Whether something in the file of forward joins tensors, as a function that it calls may."""
    code = _forward_code(search)
    source = read_source(code.co_filename) if code is not None else None
    return source is not None and any(map(_JOINING.search, source.lines))


def _forward_code(search: Search) -> CodeType | None:
    function = search.op.function
    forward = getattr(function, "forward", None) if function is not None else search.op.call
    return code_of(forward)


def _is_singular(search: Search, plan: Plan) -> bool:
    watched = SizeEdges()
    with watched:
        attempt(search.op, plan, search.seed, search.keywords, backward=False)
    search.attempts += 1
    return any(kind == SOLVE for kind, *_ in watched.beyond)


def _of_fewer_axes(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Where backward raises in its own code, and forward may have broadcast what was meant to have
    fewer axes: one or two tensors with their last one only, or with none, if backward agrees with
    forward then and returns gradients of the right shapes."""
    if trial.score != 3 or trial.contract or trial.failure is None or not trial.failure.frames:
        return plan, trial

    def is_meant(other: Plan, outcome: Trial) -> bool:
        return outcome.score >= 5 and not outcome.reduced and _agreeing(search, other)

    names = [
        name
        for name, guess in plan.tensors()
        if guess.dtype == "float"
        and guess.axes
        and isinstance(plan.guess(name), TensorGuess)
        and not search.evidence[name].shape
    ]
    groups = [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]
    for rank, group in itertools.product((1, 0), groups[:MOST_GROUPS]):
        if search.out_of_time:
            break
        made = plan
        for name in group:
            guess = plan.guess(name)
            assert isinstance(guess, TensorGuess)
            least = max(rank, search.evidence[name].least_rank)
            made = made.changed(name, replace(guess, axes=guess.axes[len(guess.axes) - least :]))
        if made == plan:
            continue
        other = attempt(search.op, made, search.seed, search.keywords)
        search.attempts += 1
        if is_meant(made, other):
            return made, other
        found = search.repair(made) if len(group) == 1 and other.score == 0 else None
        if found is not None and is_meant(found.plan, found.trial):
            return found.plan, found.trial
    return plan, trial


def _for_either_choice(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """A tensor without its first axis, which no other one has, where forward runs for either value
    of an option only then: statistics of a batch may be written into a tensor of more axes, and
    can't be used in its place. What is kept of variances is positive."""
    for name in plan.names:
        other = _other_choice(search, plan, name)
        if other is None or attempt(search.op, other, search.seed, search.keywords).score > 0:
            continue
        for tensor, guess in plan.tensors():
            item, used = search.evidence[tensor], [a for _, g in plan.tensors() for a in g.axes]
            own = isinstance(plan.guess(tensor), TensorGuess) and guess.dtype == "float"
            sure = item.shape or max(item.ranks.values(), default=0.0) >= SURE_RANK
            if not own or sure or len(guess.axes) < 2 or used.count(guess.axes[0]) > 1:
                continue
            for domain in dict.fromkeys((guess.domain, "positive")):
                fewer = plan.changed(tensor, replace(guess, axes=guess.axes[1:], domain=domain))
                better = search.as_good(fewer, trial)
                flipped = _other_choice(search, fewer, name)
                if better is None or better.shapes != trial.shapes or flipped is None:
                    continue
                if attempt(search.op, flipped, search.seed, search.keywords).score >= 3:
                    return fewer, better
    return plan, trial


def _other_choice(search: Search, plan: Plan, name: str) -> Plan | None:
    """The plan with the other truth value of an option; None where ``name`` is none."""
    guess = plan.guess(name)
    value = search.evidence[name].default if isinstance(guess, Omitted) else None
    if isinstance(guess, ValueGuess):
        value = guess.value
    return plan.changed(name, ValueGuess(not value, "bool")) if isinstance(value, bool) else None


def _needed(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Leave out of ``*args`` what forward does not depend on: how many it takes was a guess."""
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if not isinstance(guess, GroupGuess) or not guess.splice:
            continue
        if search.evidence[name].length or not all(map(_is_tensor, guess.items)):
            continue
        before = [other for other, _ in plan.tensors()].index(name) if guess.items else 0
        for index in range(len(guess.items)):
            if not _is_unused(search, plan, before + index):
                continue
            items = guess.items[:index] + guess.items[index + 1 :]
            fewer = plan.changed(name, replace(guess, items=items))
            kept = fewer  # with the sizes that ran, should those that are now free not run
            for axis in dict.fromkeys(axis for _, left in fewer.tensors() for axis in left.axes):
                kept = kept if axis[0] == "=" else kept.sized(axis, plan.sizes()[axis])
            for made in (fewer, kept):
                better = search.as_good(made, trial)
                if better is not None:
                    return _needed(search, made, better)
    return plan, trial


def _is_unused(search: Search, plan: Plan, place: int) -> bool:
    """Whether forward depends on tensor ``place`` at none of several draws: where its weight is
    clamped to zero, it does not at one."""
    return all(
        reads_only(
            search.op, build(plan, seed, search.keywords), plan.working, search.seed, place, 0
        )
        for seed in range(search.seed, search.seed + DRAWS_UNUSED)
    )


def _is_tensor(guess: object) -> bool:
    return isinstance(guess, TensorGuess)


def _without_squares(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Split symbols that occur twice in one tensor, where the op allows it."""
    for name, guess in list(plan.tensors()):
        if len(set(guess.axes)) == len(guess.axes) or guess.domain in OF_SQUARES:
            continue
        current = plan.guess(name)
        if not isinstance(current, TensorGuess):
            continue
        for index, axis in enumerate(current.axes):
            if axis in current.axes[:index] and not axis.startswith("="):
                fresh = (*current.axes[:index], f"{name}.{index}'", *current.axes[index + 1 :])
                split = plan.changed(name, replace(current, axes=fresh))
                better = search.as_good(split, trial)
                if better is not None:
                    return _without_squares(search, split, better)
    if len(set(plan.pool)) == 1:
        unequal = replace(plan, pool=_POOLS[0])
        better = search.as_good(unequal, trial)
        if better is not None:
            return unequal, better
    return plan, trial


def _permuting(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Let a permutation permute a whole axis: the first for a vector, else the last."""
    for _, guess in list(plan.tensors()):
        if guess.domain != "permutation" or not guess.axes:
            continue
        for _, other in plan.tensors():
            if other.dtype != "float" or not other.axes or guess.axes[-1] in other.axes:
                continue
            axis = other.axes[0 if len(guess.axes) == 1 else -1]
            tied = with_linked_permutations(plan.tied(axis, guess.axes[-1]))
            better = search.as_good(tied, trial)
            if better is not None:
                return tied, better
    return plan, trial


def _parts(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Where ``x[..., 0]``, ``x[..., 1]`` … are read, the last axis gets exactly these elements:
    real and imaginary parts, coordinates."""
    for name, guess in list(plan.tensors()):
        parts = search.evidence[name].parts
        count = len(parts)
        if count < 2 or parts != set(range(count)) or not isinstance(plan.guess(name), TensorGuess):
            continue
        last = guess.axes[-1] if guess.axes else ""
        if last and plan.sizes()[last] == count and (last[0] == "=" or last in dict(plan.fixed)):
            search.held.add(last)
        elif last and not last.startswith("=") and not _reads_on(plan, trial, guess):
            narrow = plan.sized(guess.axes[-1], count)
            better = search.as_good(narrow, trial)
            if better is not None:
                plan, trial = narrow, better
                search.held.add(guess.axes[-1])
    return plan, trial


def _reads_on(plan: Plan, trial: Trial, guess: TensorGuess) -> bool:
    """Whether an output has the last axis of ``guess``."""
    size = plan.sizes()[guess.axes[-1]]
    return any(size in shape for shape in trial.shapes)


def _all_used(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Where forward never reads the last integers of a tensor, give it as many as forward reads:
    its axis was meant to have the size of another one."""
    for name, guess in list(plan.tensors()):
        sizes = plan.sizes()
        others = [other for _, other in plan.tensors() if other is not guess and other.axes]
        free = bool(guess.axes) and all(guess.axes[0] not in other.axes for other in others)
        if guess.dtype != "int" or guess.domain != "real" or not free:
            continue
        for first in dict.fromkeys(other.axes[0] for other in others):
            shorter = sizes[first] < sizes[guess.axes[0]]
            if shorter and _reads_only(search, plan, name, sizes[first]):
                tied = plan.tied(first, guess.axes[0])
                better = search.as_good(tied, trial)
                if better is not None:
                    return tied, better
    return plan, trial


def _reads_only(search: Search, plan: Plan, name: str, count: int) -> bool:
    place = [other for other, _ in plan.tensors()].index(name)
    built = build(plan, search.seed, search.keywords)
    return reads_only(search.op, built, plan.working, search.seed, place, count)


def _unfixed(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Free sizes that are large only because another shape, given up since, asked for them."""
    for symbol, size in plan.fixed:
        if size > max(_POOLS[0]):
            free = replace(plan, fixed=tuple(item for item in plan.fixed if item[0] != symbol))
            better = search.as_good(free, trial)
            if better is not None:
                plan, trial = free, better
    return plan, trial


def _following(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Sizes that an error asked for, as functions of the size of another axis, where they are such:
    the op runs at two other sizes with what the formula gives, and not with the first size."""
    for symbol, size in plan.fixed:
        found = next(_formulas(search, plan, trial, symbol, size), None)
        if found is not None:
            plan = _released(search, found, trial)
    return plan, trial


def _released(search: Search, plan: Plan, trial: Trial) -> Plan:
    """The plan without sizes that were kept only for the sake of one that now follows from them:
    the op takes others."""
    for symbol, size in plan.fixed:
        other = next((n for n in OTHER_THAN if n not in plan.sizes().values()), 12)
        changed = plan.sized(symbol, other)
        own = size in SEARCH_SIZES and symbol not in search.held
        if own and search.as_good(changed, trial) is not None:
            plan = replace(plan, fixed=tuple(item for item in plan.fixed if item[0] != symbol))
    return plan


def _formulas(search: Search, plan: Plan, trial: Trial, symbol: str, size: int) -> Iterator[Plan]:
    """Plans in which the size of ``symbol`` follows from that of another axis."""
    if symbol in search.held or symbol not in plan.symbols():
        return
    sizes = plan.sizes()
    fixed = dict(plan.fixed)
    # A size that is fixed only for the sake of this one is free again.
    bases = [axis for axis in plan.symbols() if not axis.startswith("=") and axis != symbol]
    for base, text in itertools.product(bases, FORMULAS):
        formula = Formula(text)
        if formula.at([sizes[base]]) != size or dict(plan.related).get(base):
            continue
        followed = plan.following(symbol, Related(formula, (base,)))
        loose = replace(followed, fixed=tuple(i for i in followed.fixed if i[0] != base))
        others = [n for n in OTHER_THAN if n not in (sizes[base], size)][:2]
        good = all(search.as_good(loose.sized(base, n), trial) is not None for n in others)
        if not good:
            continue
        constant = plan.sized(symbol, size)
        varies = any(search.as_good(constant.sized(base, n), trial) is None for n in others)
        if varies and search.as_good(loose, trial) is not None:
            yield loose if base in fixed else followed


def _small(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    for pool in _POOLS:
        smaller = replace(plan, pool=pool)
        # Sizes that are all different are worth twice as many elements.
        allowed = 2 * ELEMENTS if pool is _POOLS[1] else ELEMENTS
        if pool and _largest(smaller) > allowed:
            continue
        better = search.as_good(smaller, trial)
        if better is not None:
            return smaller, better
    for pool in _POOLS[:2]:
        smaller = replace(plan, pool=pool)
        if _largest(smaller) < _largest(plan):
            better = search.as_good(smaller, trial)
            if better is not None:
                return smaller, better
    # Two sizes of the search that fit by chance: the op takes no others.
    fixed = {*dict(plan.fixed), *dict(plan.related)}
    free = [a for a in plan.symbols() if a not in fixed and not a.startswith("=")]
    for symbol in free if plan.pool == SEARCH_SIZES and len(free) > 1 else ():
        found = next(_formulas(search, plan, trial, symbol, plan.sizes()[symbol]), None)
        if found is not None:
            return _small(search, found, trial)
    return plan, trial


def _of_two_batch_axes(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Two axes in front in the place of any number of them, ``(..., D)``, of which one was taken:
    what sums over the first alone, or views two of them as one, is right with a single one."""

    def spread(guess: TensorGuess) -> TensorGuess:
        batched = guess.axes[:1] == ("...",) and guess.axes.count("...") == 1
        return replace(guess, axes=(SECOND_OF_ANY, *guess.axes)) if batched else guess

    spread_out = plan.mapped(spread)
    wider = spread_out.sized(SECOND_OF_ANY, 2)
    if spread_out == plan or _largest(wider) > MOST_BATCHED:
        return plan, trial
    better = search.as_good(wider, trial)
    return (plan, trial) if better is None else (wider, better)


def _of_even_halves(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """An even size where forward exchanges the halves of an axis, and backward disagrees with it at
    an odd one: forward takes that by accident, and backward need not know what it gives then."""
    odd = any(size % 2 and size > 1 for size in plan.sizes().values())
    if trial.score < 5 or not odd or not _joins(search):
        return plan, trial
    watched = ExchangedHalves()
    with watched:
        attempt(search.op, plan, search.seed, search.keywords, backward=False)
    if not watched.sizes or _agreeing(search, plan):
        return plan, trial
    sizes = plan.sizes()
    for symbol in plan.symbols():
        if sizes[symbol] in watched.sizes and not symbol.startswith("="):
            even = plan.sized(symbol, sizes[symbol] + 1)
            better = search.as_good(even, trial)
            if better is not None:
                return even, better
    return plan, trial


def _grouped(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Twice as many along one axis as along that of another tensor that was guessed to be as long,
    where forward takes that and an output has as many: heads that share a key, channels that share
    a filter. Which of them belong together does not show where there is one for each. Where several
    others have that axis, they are longer than the tensor: points that share weights."""
    tries = 0
    for name, guess in list(plan.tensors()):
        for place, symbol in enumerate(guess.axes):
            if not _may_be_grouped(search, plan, name, guess, place):
                continue
            others = [k for k, found in plan.tensors() if k != name and symbol in found.axes]
            for longer in ([name], others) if len(others) > 1 else ([name],):
                if tries >= MOST_GROUPED:
                    return plan, trial
                tries += 1
                more = f"{longer[0]}.{place}*"
                split = _with_longer(plan, longer, symbol, more)
                # Outputs at the very sizes of the plan show whether they have the longer axis.
                alone = replace(split, fixed=tuple(plan.sizes().items()))
                carried = search.as_good(alone, trial)
                if carried is None or carried.reduced or carried.shapes == trial.shapes:
                    continue
                better = search.as_good(split, trial)
                return (alone, carried) if better is None else (split, better)
    return plan, trial


def _with_longer(plan: Plan, names: Sequence[str], symbol: str, more: str) -> Plan:
    """``plan`` with an axis of some tensors twice as long, under another symbol."""
    made = plan
    for name in names:
        guess = made.guess(name)
        if isinstance(guess, TensorGuess):
            axes = tuple(more if axis == symbol else axis for axis in guess.axes)
            made = made.changed(name, replace(guess, axes=axes))
    return made.following(more, Related(Formula("2 * n"), (symbol,)))


def _may_be_grouped(search: Search, plan: Plan, name: str, guess: TensorGuess, place: int) -> bool:
    """Whether an axis has the size of one of another tensor by a guess: the documentation does not
    give them one name."""
    symbol = guess.axes[place]
    own = isinstance(plan.guess(name), TensorGuess) and guess.dtype == "float"
    bound = {*dict(plan.fixed), *dict(plan.related)} | search.held
    if not own or symbol.startswith("=") or symbol in bound or guess.axes.count(symbol) > 1:
        return False
    said = search.evidence[name].shape
    others = [
        (search.evidence[other].shape, found.axes)
        for other, found in plan.tensors()
        if other != name and other in search.evidence and found.axes.count(symbol) == 1
    ]
    named = said[place] if len(said) == len(guess.axes) else ""
    return bool(others) and not any(
        len(shape) == len(axes) and shape[axes.index(symbol)] == named for shape, axes in others
    )


def _largest(plan: Plan) -> int:
    sizes = plan.sizes()
    return max((prod(sizes[a] for a in guess.axes) for _, guess in plan.tensors()), default=0)


def _shared_by_the_batch(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Where backward disagrees with forward, and a tensor has the first axis of another one only
    because nothing said how many axes it has: the tensor without that axis, if backward agrees
    then. Forward may have broadcast parameters that were meant for the whole batch."""
    if trial.score < 5 or _agreeing(search, plan):
        return plan, trial
    sizes = plan.sizes()
    for name, guess in list(plan.tensors())[1:]:
        item = search.evidence[name]
        said = item.shape or max(item.ranks.values(), default=0.0) >= SURE_RANK
        own = isinstance(plan.guess(name), TensorGuess) and guess.dtype == "float"
        if not own or said or len(guess.axes) <= max(item.least_rank, 1):
            continue
        others = [other.axes for _, other in plan.tensors() if other is not guess]
        if not any(axes[:1] == guess.axes[:1] and len(axes) > 1 for axes in others):
            continue
        shared = plan.changed(name, replace(guess, axes=guess.axes[1:]))
        better = search.as_good(shared, trial)
        same = better is not None and better.shapes == trial.shapes and not better.reduced
        if better is not None and same and sizes[guess.axes[0]] > 1 and _agreeing(search, shared):
            return shared, better
    return plan, trial


def _of_any_sign(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Note which of several tensors that got one sign together, because forward was not finite, are
    as good with both: another one may need it. What is a logarithm by its name gets both."""
    together = [
        (name, guess)
        for name, guess in plan.tensors()
        if guess.domain in OF_ONE_SIGN
        and isinstance(plan.guess(name), TensorGuess)
        and isinstance(first := search.proposals[name][0][0], TensorGuess)
        and first.domain == "real"
    ]
    for name, guess in together if len(together) > 1 else ():
        if search.out_of_time:
            break
        free = plan.changed(name, replace(guess, domain="real"))
        as_good = search.as_good(free, trial)
        if as_good is not None and _names.is_logarithm(name):
            plan, trial = free, as_good
        elif as_good is not None:
            search.free_of_sign.add(name)
    return plan, trial


def _agreeing(search: Search, plan: Plan) -> bool:
    built = build(plan, search.seed, search.keywords)
    search.attempts += 1
    return agrees(search.op, built, plan.working, search.seed)
