"""Integers of a plan that tell more: as far as the op accepts, some of them twice.

Values that are never reached hide what is wrong there, and so do indices of which none repeats.
"""

from __future__ import annotations

from dataclasses import replace

from gradlint.inputs._attempt import Trial, attempt
from gradlint.inputs._plan import Plan, TensorGuess
from gradlint.inputs._search import Search
from gradlint.trace.comparisons import Comparisons

#: Indices from which on one occurs twice beside two others: fewer can't show a repeated one and the
#: first and last place as well.
TO_REPEAT = 3


def wide_indices(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Let the values of integer tensors go as far as the op accepts: up to the size of an axis."""
    sizes = sorted(set(plan.sizes().values()), reverse=True)
    for name, guess in list(plan.tensors()):
        current = plan.guess(name)
        if guess.dtype == "int" and isinstance(current, TensorGuess):
            plan, trial = _within(search, plan, trial, name, current)
        if guess.dtype != "int" or guess.domain != "real" or not isinstance(current, TensorGuess):
            continue
        known = search.evidence.get(name)
        if known is not None and known.domain == "binary":
            continue  # zero or one, as documentation says
        now = current.high or (sizes[-1] if sizes else 3)
        for high in [size for size in sizes if size > now][:4]:
            wider = plan.changed(name, replace(current, high=high))
            better = search.as_good(wider, trial)
            if better is not None:
                plan, trial = wider, better
                break
    return plan, trial


def _within(
    search: Search, plan: Plan, trial: Trial, name: str, guess: TensorGuess
) -> tuple[Plan, Trial]:
    """Pointers that end where an axis does, and lengths up to the size of the axis that they cut:
    the first free one of a floating tensor, or the first behind the axis that is shared."""
    if guess.domain not in ("pointers", "offsets", "sizes"):
        return plan, trial
    if guess.domain == "pointers":
        parted = _fewer_than_elements(search, plan, trial, name, guess)
        if parted is not None:
            return parted
    sizes = plan.sizes()
    behind = guess.domain == "sizes"
    for _, other in plan.tensors():
        if other.dtype != "float" or not other.axes:
            continue
        shared = [axis for axis in other.axes if axis in guess.axes]
        free = [axis for axis in other.axes if axis not in guess.axes]
        if not free or (behind and not shared):
            continue
        size = sizes[free[0]]
        bounded = plan.changed(name, replace(guess, high=size))
        if not behind:
            # Bounds of segments; of segments that are longer than one, where there is room.
            bounded = plan.changed(name, replace(guess, high=size, domain="pointers"))
            few = bounded.sized(guess.axes[0], size // 2 + 1)
            alone = all(guess.axes[0] not in t.axes for _, t in plan.tensors() if t is not guess)
            better = search.as_good(few, trial) if alone and size > 3 else None
            if better is not None:
                return few, better
            # Segments of one element hide what a sum over them would show.
            long = 2 * sizes[guess.axes[0]] - 1
            longer = bounded.changed(name, replace(guess, high=long, domain="pointers"))
            longer = longer.sized(free[0], long)
            better = search.as_good(longer, trial) if size < long else None
            if better is not None:
                return longer, better
        better = search.as_good(bounded, trial)
        if better is not None:
            return bounded, better
    return plan, trial


def _fewer_than_elements(
    search: Search, plan: Plan, trial: Trial, name: str, guess: TensorGuess
) -> tuple[Plan, Trial] | None:
    """Fewer pointers than elements that they cut into segments, where both were taken for one axis:
    as many elements as there are pointers happen to be as many as the last of these says."""
    shared = guess.axes[0] if guess.axes else "="
    others = [other for _, other in plan.tensors() if other is not guess and shared in other.axes]
    if shared.startswith("=") or not others or shared in search.held or len(guess.axes) > 1:
        return None
    size = plan.sizes()[shared]
    more = 2 * size - 1
    own = f"{name}.0'"
    made = plan.changed(name, replace(guess, axes=(own,), high=more)).sized(own, size)
    made = made.sized(shared, more)
    better = search.as_good(made, trial)
    return None if better is None else (made, better)


def telling_indices(search: Search, plan: Plan, trial: Trial) -> tuple[Plan, Trial]:
    """Let indices repeat and leave rows out; where forward overwrites the rows that they name, let
    each occur once: a row that is named twice gets one of two values."""
    names = [
        name
        for name, guess in plan.tensors()
        if guess.dtype == "int"
        and guess.domain == "real"
        and isinstance(plan.guess(name), TensorGuess)
    ]
    if not names or trial.score < 3:
        return plan, trial
    watched = Comparisons()
    with watched:
        attempt(search.op, plan, search.seed, search.keywords, backward=False)
    for name in names:
        guess = plan.guess(name)
        assert isinstance(guess, TensorGuess)
        sizes = plan.sizes()
        high = guess.high or min(sizes.values())
        if watched.overwrites:
            changed = plan.changed(name, replace(guess, domain="distinct"))
            if len(guess.axes) == 1 and sizes[guess.axes[0]] > high:
                changed = changed.sized(guess.axes[0], high)
            better = search.as_good(changed, trial)
            plan, trial = (plan, trial) if better is None else (changed, better)
        else:
            plan, trial = _repeated(search, plan, trial, name, guess, high)
            plan, trial = _enough_to_repeat(search, plan, trial, name)
    return plan, trial


def _repeated(
    search: Search, plan: Plan, trial: Trial, name: str, guess: TensorGuess, high: int
) -> tuple[Plan, Trial]:
    """Indices that repeat, from zero to the last place; to the one before where there is none, of
    which too few indices told nothing."""
    for last in (guess.high, high - 1) if high > 2 else (guess.high,):
        changed = plan.changed(name, replace(guess, domain="repeated", high=last))
        better = search.as_good(changed, trial)
        if better is not None:
            return changed, better
    return plan, trial


def _enough_to_repeat(search: Search, plan: Plan, trial: Trial, name: str) -> tuple[Plan, Trial]:
    """More indices where these are so few that none occurs twice: with one for each segment, a sum
    over a segment is the element itself."""
    guess = plan.guess(name)
    if not isinstance(guess, TensorGuess) or len(guess.axes) != 1 or search.evidence[name].parts:
        return plan, trial
    (axis,) = guess.axes
    if axis.startswith("=") or axis in search.held or plan.sizes()[axis] >= TO_REPEAT:
        return plan, trial
    high = guess.high or min(plan.sizes().values())
    more = plan.changed(name, replace(guess, high=high)).sized(axis, TO_REPEAT)
    better = search.as_good(more, trial)
    return (plan, trial) if better is None else (more, better)
